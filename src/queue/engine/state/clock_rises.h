// Remembers when the wall clock was set forward lately, and what is in doubt because of that.
//
//   rises.add({.shown = before, .to = after, .ahead = ahead_before, .noticed = uptime});
//   rises.in_doubt(ahead, uptime)       // UTC may be wrong by this much, in ms
//   rises.settle(ahead, utc)            // it was set back: since when was it wrong?
//
// A clock that is set forward by a second or more may be wrong, and so may the clock after a boot.
// For a minute nothing is destroyed because of it: a job or a key stays if its time has come only
// by this rise. If the clock is set back later, the time before the rise says since when schedules
// have decided by a wrong clock.
//
// *Uptime* starts as UTC when a store is first used, goes on with the monotonic clock, and stands
// still while the machine is off. So a boot is a rise, too: the wall clock has moved on, uptime has
// not. `ahead` is how far the wall clock is ahead of uptime, in ms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"

namespace carillon::queue {

class ClockRises {
 public:
  // A change of less than this is believed at once, in ms.
  static constexpr std::int64_t kLarge = 1'000;
  // How long a rise is in doubt, in ms.
  static constexpr Millis kConfirm = 60'000;

  ClockRises() = default;
  explicit ClockRises(std::vector<ClockRise> stored) : rises_(std::move(stored)) {}

  const std::vector<ClockRise>& all() const { return rises_; }

  // Forgets rises that matter no more. `rise` is higher than those before it, but for steps back of
  // less than kLarge in between.
  void add(const ClockRise& rise) {
    constexpr std::size_t kMost = 8;
    std::erase_if(rises_, [&rise](const ClockRise& old) {
      const Millis passed = rise.noticed - std::min(old.noticed, rise.noticed);
      return passed >= std::max(kConfirm, old.to - std::min(old.shown, old.to));
    });
    if (rises_.size() < kMost) return rises_.push_back(rise);
    // The clock rises again and again: count it as one rise.
    ClockRise& last = rises_.back();
    last.to = rise.to;
    last.noticed = rise.noticed;
    last.gained += rise.gained;
  }

  // The wall clock was set back. Returns the moment from which on schedules have decided by a wrong
  // clock; none if there is no such moment.
  std::optional<UtcMs> settle(std::int64_t ahead, UtcMs utc) {
    std::optional<UtcMs> since;
    const auto note = [&since, utc](const ClockRise& rise) {
      if (rise.to > utc) since = std::min(since.value_or(rise.shown), rise.shown);
    };
    while (!rises_.empty() && rises_.back().ahead > ahead + kLarge) {
      note(rises_.back());
      rises_.pop_back();
    }
    if (rises_.empty()) return since;
    note(rises_.back());
    if (rises_.back().ahead >= ahead - kLarge) {
      rises_.pop_back();
    } else {
      rises_.back().to = std::min(rises_.back().to, utc);
    }
    return since;
  }

  // How far UTC may be ahead of the right time, in ms.
  Millis in_doubt(std::int64_t ahead, Millis uptime) const {
    for (const ClockRise& rise : rises_) {
      if (is_in_doubt(rise, uptime))
        return static_cast<Millis>(std::max<std::int64_t>(0, ahead - rise.ahead));
    }
    return 0;
  }
  // The same for steady time, which rises only with boots.
  Millis steady_in_doubt(Millis uptime) const {
    Millis doubt = 0;
    for (const ClockRise& rise : rises_) doubt += is_in_doubt(rise, uptime) ? rise.gained : 0;
    return doubt;
  }
  // In how many ms the present doubt is over at the latest.
  Millis doubt_left(Millis uptime) const {
    if (rises_.empty() || !is_in_doubt(rises_.back(), uptime)) return 0;
    return rises_.back().noticed + kConfirm - uptime;
  }

 private:
  static bool is_in_doubt(const ClockRise& rise, Millis uptime) {
    return uptime < rise.noticed + kConfirm;
  }

  std::vector<ClockRise> rises_;  // in the order of time, and of `ahead`
};

}  // namespace carillon::queue
