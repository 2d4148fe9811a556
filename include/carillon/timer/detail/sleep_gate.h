// SleepGate: how the timer thread says until when it sleeps, and how who schedules finds out
// whether that is too long.
//
// The thread that schedules                       The timer thread
//   1. publishes its deadline (seq_cst store)       1. announce(until)               (seq_cst
//      store)
//   2. must_wake(deadline)?  (seq_cst load)         2. looks at all deadlines again  (seq_cst
//      loads)
//   3. if so, wakes the timer thread                3. if one is before `until`: stay_awake(), and
//      starts over; else sleeps
//
// All four are in one total order, so of the two second steps at least one sees the other's first:
// a deadline is never slept past. An awake timer thread is never woken, and of many who would wake
// it one does.
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

  // --- any thread that has published a deadline at `deadline`. True: the caller must wake the
  // timer thread; nobody else will.
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
