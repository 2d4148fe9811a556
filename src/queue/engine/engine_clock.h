// The engine's own reading of the time: UTC that is never set back, and monotonic milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "carillon/queue/job.h"
#include "carillon/queue/now.h"

namespace carillon::queue {

// When the wall clock falls behind what was seen before and has passed since, because somebody set
// it back, UTC goes on here at the pace of the monotonic clock, ahead of the wall clock, until that
// is set forward or the process starts anew after it has caught up. So a delay lasts as long as it
// was asked for, and nothing is due twice.
//
// A deadline is counted from the *end* of the running millisecond and compared with its *start*: it
// is never early by a fraction.
class EngineClock {
 public:
  // `floor`: UTC starts here if the wall clock is behind it.
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

  // The millisecond that is running: what is due at it, or before, is due.
  UtcMs utc() const { return utc_ns_ / kNsPerMs; }
  std::uint64_t mono() const { return mono_ns_ / kNsPerMs; }

  // The first one that is wholly ahead: where a delay begins to count.
  UtcMs utc_from() const { return (utc_ns_ + kNsPerMs - 1) / kNsPerMs; }
  std::uint64_t mono_from() const { return (mono_ns_ + kNsPerMs - 1) / kNsPerMs; }

  // Of the wall clock, rounded up; 0 unless that was set back.
  Millis ahead() const { return (ahead_ns_ + kNsPerMs - 1) / kNsPerMs; }

  // When the millisecond begins, in ns of the monotonic clock; UINT64_MAX when that is more than
  // 584 years away.
  std::uint64_t mono_ns_at_utc(UtcMs ms) const {
    if (ms <= utc()) return mono_ns_;
    const std::uint64_t until = mono_ns_at(ms - utc()) - utc_ns_ % kNsPerMs;
    return until > UINT64_MAX - mono_ns_ ? UINT64_MAX : mono_ns_ + until;
  }
  static std::uint64_t mono_ns_at(std::uint64_t ms) {
    return ms > UINT64_MAX / kNsPerMs ? UINT64_MAX : ms * kNsPerMs;
  }

 private:
  static constexpr std::uint64_t kNsPerMs = 1'000'000;

  std::uint64_t mono_ns_;
  std::uint64_t utc_ns_;
  std::uint64_t ahead_ns_;
};

}  // namespace carillon::queue
