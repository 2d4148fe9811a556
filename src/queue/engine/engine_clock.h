// The engine's clock: UTC that is never set back, and monotonic milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "carillon/queue/job.h"
#include "carillon/queue/now.h"

namespace carillon::queue {

// When somebody sets the wall clock back, this clock's UTC goes on at the pace of the monotonic
// clock, and so runs ahead of the wall clock. That ends when the wall clock is set forward, or when
// the process starts anew after the wall clock has caught up. So a delay lasts as long as was asked
// for, and nothing is due twice.
//
// A deadline is counted from the *end* of the running millisecond and compared with its *start*. So
// nothing is early by a fraction of a millisecond.
class EngineClock {
 public:
  // UTC starts from the wall clock, but not before `floor`.
  EngineClock(Now now, UtcMs floor)
      : mono_ns_(now.mono_ns),
        utc_ns_(std::max(now.utc_ns, floor * kNsPerMs)),
        ahead_ns_(utc_ns_ - now.utc_ns) {}

  void observe(Now now) {
    const std::uint64_t passed = now.mono_ns > mono_ns_ ? now.mono_ns - mono_ns_ : 0;
    mono_ns_ += passed;
    utc_ns_ = std::max(now.utc_ns, utc_ns_ + passed);
    ahead_ns_ = utc_ns_ - now.utc_ns;
  }

  // The running millisecond. A job whose due time is this or less is due.
  UtcMs utc() const { return utc_ns_ / kNsPerMs; }
  std::uint64_t mono() const { return mono_ns_ / kNsPerMs; }

  // The first millisecond that is wholly in the future: a delay counts from here.
  UtcMs utc_from() const { return (utc_ns_ + kNsPerMs - 1) / kNsPerMs; }
  std::uint64_t mono_from() const { return (mono_ns_ + kNsPerMs - 1) / kNsPerMs; }

  // Whole milliseconds that are surely left. Less than was asked for from the first moment on, as
  // in beanstalkd: a deadline may have been set up to a millisecond before it was counted from.
  Millis left_until(UtcMs due) const { return left(due, utc_from()); }
  Millis left_until_mono(std::uint64_t ms) const { return left(ms, mono_from()); }

  // How far UTC is ahead of the wall clock, rounded up; 0 unless the wall clock was set back.
  Millis ahead() const { return (ahead_ns_ + kNsPerMs - 1) / kNsPerMs; }

  // Returns the monotonic time (ns) at which a UTC millisecond begins; UINT64_MAX if that does not
  // fit (584 years).
  std::uint64_t mono_ns_at_utc(UtcMs ms) const {
    if (ms <= utc()) return mono_ns_;
    const std::uint64_t until = mono_ns_at(ms - utc()) - utc_ns_ % kNsPerMs;
    return until > UINT64_MAX - mono_ns_ ? UINT64_MAX : mono_ns_ + until;
  }
  // The same for a millisecond of the monotonic clock.
  static std::uint64_t mono_ns_at(std::uint64_t ms) {
    return ms > UINT64_MAX / kNsPerMs ? UINT64_MAX : ms * kNsPerMs;
  }

 private:
  static constexpr std::uint64_t kNsPerMs = 1'000'000;

  static Millis left(std::uint64_t until, std::uint64_t from) {
    return until > from ? until - from - 1 : 0;
  }

  std::uint64_t mono_ns_;
  std::uint64_t utc_ns_;
  std::uint64_t ahead_ns_;
};

}  // namespace carillon::queue
