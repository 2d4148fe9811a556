// The engine's clocks: UTC as the wall clock shows it, steady time, which nobody sets, and
// monotonic milliseconds.
//
//   EngineClock clock(now, stored_marks, options.boot);
//   if (clock.observe(later) != 0) ...                // the wall clock was set meanwhile
//   if (clock.due_of(record) <= clock.utc()) ...      // the job is due
//   wheel.schedule(job, Moment{clock.tick_of(clock.due_of(record))});
//
// *Steady time* starts as UTC when a store is first used, and goes on at the pace of the monotonic
// clock, over restarts of the process too. The *lead* is how far UTC is ahead of it. Slewing moves
// both clocks alike, so the lead changes only when the wall clock is set: that is a *step*.
//
// A moment that a client named is due by UTC alone. A delay was counted from now, and now may have
// been wrong: its record keeps the lead of that moment. The job is due when UTC has come to the due
// time *and* steady time has come to where the delay ends. So a clock that was behind, and has been
// put right since, makes no delay shorter.
//
// For example, the store is first used when the clock shows 12:00 though it is 13:00, and a job is
// put with a delay of 30 minutes. Its due time is 12:30, and the lead in its record is 0. Then the
// clock is put right. The lead is 60 minutes now, so the delay ends at 12:30 + 60 minutes = 13:30.
//
// The monotonic clock starts anew when the machine boots. How far the wall clock was set meanwhile
// is not known then. Steady time goes on with UTC, with these doubts:
//  - It does not go back: if UTC is before the time that was stored last, the wall clock was set
//    back by at least so much.
//  - If the wall clock was set back before the boot, that was perhaps a mistake which the boot has
//    mended. The lead rises as far as it was then, but not so far that steady time goes back.
//  - If the wall clock is set back after the boot, it was perhaps ahead at the boot: steady time
//    gives back what it has gained over the boot. So the lead falls by so much less. This is right
//    for delays from before the boot. Those that were counted since then are known by their *era*,
//    and are counted anew.
//
// A deadline is counted from the *end* of the running millisecond and compared with its *start*. So
// nothing is early by a fraction of a millisecond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "carillon/queue/job.h"
#include "carillon/queue/now.h"
#include "carillon/queue/store.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::queue {

class EngineClock {
 public:
  // Goes on from what is stored. `boot` is EngineOptions::boot.
  EngineClock(Now now, const Watermarks& stored, std::string_view boot)
      : mono_ns_(now.mono_ns), utc_ns_(now.utc_ns), wall_ns_(wall_minus_mono(now)) {
    if (lead_of(stored) == kNoLead) {
      steady_ns_ = wall_ns_;
    } else if (!boot.empty() && boot == stored.boot) {
      era_ = stored.era;
      boot_era_ = stored.boot_era;
      steady_ns_ = stored.steady_ns;
      boot_lead_ = stored.boot_lead;
      gained_ns_ = stored.gained_ns;
      set_wall(std::exchange(wall_ns_, stored.wall_ns));
    } else {
      era_ = boot_era_ = stored.era + 1;
      const std::int64_t lead_ns = stored.wall_ns - stored.steady_ns;
      const std::int64_t highest_ns = stored.boot_lead * kNsPerMs;
      const auto passed = static_cast<std::int64_t>(utc_ns_ - stored.time * kNs);
      const std::int64_t moved = std::min(passed, std::max<std::int64_t>(0, highest_ns - lead_ns));
      const std::int64_t given_back = std::clamp<std::int64_t>(-passed, 0, stored.gained_ns);
      steady_ns_ = wall_ns_ - lead_ns - moved - given_back;
      gained_ns_ = passed - moved;
      boot_lead_ = lead_of(wall_ns_ - moved, steady_ns_);
    }
    lead_ = lead_of(wall_ns_, steady_ns_);
    boot_lead_ = std::max(boot_lead_, lead_);
    line_ns_ = steady_ns_;
    line_lead_ = lead_;
    tick_ = tick_of(utc());
  }

  // Returns how far the wall clock was set forward since the last call (negative: back), in ns; 0
  // if it was not, or by less than a millisecond.
  std::int64_t observe(Now now) {
    mono_ns_ = std::max(mono_ns_, now.mono_ns);
    utc_ns_ = now.utc_ns;
    const std::int64_t step = set_wall(wall_minus_mono(now));
    tick_ = std::max(tick_, tick_of(utc()));
    return step;
  }

  // The running millisecond. A job whose due_of() is this or less is due.
  UtcMs utc() const { return utc_ns_ / kNs; }
  std::uint64_t mono() const { return mono_ns_ / kNs; }

  // The first millisecond that is wholly in the future: a delay counts from here.
  UtcMs utc_from() const { return (utc_ns_ + kNs - 1) / kNs; }
  std::uint64_t mono_from() const { return (mono_ns_ + kNs - 1) / kNs; }

  // In ms, rounded down.
  std::int64_t lead() const { return lead_; }
  // Notes that the job's due time is counted from now.
  void counts_from_now(JobRecord& job) const {
    job.lead = lead_;
    job.era = era_;
  }
  // Returns true if a job that is due in `in` ms, or at `at` if that is given, is due by kLastDue.
  bool fits(Millis in, std::optional<UtcMs> at) const {
    return at ? *at <= kLastDue : in <= kLastDue && utc_from() <= kLastDue - in;
  }
  // Lets the job be due then, and sets its delay. REQUIRES: that fits.
  void set_due(JobRecord& job, Millis in, std::optional<UtcMs> at) const {
    job.due = at.value_or(in > 0 ? utc_from() + in : utc());
    job.delay = job.due > utc() ? job.due - utc() : 0;
    job.lead = kNoLead;
    job.era = 0;
    if (!at) counts_from_now(job);
  }
  // The lead that is stored; kNoLead if none is.
  static std::int64_t lead_of(const Watermarks& stored) {
    if (stored.wall_ns == kNoLead || stored.steady_ns == kNoLead || stored.boot_lead == kNoLead)
      return kNoLead;
    return lead_of(stored.wall_ns, stored.steady_ns);
  }

  // Returns the time that UTC will show when the job is due, if nobody sets the wall clock.
  UtcMs due_of(const JobRecord& job) const { return std::max(job.due, delay_end(job)); }
  // Returns the time that UTC will show when the job's delay has passed by steady time; of a job
  // whose due time a client has named, that due time. An end after which it is not early even
  // though steady time is not exact.
  UtcMs delay_end(const JobRecord& job) const {
    if (job.lead == kNoLead || job.lead == lead_) return job.due;
    const std::int64_t end = static_cast<std::int64_t>(job.due) + (lead_ - job.lead) + kLeadError;
    return static_cast<UtcMs>(std::clamp<std::int64_t>(end, 0, kLastDue));
  }

  // How much steady time has given back with the last step, in ms, rounded down.
  Millis given_back() const { return static_cast<Millis>(given_back_ns_ / kNsPerMs); }
  // Returns true if the job's delay was counted after the boot and before steady time gave back: so
  // that does not concern it, and delay_end() is too late by as much.
  bool is_before_giving_back(const JobRecord& job) const {
    return job.lead != kNoLead && job.era >= boot_era_ && job.era < era_;
  }

  // Whole milliseconds that are surely left. Less than was asked for from the first moment on, as
  // in beanstalkd: a deadline may have been set up to a millisecond before it was counted from.
  Millis left_until(UtcMs due) const { return left(due, utc_from()); }
  Millis left_until_mono(std::uint64_t ms) const { return left(ms, mono_from()); }

  // What the wheels of due times run on: milliseconds on the grid of UTC, which never run back and
  // are as long as those of the monotonic clock.
  Tick tick() const { return tick_; }
  // Returns the tick at which UTC comes to `ms`.
  Tick tick_of(UtcMs ms) const {
    return static_cast<Tick>(std::max<std::int64_t>(0, static_cast<std::int64_t>(ms) - line_lead_));
  }
  // Returns the monotonic time (ns) at which a tick begins; UINT64_MAX if that does not fit (584
  // years).
  std::uint64_t mono_ns_at_tick(Tick tick) const {
    if (tick <= tick_) return mono_ns_;
    const std::uint64_t until = mono_ns_at(tick - tick_of(utc())) - utc_ns_ % kNs;
    return until > UINT64_MAX - mono_ns_ ? UINT64_MAX : mono_ns_ + until;
  }
  // The same for a millisecond of the monotonic clock.
  static std::uint64_t mono_ns_at(std::uint64_t ms) {
    return ms > UINT64_MAX / kNs ? UINT64_MAX : ms * kNs;
  }

  // To be stored: see Watermarks.
  std::int64_t wall_ns() const { return wall_ns_; }
  std::int64_t steady_ns() const { return steady_ns_; }
  std::int64_t boot_lead() const { return boot_lead_; }
  std::int64_t gained_ns() const { return gained_ns_; }
  std::uint32_t era() const { return era_; }
  std::uint32_t boot_era() const { return boot_era_; }

 private:
  static constexpr std::int64_t kNsPerMs = 1'000'000;
  static constexpr std::uint64_t kNs = 1'000'000;  // the same, for what is unsigned
  // ns. A larger difference than this is a step. The two clocks are not read at the same moment.
  static constexpr std::int64_t kTolerance = 1'000'000;
  // ms. So far may the difference of two leads be too small: rounding, and the tolerance.
  static constexpr std::int64_t kLeadError = 2;

  static std::int64_t wall_minus_mono(Now now) {
    return static_cast<std::int64_t>(now.utc_ns - now.mono_ns);
  }
  // Returns the step; 0 if it is none.
  std::int64_t set_wall(std::int64_t wall_ns) {
    const std::int64_t step = wall_ns - wall_ns_;
    if (std::abs(step) <= kTolerance) return 0;
    given_back_ns_ = std::clamp<std::int64_t>(-step, 0, gained_ns_);
    gained_ns_ -= given_back_ns_;
    steady_ns_ -= given_back_ns_;
    wall_ns_ = wall_ns;
    lead_ = lead_of(wall_ns_, steady_ns_);
    line_lead_ = lead_of(wall_ns_, line_ns_);
    // By the new steady time every lead before would have been higher.
    if (given_back_ns_ > 0) {
      boot_lead_ += given_back_ns_ / kNsPerMs + 1;
      ++era_;
    }
    boot_lead_ = std::max(boot_lead_, lead_);
    return step;
  }
  static std::int64_t lead_of(std::int64_t wall_ns, std::int64_t steady_ns) {
    const std::int64_t lead_ns = wall_ns - steady_ns;
    return lead_ns / kNsPerMs - (lead_ns % kNsPerMs < 0 ? 1 : 0);
  }
  static Millis left(std::uint64_t until, std::uint64_t from) {
    return until > from ? until - from - 1 : 0;
  }

  std::uint64_t mono_ns_;
  std::uint64_t utc_ns_;
  // Minus the monotonic clock: UTC as of the last step, steady time, and the line of the ticks.
  std::int64_t wall_ns_;
  std::int64_t steady_ns_ = 0;
  std::int64_t line_ns_ = 0;
  std::int64_t lead_ = 0;
  std::int64_t line_lead_ = 0;
  std::int64_t boot_lead_ = INT64_MIN;
  std::int64_t gained_ns_ = 0;
  std::int64_t given_back_ns_ = 0;
  std::uint32_t era_ = 0;
  std::uint32_t boot_era_ = 0;
  Tick tick_ = 0;
};

}  // namespace carillon::queue
