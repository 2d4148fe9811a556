// What the racing tests of the hazards share: executors to run them on, and slots through which
// handles pass from thread to thread.
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

// Slots through which one thread passes handles to another.
class Mailboxes {
 public:
  explicit Mailboxes(std::size_t count) : handles_(count), full_(count) {}
  void put(std::size_t slot, TimerHandle handle) {
    handles_[slot] = handle;
    full_[slot].store(true, std::memory_order_release);
  }
  TimerHandle wait_for(std::size_t slot) const {
    while (!full_[slot].load(std::memory_order_acquire)) std::this_thread::yield();
    return handles_[slot];
  }

 private:
  std::vector<TimerHandle> handles_;
  std::vector<std::atomic<bool>> full_;
};

inline TimerOptions fine(Executor executor, unsigned shards = 1) {
  return {.tick = std::chrono::microseconds(1), .executor = std::move(executor), .shards = shards};
}

// Instantiated in hazard_race_test.cpp, for all files.
class HazardRace : public ::testing::TestWithParam<unsigned> {
 protected:
  // 0: on the timer thread.
  Executor executor() const {
    return GetParam() == 0 ? Executor::timer_thread() : Executor::pool(GetParam());
  }
};

}  // namespace carillon::testing
