// The behaviour of asio::steady_timer that its users rely on. The same tests run for steady_timer
// and for wheel_timer.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "asio/steady_timers.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

template <class Timer>
class SteadyTimer : public SteadyTimers<Timer> {};
TYPED_TEST_SUITE(SteadyTimer, Timers, Named);

TYPED_TEST(SteadyTimer, CompletesAtItsTimeAndNeverBefore) {
  for (const auto delay : {3ms, 0ms, 1ms, 7ms}) {
    TypeParam timer(this->io_);
    timer.expires_after(delay);
    const auto expiry = timer.expiry();
    std::optional<Clock::time_point> completed;
    timer.async_wait([&](error_code error) {
      EXPECT_FALSE(error);
      completed = Clock::now();
    });
    this->io_.restart();
    this->io_.run();
    ASSERT_TRUE(completed);
    EXPECT_GE(*completed, expiry);
    EXPECT_LT(*completed, expiry + 2s) << "on a busy machine";
  }
}

TYPED_TEST(SteadyTimer, HasEveryConstructorOfAsiosTimer) {
  const auto executor = this->io_.get_executor();
  const auto soon = Clock::now() + 1ms;
  TypeParam by_executor(executor);
  TypeParam by_context(this->io_);
  TypeParam at(executor, soon);
  TypeParam at_in_context(this->io_, soon);
  TypeParam after(executor, 1ms);
  TypeParam after_in_context(this->io_, std::chrono::seconds(0));
  EXPECT_EQ(by_executor.expiry(), Clock::time_point());
  EXPECT_EQ(at.expiry(), soon);
  EXPECT_EQ(at_in_context.expiry(), soon);
  EXPECT_GE(after.expiry(), soon);
  EXPECT_TRUE(by_context.get_executor() == executor);
  for (TypeParam* timer :
       {&by_executor, &by_context, &at, &at_in_context, &after, &after_in_context}) {
    timer->async_wait(this->handler("wait"));
  }
  this->io_.run();
  EXPECT_EQ(this->log_, Log(6, "wait done")) << "an expiry that was never set is in the past";
}

// Bug: the time in nanoseconds wrapped, as in Asio's own timer, and the wait completed at once.
TEST(AWheelTimer, ADurationOrTimeBeyondTheClocksRangeIsTheEndOfTime) {
  using std::chrono::hours;
  using Hours = std::chrono::time_point<Clock, hours>;
  net::io_context io;
  wheel_timer timer(io, hours::max());
  EXPECT_EQ(timer.expiry(), Clock::time_point::max());
  wheel_timer at(io, Hours::max());
  EXPECT_EQ(at.expiry(), Clock::time_point::max());
  timer.expires_after(hours::max());
  EXPECT_EQ(timer.expiry(), Clock::time_point::max());
  timer.expires_after(std::chrono::duration<double>(1e300));
  EXPECT_EQ(timer.expiry(), Clock::time_point::max());
  timer.expires_at(Hours::max());
  EXPECT_EQ(timer.expiry(), Clock::time_point::max());
  bool completed = false;
  timer.async_wait([&](error_code) { completed = true; });
  io.poll();
  EXPECT_FALSE(completed);
  wall_wheel_timer wall(io, hours::max());
  wall.async_wait([&](error_code) { completed = true; });
  io.poll();
  EXPECT_FALSE(completed);
  timer.expires_after(hours::min());
  timer.async_wait([&](error_code error) { completed = !error; });
  io.run_one_for(10s);
  while (!completed && io.run_one_for(10s) > 0) {
  }
  EXPECT_TRUE(completed) << "long ago";
}

TYPED_TEST(SteadyTimer, TheHandlerIsNeverCalledWithinTheCallThatStartsOrCancelsTheWait) {
  TypeParam timer(this->io_);
  timer.expires_after(-1h);
  timer.async_wait(this->handler("past"));
  EXPECT_TRUE(this->log_.empty());
  this->io_.run();
  timer.expires_after(1h);
  timer.async_wait(this->handler("far"));
  EXPECT_EQ(timer.cancel(), 1U);
  EXPECT_EQ(this->log_.size(), 1U);
  this->io_.restart();
  this->io_.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"past done", "far aborted"}));
}

TYPED_TEST(SteadyTimer, ExpiresAfterAndExpiresAtCancelAllWaits) {
  TypeParam timer(this->io_, 1h);
  timer.async_wait(this->handler("a"));
  timer.async_wait(this->handler("b"));
  EXPECT_EQ(timer.expires_after(2h), 2U);
  timer.async_wait(this->handler("c"));
  EXPECT_EQ(timer.expires_at(Clock::now() + 1ms), 1U);
  timer.async_wait(this->handler("d"));
  this->io_.run();
  EXPECT_EQ(this->log_,
            (std::vector<std::string>{"a aborted", "b aborted", "c aborted", "d done"}));
  EXPECT_EQ(timer.expires_after(1h), 0U) << "nobody waits any more";
}

TYPED_TEST(SteadyTimer, CancelOneCancelsTheOldestWaitAndCancelTheRest) {
  TypeParam timer(this->io_, 1h);
  for (const char* name : {"a", "b", "c"}) timer.async_wait(this->handler(name));
  const auto expiry = timer.expiry();
  EXPECT_EQ(timer.cancel_one(), 1U);
  EXPECT_EQ(timer.cancel(), 2U);
  EXPECT_EQ(timer.cancel_one(), 0U);
  EXPECT_EQ(timer.cancel(), 0U);
  EXPECT_EQ(timer.expiry(), expiry) << "cancelling does not change the expiry";
  this->io_.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"a aborted", "b aborted", "c aborted"}));
}

TYPED_TEST(SteadyTimer, AllWaitsOnOneTimerCompleteInTheOrderStarted) {
  TypeParam timer(this->io_, 1ms);
  for (const char* name : {"a", "b", "c"}) timer.async_wait(this->handler(name));
  this->io_.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"a done", "b done", "c done"}));
}

TYPED_TEST(SteadyTimer, TimersCompleteInOrderOfTheirExpiry) {
  TypeParam last(this->io_, 100ms);
  TypeParam first(this->io_, 2ms);
  TypeParam second(this->io_, 50ms);
  last.async_wait(this->handler("100"));
  first.async_wait(this->handler("2"));
  second.async_wait(this->handler("50"));
  this->io_.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"2 done", "50 done", "100 done"}));
}

TYPED_TEST(SteadyTimer, AWaitThatHasExpiredCannotBeCancelledAnyMore) {
  TypeParam first(this->io_, 1ms);
  TypeParam second(this->io_, 1ms);
  second.expires_at(first.expiry());
  std::size_t cancelled = 99;
  first.async_wait([&](error_code) { cancelled = second.cancel(); });
  second.async_wait(this->handler("second"));
  // Meanwhile both expire, so that the loop finds them in the same turn.
  std::this_thread::sleep_until(first.expiry() + 5ms);
  this->io_.run();
  EXPECT_EQ(cancelled, 0U);
  EXPECT_EQ(this->log_, (std::vector<std::string>{"second done"}));
}

TYPED_TEST(SteadyTimer, AWaitIsWorkThatKeepsRunFromReturning) {
  TypeParam timer(this->io_, 5ms);
  EXPECT_EQ(this->io_.run(), 0U) << "a timer without a wait is no work";
  this->io_.restart();
  timer.async_wait(this->handler("wait"));
  EXPECT_EQ(this->io_.poll(), 0U);
  EXPECT_FALSE(this->io_.stopped());
  this->io_.run();
  EXPECT_EQ(this->log_, (Log{"wait done"}));
  EXPECT_TRUE(this->io_.stopped());
}

TYPED_TEST(SteadyTimer, AFarTimerThatIsCancelledDoesNotKeepRunFromReturning) {
  const auto start = Clock::now();
  TypeParam far(this->io_, 1h);
  TypeParam soon(this->io_, 1ms);
  far.async_wait(this->handler("far"));
  soon.async_wait([&](error_code) { far.cancel(); });
  this->io_.run();
  EXPECT_LT(Clock::now() - start, 10s);
  EXPECT_EQ(this->log_, (std::vector<std::string>{"far aborted"}));
}

TYPED_TEST(SteadyTimer, DestructionCancels) {
  {
    TypeParam timer(this->io_, 1h);
    timer.async_wait(this->handler("wait"));
  }
  this->io_.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"wait aborted"}));
}

TYPED_TEST(SteadyTimer, TheContextMayEndBeforeTheWait) {
  auto owned = std::make_shared<int>(7);
  {
    net::io_context io;
    auto timer = std::make_shared<TypeParam>(io, 1h);
    timer->async_wait([timer, owned](error_code) { ADD_FAILURE() << "was called"; });
    TypeParam& cancelled = *timer;
    timer.reset();
    cancelled.cancel_one();
  }
  EXPECT_EQ(owned.use_count(), 1) << "the handler, and the timer that it held, are gone";
}

TYPED_TEST(SteadyTimer, AMovedTimerTakesItsWaitsWithIt) {
  TypeParam from(this->io_, 100ms);
  from.async_wait(this->handler("moved"));
  const auto expiry = from.expiry();
  TypeParam to(std::move(from));
  EXPECT_EQ(to.expiry(), expiry);
  // NOLINTNEXTLINE(bugprone-use-after-move): the test is that `from` is as newly constructed
  EXPECT_EQ(from.cancel(), 0U);
  EXPECT_EQ(from.expiry(), Clock::time_point());
  TypeParam target(this->io_, 1h);
  target.async_wait(this->handler("target"));
  target = std::move(to);
  from.expires_after(1ms);
  from.async_wait(this->handler("used again"));
  this->io_.run();
  EXPECT_EQ(this->log_,
            (std::vector<std::string>{"target aborted", "used again done", "moved done"}));
}

TYPED_TEST(SteadyTimer, MovedToAnotherContextAndToAnotherExecutorType) {
  net::io_context other;
  TypeParam here(this->io_, 1h);
  here.async_wait(this->handler("here"));
  here = TypeParam(other, 1ms);
  here.async_wait(this->handler("there"));
  this->io_.run();
  other.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"here aborted", "there done"}));

  using Narrow =
      typename TypeParam::template rebind_executor<net::io_context::executor_type>::other;
  Narrow narrow(this->io_, 1ms);
  narrow.async_wait(this->handler("narrow"));
  TypeParam wide(std::move(narrow));
  this->io_.restart();
  this->io_.run();
  EXPECT_EQ(this->log_.back(), "narrow done");
}

TYPED_TEST(SteadyTimer, BlockingWait) {
  TypeParam timer(this->io_, 3ms);
  timer.wait();
  EXPECT_GE(Clock::now(), timer.expiry());
  error_code error;
  timer.wait(error);
  EXPECT_FALSE(error);
}

TYPED_TEST(SteadyTimer, TheLargestAndTheSmallestTimes) {
  TypeParam never(this->io_, Clock::duration::max());
  TypeParam at_the_end(this->io_, Clock::time_point::max());
  TypeParam long_ago(this->io_, Clock::time_point::min());
  never.async_wait(this->handler("never"));
  at_the_end.async_wait(this->handler("at the end"));
  long_ago.async_wait(this->handler("long ago"));
  this->io_.run_for(20ms);
  EXPECT_EQ(this->log_, (std::vector<std::string>{"long ago done"}));
}

TYPED_TEST(SteadyTimer, CallsTheHandlerOnItsAssociatedExecutor) {
  net::thread_pool pool(1);
  TypeParam timer(this->io_, 1ms);
  std::promise<std::thread::id> ran;
  timer.async_wait(
      net::bind_executor(pool, [&](error_code) { ran.set_value(std::this_thread::get_id()); }));
  this->io_.run();
  const std::thread::id where = ran.get_future().get();
  EXPECT_NE(where, std::this_thread::get_id());
  pool.join();
}

TYPED_TEST(SteadyTimer, RunsOnAStrandInAThreadPool) {
  net::thread_pool pool(2);
  TypeParam timer(net::make_strand(pool), 2ms);
  std::promise<error_code> result;
  timer.async_wait([&](error_code error) { result.set_value(error); });
  EXPECT_FALSE(result.get_future().get());
  pool.join();
}

TYPED_TEST(SteadyTimer, AHandlerThatThrowsLeavesRunAndTheOtherWaitsGoOn) {
  TypeParam first(this->io_, 1ms);
  TypeParam second(this->io_, 1ms);
  first.async_wait([](error_code) { throw std::runtime_error("handler"); });
  second.async_wait(this->handler("second"));
  EXPECT_THROW(this->io_.run(), std::runtime_error);
  this->io_.run();
  EXPECT_EQ(this->log_, (std::vector<std::string>{"second done"}));
}

TYPED_TEST(SteadyTimer, WorksBesideAsiosOwnTimers) {
  TypeParam ours(this->io_, 4ms);
  net::steady_timer theirs(this->io_, 2ms);
  net::system_timer wall(this->io_, 6ms);
  ours.async_wait(this->handler("4"));
  theirs.async_wait(this->handler("2"));
  wall.async_wait(this->handler("6"));
  this->io_.run();
  // Each kind has a queue of its own. If the loop is late, waits complete queue by queue.
  std::sort(this->log_.begin(), this->log_.end());
  EXPECT_EQ(this->log_, (std::vector<std::string>{"2 done", "4 done", "6 done"}));
}

}  // namespace
}  // namespace carillon::testing
