// Shared by the tests that race: their executors, and mailboxes that pass handles between threads.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/timer/timer_service.h"

namespace carillon::testing {

// Numbered mailboxes, through which one thread passes handles to another.
class Mailboxes {
 public:
  explicit Mailboxes(std::size_t count) : handles_(count), full_(count) {}
  void put(std::size_t box, TimerHandle handle) {
    handles_[box] = handle;
    full_[box].store(true, std::memory_order_release);
  }
  TimerHandle wait_for(std::size_t box) const {
    while (!full_[box].load(std::memory_order_acquire)) std::this_thread::yield();
    return handles_[box];
  }

 private:
  std::vector<TimerHandle> handles_;
  std::vector<std::atomic<bool>> full_;
};

inline TimerOptions fine(TimerExecutor executor, unsigned shards = 1) {
  return {.tick = std::chrono::microseconds(1), .executor = std::move(executor), .shards = shards};
}

// Instantiated in hazard_race_test.cpp, for the tests of all files. The parameter is the number of
// threads of the pool; 0: tasks run on the timer thread.
class HazardRace : public ::testing::TestWithParam<unsigned> {
 protected:
  TimerExecutor executor() const {
    return GetParam() == 0 ? TimerExecutor::timer_thread() : TimerExecutor::pool(GetParam());
  }
};

}  // namespace carillon::testing
