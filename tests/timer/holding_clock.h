// HoldingClock: the machine's clock, with an alarm that delays each thread that wakes the timer
// thread. So a test sees whether the alarm, and the service with it, is destroyed meanwhile.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "carillon/timer/timer_clock.h"

namespace carillon::testing {

// wake() returns when the alarm is destroyed, after 10 000 yields at the latest.
class HoldingClock : public TimerClock {
 public:
  struct Seen {
    std::atomic<bool> sleeping{false};
    std::atomic<bool> destroyed{false};
    std::atomic<bool> destroyed_in_use{false};
  };

  explicit HoldingClock(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  SteadyTime now() noexcept override { return machine_->now(); }
  WallTime wall_now() noexcept override { return machine_->wall_now(); }
  std::unique_ptr<TimerAlarm> make_alarm() override {
    return std::make_unique<Holding>(machine_->make_alarm(), seen_);
  }

 private:
  struct Holding : TimerAlarm {
    Holding(std::unique_ptr<TimerAlarm> alarm, std::shared_ptr<Seen> what)
        : inner(std::move(alarm)), seen(std::move(what)) {}
    ~Holding() override { seen->destroyed = true; }
    void sleep_until(SteadyTime steady, WallTime wall) override {
      seen->sleeping = true;
      inner->sleep_until(steady, wall);
    }
    void wake() noexcept override {
      const std::shared_ptr<Seen> kept = seen;
      inner->wake();
      for (int i = 0; i < 10'000 && !kept->destroyed; ++i) std::this_thread::yield();
      if (kept->destroyed) kept->destroyed_in_use = true;
    }

    std::unique_ptr<TimerAlarm> inner;
    std::shared_ptr<Seen> seen;
  };

  std::shared_ptr<TimerClock> machine_ = machine_clock();
  std::shared_ptr<Seen> seen_;
};

}  // namespace carillon::testing
