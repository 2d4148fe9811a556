// SleepGate: tells a thread that schedules a timer whether it must wake the timer thread for it.
//
//   A thread that schedules                     The timer thread
//     1. publishes its deadline (store)           1. announce(until)  (store)
//     2. must_wake(deadline)?   (load)            2. reads all deadlines again     (loads)
//     3. if so, wakes the timer thread            3. sleeps; but if a deadline is before `until`:
//                                                    stay_awake(), and starts over
//
// These stores and loads are all seq_cst, so they are in one total order: at least one of the two
// threads sees in its step 2 what the other stored in its step 1. So the timer thread never sleeps
// past a deadline. It is not woken while it is awake, and of many threads that want to wake it one
// does.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "carillon/timer/detail/atomics.h"

namespace carillon::detail {

template <class Atomics = MachineAtomics>
class SleepGate {
 public:
  // --- the timer thread. `until` is in ns of its clock.
  void announce(std::int64_t until) noexcept { until_.store(until, std::memory_order_seq_cst); }
  void stay_awake() noexcept { until_.store(kAwake, std::memory_order_seq_cst); }

  // --- any thread

  // Call this after having published a deadline at `deadline`. Returns true if the caller must wake
  // the timer thread; no other thread will.
  bool must_wake(std::int64_t deadline) noexcept {
    std::int64_t until = until_.load(std::memory_order_seq_cst);
    while (deadline < until) {
      if (until_.compare_exchange_weak(until, kAwake, std::memory_order_seq_cst)) return true;
    }
    return false;
  }

 private:
  static constexpr std::int64_t kAwake = std::numeric_limits<std::int64_t>::min();

  typename Atomics::template Atomic<std::int64_t> until_{kAwake};
};

}  // namespace carillon::detail
