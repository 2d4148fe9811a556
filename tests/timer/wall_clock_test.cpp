// Timers at a time of the wall clock follow the clock when it is set; timers with a delay do not.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class WallClock : public ::testing::Test {
 protected:
  const WallTime start_{std::chrono::sys_days(std::chrono::year(2030) / 6 / 1)};
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(SteadyTime(500s), start_);
  TimerService timers_{{.clock = clock_}};
  std::vector<std::string> log_;
};

TEST_F(WallClock, FiresAtItsTime) {
  timers_.schedule_at(start_ + 10s, [&] { log_.emplace_back("fired"); });
  clock_->advance(10s - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(WallClock, SetForwardPastTheTimeFiresAtOnce) {
  timers_.schedule_at(start_ + 1h, [&] { log_.emplace_back("wall"); });
  timers_.schedule_after(1h, [&] { log_.emplace_back("delay"); });
  clock_->set_wall(start_ + 2h);
  EXPECT_EQ(log_, (std::vector<std::string>{"wall"}));
  clock_->advance(1h);
  EXPECT_EQ(log_, (std::vector<std::string>{"wall", "delay"}));
}

TEST_F(WallClock, SetForwardInPartShortensTheWait) {
  timers_.schedule_at(start_ + 1h, [&] { log_.emplace_back("wall"); });
  clock_->set_wall(start_ + 50min);
  clock_->advance(10min - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(WallClock, SetBackLengthensTheWaitAndNothingFiresEarly) {
  timers_.schedule_at(start_ + 1h, [&] { log_.emplace_back("wall"); });
  clock_->advance(30min);
  clock_->set_wall(start_ - 1h);
  clock_->advance(2h - 1ns);
  EXPECT_TRUE(log_.empty());
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(WallClock, AfterTheClockWasSetBackNewTimersFireAtTheirTimeByTheNewClock) {
  timers_.schedule_at(start_ + 1h, [&] { log_.emplace_back("first"); });
  clock_->advance(1h);
  clock_->set_wall(start_ - 1h);
  timers_.schedule_at(start_ - 30min, [&] { log_.emplace_back("second"); });
  timers_.schedule_at(start_ + 30min, [&] { log_.emplace_back("third"); });
  clock_->settle();
  EXPECT_EQ(log_.size(), 1U) << "not at once";
  clock_->advance(30min - 1ns);
  EXPECT_EQ(log_.size(), 1U);
  clock_->advance(1ns);
  EXPECT_EQ(log_.size(), 2U);
  clock_->advance(1h);
  EXPECT_EQ(log_, (std::vector<std::string>{"first", "second", "third"}));
}

TEST_F(WallClock, CancelAndReschedule) {
  TimerHandle one = timers_.schedule_at(start_ + 1h, [&] { log_.emplace_back("one"); });
  TimerHandle two = timers_.schedule_at(start_ + 2h, [&] { log_.emplace_back("two"); });
  EXPECT_TRUE(one.cancel());
  EXPECT_TRUE(two.reschedule_at(start_ + 10min));
  clock_->advance(10min);
  EXPECT_EQ(log_, (std::vector<std::string>{"two"}));
}

TEST_F(WallClock, TheMachinesClocksWork) {
  TimerService timers;
  std::atomic<int> fired{0};
  timers.schedule_at(std::chrono::system_clock::now() + 2ms, [&] { ++fired; });
  timers.schedule_at(std::chrono::steady_clock::now() + 3ms, [&] { ++fired; });
  timers.schedule_after(1ms, [&] { ++fired; });
  EXPECT_TRUE(timers.drain().empty());
  EXPECT_EQ(fired, 3);
}

}  // namespace
}  // namespace carillon::testing
