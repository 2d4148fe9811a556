// Interval, on a manual clock: the times of its ticks, what happens to those that were missed, and
// to those that were given up.
#include "carillon/timer/interval.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include "carillon/timer/coroutine.h"
#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"
#include "carillon/timer/with_timeout.h"

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class Intervals : public ::testing::Test {
 protected:
  using Times = std::vector<std::int64_t>;

  std::int64_t now_ms() const { return clock_->now().time_since_epoch() / 1ms; }

  // Notes the time of each tick. The work after the first one takes `first_work`.
  Coroutine<> note_ticks(Interval& interval, std::chrono::milliseconds first_work = 0ms) {
    for (;;) {
      co_await interval.tick();
      ticks_.push_back(now_ms());
      if (ticks_.size() == 1) clock_->pass(first_work);
    }
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Times ticks_;
  std::optional<TimerService> timers_{std::in_place, TimerOptions{.clock = clock_}};
};

TEST_F(Intervals, TickAtWholePeriodsUntilTheServiceIsStopped) {
  Interval interval(*timers_, {.period = 10ms});
  note_ticks(interval).detach();
  clock_->advance(35ms);
  EXPECT_EQ(ticks_, (Times{10, 20, 30}));
  timers_.reset();
  EXPECT_EQ(ticks_.size(), 3U);
}

TEST_F(Intervals, TheFirstTickMayComeAtOnce) {
  Interval interval(*timers_, {.period = 10ms, .first = 0ms});
  note_ticks(interval).detach();
  clock_->advance(25ms);
  EXPECT_EQ(ticks_, (Times{0, 10, 20}));
}

TEST_F(Intervals, ATickWithSlackThatIsAskedToStopWakesAtOnce) {
  clock_->advance(1h);
  Interval interval(*timers_, {.period = 100s, .slack = 60s});
  std::stop_source stop;
  [](Interval& ticks, std::stop_token token, Times& woken, ManualClock& clock) -> Coroutine<> {
    if (!co_await ticks.tick(token)) woken.push_back(clock.now().time_since_epoch() / 1s);
  }(interval, stop.get_token(), ticks_, *clock_)
                                                                                      .detach();
  clock_->advance(10s);
  stop.request_stop();
  clock_->settle();
  EXPECT_EQ(ticks_, Times{3610}) << "and not up to 60 s later";
}

TEST_F(Intervals, MissedTicksAreSkippedByDefault) {
  Interval interval(*timers_, {.period = 10ms});
  note_ticks(interval, 35ms).detach();
  clock_->advance(10ms);
  clock_->advance(29ms);
  EXPECT_EQ(ticks_, (Times{10, 50, 60, 70})) << "it was 45 when the work had ended";
}

TEST_F(Intervals, MissedTicksMayComeInABurst) {
  Interval interval(*timers_, {.period = 10ms, .missed = MissedRuns::kBurst});
  note_ticks(interval, 35ms).detach();
  clock_->advance(10ms);
  clock_->advance(29ms);
  EXPECT_EQ(ticks_, (Times{10, 45, 45, 45, 50, 60, 70}));
}

TEST_F(Intervals, OrBeginAnewOnePeriodAfterTheWork) {
  Interval interval(*timers_, {.period = 10ms, .missed = MissedRuns::kDelay});
  note_ticks(interval, 35ms).detach();
  clock_->advance(10ms);
  clock_->advance(29ms);
  EXPECT_EQ(ticks_, (Times{10, 55, 65}));
}

TEST_F(Intervals, ATickThatWasGivenUpComesAgain) {
  Interval interval(*timers_, {.period = 10ms});
  std::stop_source stop;
  std::vector<bool> slept;
  auto body = [&]() -> Coroutine<> {
    slept.push_back(co_await interval.tick(stop.get_token()));
    slept.push_back(co_await with_timeout(*timers_, interval.tick(), 1ms));
    slept.push_back(co_await with_timeout(*timers_, interval.tick(), 1min));
    ticks_.push_back(now_ms());
    co_await interval.tick();
    ticks_.push_back(now_ms());
  };
  body().detach();
  clock_->advance(5ms);
  stop.request_stop();
  clock_->advance(35ms);
  EXPECT_EQ(slept, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(ticks_, (Times{10, 20}));
}

TEST_F(Intervals, MayBeReset) {
  Interval interval(*timers_, {.period = 10ms});
  note_ticks(interval).detach();
  clock_->advance(10ms);
  clock_->advance(4ms);
  EXPECT_EQ(ticks_, (Times{10}));
  Interval other(*timers_, {.period = 10ms});
  clock_->advance(4ms);
  other.reset();
  ticks_.clear();
  timers_->schedule_after(9ms, [&] { ticks_.push_back(-1); });
  auto body = [&]() -> Coroutine<> {
    co_await other.tick();
    ticks_.push_back(now_ms());
  };
  body().detach();
  clock_->advance(11ms);
  EXPECT_EQ(ticks_, (Times{20, -1, 28}));
}

TEST_F(Intervals, TakeASlackAndAnyPeriodThatIsPositive) {
  EXPECT_THROW(Interval(*timers_, {.period = 0ms}), std::invalid_argument);
  Interval rare(*timers_, {.period = std::chrono::hours::max()});
  note_ticks(rare).detach();
  Interval relaxed(*timers_, {.period = 100ms, .slack = 50ms});
  note_ticks(relaxed).detach();
  clock_->advance(250ms);
  EXPECT_EQ(ticks_, (Times{128, 224})) << "the roundest ticks from 100 and from 200 on";
}

}  // namespace
}  // namespace carillon::testing
