// Completion tokens, cancellation slots and associated allocators, with asio::steady_timer and with
// wheel_timer.
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "asio/steady_timers.h"

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

template <class Timer>
class CompletionToken : public SteadyTimers<Timer> {};
TYPED_TEST_SUITE(CompletionToken, Timers, Named);

TYPED_TEST(CompletionToken, UseFuture) {
  TypeParam timer(this->io_, 1ms);
  std::future<void> done = timer.async_wait(net::use_future);
  this->io_.run();
  EXPECT_NO_THROW(done.get());
  timer.expires_after(1h);
  std::future<void> aborted = timer.async_wait(net::use_future);
  timer.cancel();
  this->io_.restart();
  this->io_.run();
  EXPECT_THROW(aborted.get(), boost::system::system_error);
}

TYPED_TEST(CompletionToken, UseAwaitableDeferredAndAsTuple) {
  std::string said;
  net::co_spawn(
      this->io_,
      [&]() -> net::awaitable<void> {
        TypeParam timer(co_await net::this_coro::executor, 1ms);
        co_await timer.async_wait(net::use_awaitable);
        said += "awaited";
        timer.expires_after(1ms);
        co_await timer.async_wait(net::deferred)(net::use_awaitable);
        said += ", deferred";
        timer.expires_after(1h);
        timer.async_wait(net::detached);
        timer.async_wait([&](error_code) {});
        net::post(this->io_, [&] { timer.cancel(); });
        const auto [error] = co_await timer.async_wait(net::as_tuple(net::use_awaitable));
        said += error == net::error::operation_aborted ? ", aborted" : ", not aborted";
      },
      net::detached);
  this->io_.run();
  EXPECT_EQ(said, "awaited, deferred, aborted");
}

TYPED_TEST(CompletionToken, ParallelGroupsCancelTheLoser) {
  using net::experimental::awaitable_operators::operator||;
  const auto start = Clock::now();
  std::size_t winner = 99;
  net::co_spawn(
      this->io_,
      [&]() -> net::awaitable<void> {
        TypeParam slow(this->io_, 1h);
        TypeParam fast(this->io_, 1ms);
        const auto first =
            co_await (slow.async_wait(net::use_awaitable) || fast.async_wait(net::use_awaitable));
        winner = first.index();
      },
      net::detached);
  this->io_.run();
  EXPECT_EQ(winner, 1U);
  EXPECT_LT(Clock::now() - start, 10s);
}

TYPED_TEST(CompletionToken, CancellationSlotsCancelTheirOwnWaitOnly) {
  TypeParam timer(this->io_, 5ms);
  std::array<net::cancellation_signal, 2> signals;
  timer.async_wait(this->handler("free"));
  timer.async_wait(net::bind_cancellation_slot(signals[0].slot(), this->handler("first")));
  timer.async_wait(net::bind_cancellation_slot(signals[1].slot(), this->handler("second")));
  signals[1].emit(net::cancellation_type::partial);
  signals[1].emit(net::cancellation_type::none);
  signals[0].emit(net::cancellation_type::none);
  this->io_.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"second aborted", "free done", "first done"}));
  signals[0].emit(net::cancellation_type::terminal);  // too late: nothing happens

  timer.expires_after(1h);
  timer.async_wait(net::bind_cancellation_slot(signals[0].slot(), this->handler("alone")));
  signals[0].emit(net::cancellation_type::total);
  EXPECT_EQ(timer.cancel(), 0U);
  this->io_.restart();
  this->io_.run();
  EXPECT_EQ(this->log_.back(), "alone aborted");
}

template <class T>
struct CountingAllocator {
  using value_type = T;
  explicit CountingAllocator(int& number) : count(&number) {}
  template <class U>
  // NOLINTNEXTLINE(google-explicit-constructor): allocators convert implicitly
  CountingAllocator(const CountingAllocator<U>& other) : count(other.count) {}
  T* allocate(std::size_t n) {
    ++*count;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* memory, std::size_t n) { std::allocator<T>().deallocate(memory, n); }
  template <class U>
  bool operator==(const CountingAllocator<U>& other) const {
    return count == other.count;
  }
  int* count;
};

TYPED_TEST(CompletionToken, AllocatesWithTheAssociatedAllocator) {
  TypeParam timer(this->io_, 1ms);
  int allocations = 0;
  timer.async_wait(
      net::bind_allocator(CountingAllocator<char>(allocations), this->handler("wait")));
  this->io_.run();
  EXPECT_EQ(allocations, 1);
}

}  // namespace
}  // namespace carillon::testing
