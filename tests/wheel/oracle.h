// Oracle: a plain account of the pending timers. It checks for each firing that the contract of
// TimerSet allows it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "carillon/wheel/timer_node.h"

namespace carillon::testing {

// Timers are known by number. A violation throws std::runtime_error that says what happened.
class Oracle {
 public:
  // schedule() gave `timer` the expiry `expiry`, when the wheel's now() was `now`.
  void scheduled(int timer, Tick expiry, Tick now) {
    add(timer, {std::max(expiry, now), expiry <= now, false, ++sequence_, timer});
  }

  // The same by reschedule(). If the timer was pending, it may fire at any position in its tick.
  void rescheduled(int timer, Tick expiry, Tick now) {
    const bool was_pending = cancelled(timer);
    add(timer, {std::max(expiry, now), expiry <= now, was_pending, ++sequence_, timer});
  }

  // `timer` was cancelled, or has fired. Returns true if it was pending.
  bool cancelled(int timer) {
    const auto found = pending_.find(timer);
    if (found == pending_.end()) return false;
    set_of(found->second).erase(found->second);
    pending_.erase(found);
    return true;
  }

  void fired(int timer, Tick now) {
    const auto found = pending_.find(timer);
    if (found == pending_.end()) fail(timer, now, "fired, but was not pending");
    const Entry entry = found->second;
    const bool at_its_tick = now == entry.tick || (entry.overdue && now == entry.tick + 1);
    if (!at_its_tick) fail(timer, now, now < entry.tick ? "fired early" : "fired late", entry);
    if (!entry.anywhere && *in_order_.begin() != entry)
      fail(timer, now, "fired before its turn", entry, *in_order_.begin());
    if (const auto first = earliest_deadline(); first && *first < now)
      fail(timer, now, "fired while an earlier one was left", entry);
    if (!entry.overdue) {
      if (const Entry* left = overdue_before(now))
        fail(timer, now, "fired while one that was due already was left", entry, *left);
    }
    cancelled(timer);
  }

  // The wheel stands at `now`. No timer may be left that should have fired before `now` or, if the
  // advance was complete, at `now`.
  void stands_at(Tick now, bool complete) const {
    for (const auto* set : {&in_order_, &anywhere_}) {
      for (const Entry& entry : *set) {
        if (entry.tick > now) break;
        const Tick deadline = entry.deadline();
        if (deadline < now || (complete && deadline == now && !entry.overdue))
          fail(entry.timer, now, "was not fired", entry);
      }
    }
  }

  // next_wakeup() answered `wakeup`.
  void next_wakeup_is(std::optional<Tick> wakeup, Tick now) const {
    if (pending_.empty() != !wakeup.has_value())
      throw std::runtime_error("next_wakeup() and the pending timers disagree");
    if (!wakeup) return;
    for (const auto* set : {&in_order_, &anywhere_}) {
      if (!set->empty() && *wakeup > std::max(set->begin()->tick, now))
        fail(set->begin()->timer, now, "expires before next_wakeup()");
    }
    if (*wakeup < now) throw std::runtime_error("next_wakeup() is in the past");
  }

  std::size_t size() const { return pending_.size(); }
  bool pending(int timer) const { return pending_.contains(timer); }
  void clear() { *this = Oracle(); }

 private:
  struct Entry {
    Tick tick;  // its expiry, or now() when it was scheduled, if that was later
    // It was scheduled at or before now(): it fires at `tick`, after that tick's own timers, or at
    // the next tick.
    bool overdue;
    bool anywhere;  // it was rescheduled while pending: it may fire at any position in its tick
    std::uint64_t sequence;
    int timer;

    auto operator<=>(const Entry&) const = default;

    // The last tick at which it may fire.
    Tick deadline() const {
      return overdue && tick != std::numeric_limits<Tick>::max() ? tick + 1 : tick;
    }
  };

  std::set<Entry>& set_of(const Entry& entry) { return entry.anywhere ? anywhere_ : in_order_; }

  void add(int timer, const Entry& entry) {
    if (!pending_.emplace(timer, entry).second)
      throw std::logic_error("the test scheduled a pending timer");
    set_of(entry).insert(entry);
  }

  std::optional<Tick> earliest_deadline() const {
    std::optional<Tick> first;
    for (const auto* set : {&in_order_, &anywhere_}) {
      if (!set->empty() && (!first || set->begin()->deadline() < *first))
        first = set->begin()->deadline();
    }
    return first;
  }

  // A timer that is left and was due already before `now`; null if there is no such timer.
  const Entry* overdue_before(Tick now) const {
    for (const auto* set : {&in_order_, &anywhere_}) {
      for (const Entry& entry : *set) {
        if (entry.tick >= now) break;
        if (entry.overdue) return &entry;
      }
    }
    return nullptr;
  }

  template <class... Entries>
  [[noreturn]] static void fail(int timer, Tick now, const char* what, const Entries&... entries) {
    std::ostringstream text;
    text << "timer " << timer << " at now() = " << now << ": " << what;
    ((text << "; timer " << entries.timer << (entries.overdue ? " was overdue at " : " expires at ")
           << entries.tick),
     ...);
    throw std::runtime_error(text.str());
  }

  std::uint64_t sequence_ = 0;
  std::map<int, Entry> pending_;
  std::set<Entry> in_order_;
  std::set<Entry> anywhere_;
};

}  // namespace carillon::testing
