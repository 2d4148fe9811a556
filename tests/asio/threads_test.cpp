// Many threads in one context: every wait completes exactly once, and none early.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "carillon/asio/wheel_timer.h"
#include "timer/trials.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

namespace net = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// A timer with random waits, new expiries and cancels, on a strand of its own.
class RandomTimer : public std::enable_shared_from_this<RandomTimer> {
 public:
  RandomTimer(net::io_context& io, std::uint64_t seed, std::atomic<std::int64_t>& open,
              std::atomic<int>& early)
      : timer_(net::make_strand(io)), random_(seed), open_(open), early_(early) {}

  void begin(int waits) {
    net::post(timer_.get_executor(), [self = shared_from_this(), waits] { self->wait(waits); });
  }

 private:
  void wait(int left) {
    if (left == 0) return;
    timer_.expires_after(std::chrono::microseconds(random_() % 3'000));
    const auto expiry = timer_.expiry();
    const std::uint64_t fate = random_() % 8;
    ++open_;
    const auto done = [self = shared_from_this(), expiry, left,
                       goes_on = fate != 0](error_code error) {
      --self->open_;
      if (!error && Clock::now() < expiry) ++self->early_;
      if (goes_on) self->wait(left - 1);
    };
    if (fate == 1) {
      timer_.async_wait(net::bind_cancellation_slot(signal_.slot(), done));
      signal_.emit(net::cancellation_type::total);
    } else {
      timer_.async_wait(done);
    }
    if (fate == 2) timer_.cancel();
    if (fate == 0) wait(left - 1);  // cancels the wait that was just started
  }

  wheel_timer timer_;
  std::mt19937_64 random_;
  net::cancellation_signal signal_;
  std::atomic<std::int64_t>& open_;
  std::atomic<int>& early_;
};

TEST(WheelTimerThreads, EveryWaitCompletesOnceAndNoneEarly) {
  for (const std::uint64_t seed : seeds(1)) {
    SCOPED_TRACE(replay_with(seed));
    net::io_context io;
    std::atomic<std::int64_t> open{0};
    std::atomic<int> early{0};
    for (std::uint64_t timer = 0; timer < 200; ++timer) {
      std::make_shared<RandomTimer>(io, seed + timer, open, early)
          ->begin(static_cast<int>(trials(100)));
    }
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) threads.emplace_back([&] { io.run(); });
    // run() returns when no wait is left, so joining shows that none was forgotten.
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(open, 0);
    EXPECT_EQ(early, 0);
  }
}

// Each deadline that is earlier than all others wakes the thread that sleeps in the reactor.
TEST(WheelTimerThreads, AnEarlierDeadlineWakesTheThreadThatSleeps) {
  net::io_context io;
  const auto work = net::make_work_guard(io);
  std::thread thread([&] { io.run(); });
  wheel_timer far(io, 1h);
  far.async_wait([](error_code) {});
  for (std::size_t i = 0; i < trials(200); ++i) {
    std::atomic<bool> done{false};
    wheel_timer soon(io, std::chrono::microseconds(i % 7 * 300));
    soon.async_wait([&](error_code) {
      done = true;
      done.notify_one();
    });
    done.wait(false);
  }
  far.cancel();
  io.stop();
  thread.join();
}

}  // namespace
}  // namespace carillon::testing
