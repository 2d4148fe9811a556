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
// A moment that a client has named is due by UTC only. A delay was counted from now, and now may
// have been wrong: its record keeps the lead of that time. The job is due when UTC has come to the
// due time *and* steady time has come to where the delay ends. So a clock that was behind, and has
// been put right since, makes no delay shorter.
//
// For example, the store is first used when the clock shows 12:00 though it is 13:00, and a job is
// put with a delay of 30 minutes. Its due time is 12:30, and the lead in its record is 0. Then the
// clock is put right. The lead is 60 minutes now, so the delay ends at 12:30 + 60 minutes = 13:30.
//
// The monotonic clock starts anew when the machine boots. Nobody knows then how far the wall clock
// was set meanwhile. Steady time goes on with UTC, with these doubts:
//  - It does not go back: if UTC is before the time that was stored last, the wall clock was set
//    back by at least the difference.
//  - If the wall clock was set back before the boot, that may have been a mistake which the boot
//    has mended. The lead rises as far as it was then, but not so far that steady time goes back.
//  - If the wall clock is set back after the boot, it may have been ahead at the boot: steady time
//    gives back what it has gained over the boot, and the lead falls less by this amount. This is
//    right for delays from before the boot. Delays that were counted since then are known by their
//    *era*, and are counted anew.
//
// Nothing is destroyed because of one reading of the clock: see clock_rises.h. A key's window and a
// job's `expires-in` end by steady time. An expiry at a moment comes when UTC is beyond doubt.
//
// A deadline is counted from the *end* of the running millisecond and compared with its *start*. So
// nothing is early, not even by a fraction of a millisecond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/job.h"
#include "carillon/queue/now.h"
#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "carillon/wheel/timer_node.h"
#include "queue/engine/state/clock_rises.h"

namespace carillon::queue {

class EngineClock {
 public:
  // Continues from what is stored. `boot` is EngineOptions::boot.
  EngineClock(Now now, const Watermarks& stored, std::string_view boot)
      : mono_ns_(now.mono_ns), utc_ns_(now.utc_ns), wall_ns_(wall_minus_mono(now)) {
    rises_ = ClockRises(stored.rises);
    wrong_since_ = stored.wrong_since;
    if (lead_of(stored) == kNoLead) {
      up_ns_ = steady_ns_ = wall_ns_;
    } else if (!boot.empty() && boot == stored.boot) {
      era_ = stored.era;
      boot_era_ = stored.boot_era;
      steady_ns_ = stored.steady_ns;
      boot_lead_ = stored.boot_lead;
      gained_ns_ = stored.gained_ns;
      up_ns_ = stored.up_ns;
      set_wall(std::exchange(wall_ns_, stored.wall_ns), stored.time);
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
      const auto mono_then = static_cast<std::int64_t>(stored.time * kNs) - stored.wall_ns;
      up_ns_ = stored.up_ns + mono_then - static_cast<std::int64_t>(mono_ns_);
      follow_rises(stored.time, lead_of(stored.wall_ns, stored.up_ns),
                   static_cast<Millis>(std::max<std::int64_t>(0, gained_ns_) / kNsPerMs));
    }
    lead_ = lead_of(wall_ns_, steady_ns_);
    boot_lead_ = std::max(boot_lead_, lead_);
    line_ns_ = steady_ns_;
    line_lead_ = lead_;
    tick_ = tick_of(utc());
  }

  // Returns how far the wall clock was set forward since the last call (negative: back), in ns; 0
  // if it was not set, or by less than a millisecond.
  std::int64_t observe(Now now) {
    const UtcMs shown = utc();
    mono_ns_ = std::max(mono_ns_, now.mono_ns);
    utc_ns_ = now.utc_ns;
    const std::int64_t step = set_wall(wall_minus_mono(now), shown);
    tick_ = std::max(tick_, tick_of(utc()));
    return step;
  }

  // The running millisecond. A job whose due_of() is this or less is due.
  UtcMs utc() const { return utc_ns_ / kNs; }
  std::uint64_t mono() const { return mono_ns_ / kNs; }

  // The first millisecond that is wholly in the future: a delay counts from here.
  UtcMs utc_from() const { return (utc_ns_ + kNs - 1) / kNs; }
  std::uint64_t mono_from() const { return (mono_ns_ + kNs - 1) / kNs; }

  // --- Time beyond doubt. All ends of jobs and keys that destroy something go by it.

  // Steady time, in ms: windows are compared with steady(), and counted from steady_from().
  Millis steady() const { return steady_ms(0) - std::min(steady_ms(0), steady_doubt()); }
  Millis steady_from() const { return steady_ms(kNs - 1); }
  // Returns the tick at which steady() reaches `steady`, or at which the minute of a doubt is over.
  Tick tick_of_steady(Millis steady) const {
    const std::int64_t at = static_cast<std::int64_t>(std::min(steady, kLastDue)) + lead_;
    return tick_surely_over(static_cast<UtcMs>(std::max<std::int64_t>(0, at)) + 1, steady_doubt());
  }
  // Returns true if a moment has come, by a clock beyond doubt.
  bool is_surely_over(UtcMs moment) const { return moment + doubt() <= utc(); }
  bool is_in_doubt() const { return doubt() > 0 || steady_doubt() > 0; }
  // Returns the tick at which is_surely_over() becomes true, or at which the minute of a doubt is
  // over.
  Tick tick_surely_over(UtcMs moment) const { return tick_surely_over(moment, doubt()); }
  Tick tick_beyond_doubt() const { return tick_ + rises_.doubt_left(uptime()); }

  // When the job expires by UTC; 0 if it does not.
  UtcMs expiry_of(const JobRecord& job) const {
    const JobExtras& extras = *job.extras;
    if (extras.expires == 0 || extras.expires_lead == kNoLead || extras.expires_lead == lead_)
      return extras.expires;
    const std::int64_t end =
        static_cast<std::int64_t>(extras.expires) + (lead_ - extras.expires_lead) + kLeadError;
    return static_cast<UtcMs>(std::clamp<std::int64_t>(end, 1, kLastDue));
  }
  // Returns true if no worker may get the job any more. It may be ended only if the expiry is sure.
  bool has_expired(const JobRecord& job) const {
    if (!job.extras) return false;
    const UtcMs end = expiry_of(job);
    return end != 0 && end <= utc();
  }
  bool has_surely_expired(const JobRecord& job) const {
    if (!has_expired(job)) return false;
    const bool is_span = job.extras->expires_lead != kNoLead;
    return expiry_of(job) + (is_span ? steady_doubt() : doubt()) <= utc();
  }

  // Returns the moment since which schedules had decided by a wrong clock when it was last set back
  // far; 0 if it never was.
  UtcMs wrong_since() const { return wrong_since_; }
  // Returns true if the last step was such a step back.
  bool has_settled() const { return has_settled_; }
  // Uptime (clock_rises.h), in ms, and the moment at which the wall clock would have shown it.
  Millis uptime() const {
    return static_cast<Millis>((up_ns_ + static_cast<std::int64_t>(mono_ns_)) / kNsPerMs);
  }
  UtcMs utc_at_uptime(Millis uptime) const {
    return static_cast<UtcMs>(
        std::max<std::int64_t>(0, static_cast<std::int64_t>(uptime) + lead_of(wall_ns_, up_ns_)));
  }

  // In ms, rounded down.
  std::int64_t lead() const { return lead_; }
  // The job's due time is counted from now.
  void counts_from_now(JobRecord& job) const {
    job.lead = lead_;
    job.era = era_;
  }
  // Returns true if a job that is due in `in` ms, or at `at` if that is given, is due by kLastDue.
  bool fits(Millis in, std::optional<UtcMs> at) const {
    return at ? *at <= kLastDue : in <= kLastDue && utc_from() <= kLastDue - in;
  }
  // Makes the job due then, and sets its delay. REQUIRES: fits().
  void set_due(JobRecord& job, Millis in, std::optional<UtcMs> at) const {
    CARILLON_REQUIRE(fits(in, at), job.id, in, at.value_or(0));
    job.due = at.value_or(in > 0 ? utc_from() + in : utc());
    job.delay = job.due > utc() ? job.due - utc() : 0;
    job.lead = kNoLead;
    job.era = 0;
    if (!at) counts_from_now(job);
  }
  // The lead that is stored; kNoLead if no lead is stored.
  static std::int64_t lead_of(const Watermarks& stored) {
    if (stored.wall_ns == kNoLead || stored.steady_ns == kNoLead || stored.boot_lead == kNoLead)
      return kNoLead;
    return lead_of(stored.wall_ns, stored.steady_ns);
  }

  // Returns the time that UTC will show when the job is due, if nobody sets the wall clock.
  UtcMs due_of(const JobRecord& job) const { return std::max(job.due, delay_end(job)); }
  // Returns the time that UTC will show when the job's delay has passed by steady time; if a client
  // has named the due time, that due time. Rounded up, so that the job is not early although steady
  // time is not exact.
  UtcMs delay_end(const JobRecord& job) const {
    if (job.lead == kNoLead || job.lead == lead_) return job.due;
    const std::int64_t end = static_cast<std::int64_t>(job.due) + (lead_ - job.lead) + kLeadError;
    return static_cast<UtcMs>(std::clamp<std::int64_t>(end, 0, kLastDue));
  }

  // How much steady time has given back with the last step, in ms, rounded down.
  Millis given_back() const { return static_cast<Millis>(given_back_ns_ / kNsPerMs); }
  // Returns true if the job's delay was counted after the boot and before steady time gave back. So
  // that step does not concern the job, and delay_end() is too late by given_back().
  bool is_before_giving_back(const JobRecord& job) const {
    return job.lead != kNoLead && job.era >= boot_era_ && job.era < era_;
  }

  // Whole milliseconds that are surely left. As in beanstalkd, this is less than was asked for from
  // the first moment on: a deadline is counted from up to a millisecond after it was set.
  Millis left_until(UtcMs due) const { return left(due, utc_from()); }
  Millis left_until_mono(std::uint64_t ms) const { return left(ms, mono_from()); }

  // The time of the wheels of due times: milliseconds on the grid of UTC, which never run back and
  // are as long as those of the monotonic clock.
  Tick tick() const { return tick_; }
  // Returns the tick at which UTC reaches `ms`.
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

  // Values to be stored: see Watermarks.
  std::int64_t wall_ns() const { return wall_ns_; }
  std::int64_t steady_ns() const { return steady_ns_; }
  std::int64_t boot_lead() const { return boot_lead_; }
  std::int64_t gained_ns() const { return gained_ns_; }
  std::uint32_t era() const { return era_; }
  std::uint32_t boot_era() const { return boot_era_; }
  std::int64_t up_ns() const { return up_ns_; }
  const std::vector<ClockRise>& rises() const { return rises_.all(); }

 private:
  static constexpr std::int64_t kNsPerMs = 1'000'000;
  static constexpr std::uint64_t kNs = 1'000'000;  // the same, for what is unsigned
  // ns. A larger difference than this is a step. The two clocks are not read at the same moment.
  static constexpr std::int64_t kTolerance = 1'000'000;
  // ms. The difference of two leads may be too small by this much: rounding, and the tolerance.
  static constexpr std::int64_t kLeadError = 2;

  static std::int64_t wall_minus_mono(Now now) {
    return static_cast<std::int64_t>(now.utc_ns - now.mono_ns);
  }
  // How far UTC, and steady time, may be ahead of the right time, in ms.
  Millis doubt() const { return rises_.in_doubt(lead_of(wall_ns_, up_ns_), uptime()); }
  Millis steady_doubt() const {
    return std::min(rises_.steady_in_doubt(uptime()), static_cast<Millis>(gained_ns_ / kNsPerMs));
  }
  Millis steady_ms(std::uint64_t round_up) const {
    const auto mono_ns = static_cast<std::int64_t>(mono_ns_ + round_up);
    return static_cast<Millis>(std::max<std::int64_t>(0, (steady_ns_ + mono_ns) / kNsPerMs));
  }
  Tick tick_surely_over(UtcMs moment, Millis doubt) const {
    return std::max(tick_of(moment), std::min(tick_of(moment + doubt), tick_beyond_doubt()));
  }
  // The wall clock was `ahead` of uptime when it last showed `shown`.
  void follow_rises(UtcMs shown, std::int64_t ahead, Millis gained) {
    const std::int64_t is_ahead = lead_of(wall_ns_, up_ns_);
    if (is_ahead - ahead >= ClockRises::kLarge) {
      rises_.add(
          {.shown = shown, .to = utc(), .ahead = ahead, .noticed = uptime(), .gained = gained});
    } else if (ahead - is_ahead >= ClockRises::kLarge) {
      wrong_since_ = rises_.settle(is_ahead, utc()).value_or(0);
      has_settled_ = true;
    }
  }
  // `shown`: what the wall clock showed before. Returns the step, or 0.
  std::int64_t set_wall(std::int64_t wall_ns, UtcMs shown) {
    const std::int64_t step = wall_ns - wall_ns_;
    if (std::abs(step) <= kTolerance) return 0;
    const std::int64_t ahead = lead_of(wall_ns_, up_ns_);
    has_settled_ = false;
    given_back_ns_ = std::clamp<std::int64_t>(-step, 0, gained_ns_);
    gained_ns_ -= given_back_ns_;
    steady_ns_ -= given_back_ns_;
    wall_ns_ = wall_ns;
    lead_ = lead_of(wall_ns_, steady_ns_);
    line_lead_ = lead_of(wall_ns_, line_ns_);
    // By the new steady time, every earlier lead would have been higher.
    if (given_back_ns_ > 0) {
      boot_lead_ += given_back_ns_ / kNsPerMs + 1;
      ++era_;
    }
    boot_lead_ = std::max(boot_lead_, lead_);
    follow_rises(shown, ahead, 0);
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
  // Each minus the monotonic clock: UTC as of the last step, steady time, the line of the ticks,
  // uptime.
  std::int64_t wall_ns_;
  std::int64_t steady_ns_ = 0;
  std::int64_t line_ns_ = 0;
  std::int64_t up_ns_ = 0;
  std::int64_t lead_ = 0;
  std::int64_t line_lead_ = 0;
  std::int64_t boot_lead_ = INT64_MIN;
  std::int64_t gained_ns_ = 0;
  std::int64_t given_back_ns_ = 0;
  std::uint32_t era_ = 0;
  std::uint32_t boot_era_ = 0;
  ClockRises rises_;
  UtcMs wrong_since_ = 0;
  bool has_settled_ = false;
  Tick tick_ = 0;
};

}  // namespace carillon::queue
