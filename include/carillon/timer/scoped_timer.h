// ScopedTimer: owns one timer of a TimerService, and cancels it when it is destroyed.
//
//   class Connection {
//     void sent() { timeout_ = timers_.schedule_after(30s, [this] { drop(); }); }  // the earlier
//     void answered() { timeout_.reset(); }                                        // one is gone
//     ...
//     carillon::ScopedTimer timeout_;  // the last member: the task uses the others
//   };
//
// Why: a task that refers to an object must not run when the object is gone. A TimerHandle is a
// value and cancels nothing by itself.
//
// Contracts
// ---------
//  - When the destructor, reset() or an assignment returns, the task of the timer that it owned
//    neither runs nor will run, and its destructor has ended: TimerHandle::cancel_and_wait(). So do
//    not hold a lock that the task may take. Inside that task itself, they return at once.
//  - It can be moved, and outlive the service.
//  - In a child of fork() it waits for nobody (timer_handle.h).
//
// Thread safety: as a value; one thread at a time. The timer may fire meanwhile.
#pragma once

#include <utility>

#include "carillon/timer/timer_handle.h"

namespace carillon {

class [[nodiscard]] ScopedTimer {
 public:
  ScopedTimer() noexcept = default;  // owns nothing
  explicit ScopedTimer(TimerHandle timer) noexcept : timer_(timer) {}
  ScopedTimer(ScopedTimer&& other) noexcept : timer_(other.release()) {}
  ScopedTimer& operator=(ScopedTimer&& other) noexcept {
    if (this != &other) *this = other.release();
    return *this;
  }
  ScopedTimer& operator=(TimerHandle timer) noexcept {
    reset();
    timer_ = timer;
    return *this;
  }
  ~ScopedTimer() { reset(); }

  // Returns true if this call has cancelled the timer, as TimerHandle::cancel() does.
  bool reset() noexcept { return release().cancel_and_wait(); }

  // Lets go of the timer without cancelling it.
  TimerHandle release() noexcept { return std::exchange(timer_, TimerHandle()); }

  // timer->reschedule_after(30s), timer->state(), ...
  TimerHandle* operator->() noexcept { return &timer_; }
  const TimerHandle& handle() const noexcept { return timer_; }

 private:
  TimerHandle timer_;
};

}  // namespace carillon
