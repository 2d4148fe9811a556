// TimerSet: the interface of every timer model, as a concept and a contract.
//
// The four routines of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), are
// here: START_TIMER = schedule, STOP_TIMER = cancel, PER_TICK_BOOKKEEPING = advance,
// EXPIRY_PROCESSING = the on_expire that is passed to advance.
//
// A set orders timers (TimerNode). Its owner, the caller, owns the timers too. The set has no
// clock, no thread and no lock: time is a Tick that the owner moves forward with advance(). Each
// operation is O(1) unless its model's header says otherwise. One thread at a time.
//
// Contracts
// ---------
//  1. Never early: advance(to) fires no timer whose expiry is after `to`.
//  2. Never late: when advance(to) returns without having been stopped by its limit, every timer
//     that was due at or before `to` has fired.
//  3. Order: timers fire by expiry, and those of one tick in the order they were scheduled. A
//     rescheduled timer may fire at any position among those of its new tick.
//  4. A timer that is scheduled at or before now() is due already. It fires with the next tick that
//     is processed, before that tick's own timers, rescheduled ones included. Such timers fire in
//     the order scheduled.
//     advance(now()) processes the timers that are due already without moving time on. So if
//     on_expire schedules a timer at or before now(), the timer fires in the same advance if that
//     goes on past now(), as if it had been scheduled for now() + 1; otherwise it fires in the next
//     advance. It never fires twice in one tick, so no advance runs for ever.
//  5. One advance(a + b) fires the same sequence as advance(a) followed by advance(b), for any b >
//     0.
//  6. now() is the tick being processed. Inside on_expire it is the expiry of the timer that fires,
//     or later for a timer that was due already. After a complete advance(to) it is `to`. All
//     timers that were due before now() have fired.
//  7. `limit` is the largest number of timers that one advance fires. A call that stops there
//     leaves the rest, in order, to the next call. now() is then the tick of the first timer left,
//     or `to` if none is left. next_wakeup() <= now() means that a timer is left.
//  8. Inside on_expire the timer that fires is already disarmed, and the owner may schedule, cancel
//     and reschedule any timer of the set, destroy the object whose timer fired, and throw. An
//     exception from on_expire leaves advance. The timer that threw counts as fired; the rest fires
//     in the next call. A nested advance() or clear() throws std::logic_error and changes nothing.
//  9. The whole range of ticks works, from any start tick; nothing wraps. A model with a shorter
//     range says so in its header: its schedule() and reschedule() refuse an expiry beyond the
//     range with std::out_of_range, and change nothing.
// 10. Memory is O(live timers) whatever the mix of operations.
// 11. A timer that is destroyed while armed is cancelled.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>

#include "carillon/wheel/timer_node.h"

namespace carillon {

// The limit of an advance() that fires all timers that are due.
inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

namespace detail {
struct AnyCallback {
  void operator()(TimerNode&) const {}
};
}  // namespace detail

// clang-format off
template <class S>
concept TimerSet = std::constructible_from<S, Tick> && std::default_initializable<S> &&
    requires(S set, const S& view, TimerNode& node, Moment moment, Tick tick, std::size_t limit,
             detail::AnyCallback callback) {
  // Arms `node` for `moment`. If it is armed, moves it as reschedule() does. If memory runs out:
  // std::bad_alloc, nothing changed.
  { set.schedule(node, moment) } -> std::same_as<void>;

  // The same, but it may fire anywhere in [moment, moment + slack]. The last argument is the slack,
  // in ticks.
  { set.schedule(node, moment, tick) } -> std::same_as<void>;

  // The same for now() + tick, the distance from the tick that the set has come to.
  { set.schedule_after(node, tick) } -> std::same_as<void>;
  { set.schedule_after(node, tick, tick) } -> std::same_as<void>;

  // Returns true if `node` was armed; it will not fire. Returns false if it was not armed.
  { set.cancel(node) } noexcept -> std::same_as<bool>;

  // Arms `node` for `moment` whether it was armed or not. If memory runs out: std::bad_alloc,
  // nothing changed.
  { set.reschedule(node, moment) } -> std::same_as<void>;
  { set.reschedule_after(node, tick) } -> std::same_as<void>;

  // Moves time to `tick` and calls callback(node) for each timer due, at most `limit` (default: no
  // limit). Returns how many fired. Throws std::invalid_argument if `tick` is before now(). If
  // memory runs out, which does not happen after reserve(): std::bad_alloc, no timer is lost, call
  // again.
  { set.advance(tick, callback) } -> std::same_as<std::size_t>;
  { set.advance(tick, callback, limit) } -> std::same_as<std::size_t>;

  // A tick before which no timer fires; none if the set is empty. It is never later than the next
  // expiry (or now(), if that expiry has passed), but may be earlier: an owner that sleeps until
  // then and advances may find that no timer was due.
  { view.next_wakeup() } noexcept -> std::same_as<std::optional<Tick>>;
  { view.now() } noexcept -> std::same_as<Moment>;
  { view.size() } noexcept -> std::same_as<std::size_t>;
  { view.empty() } noexcept -> std::same_as<bool>;

  // Disarms every timer and hands each to callback(node), in no particular order. If the callback
  // throws, the timers not yet handed over stay armed. It may do what on_expire may do. A timer
  // that it schedules is handed over too, or stays in the set; if it always schedules another,
  // clear() may not end.
  { set.clear(callback) } -> std::same_as<void>;

  // Throws std::logic_error that says what is broken, if anything is. O(n); for tests.
  { view.check_invariants() } -> std::same_as<void>;
};
// clang-format on

}  // namespace carillon
