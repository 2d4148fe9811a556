// IdleDetector: what each way of finding idle connections offers, as a concept and a contract.
//
// Connections are added, packets touch them, and advance() hands over those that had no packet for
// their time-out. Four designs offer this: IdleTracker (idle_tracker.h), the one to use; IdleRing
// (idle_ring.h), the published ring queue; and the two that the ring was published to replace,
// IdleScan (idle_scan.h) and TimerPerPacket (timer_per_packet.h).
//
// Contracts
// ---------
//  1. Time is a Tick that the owner moves with advance(); a tick lasts from one number to the next.
//     A packet (touch) or a log-in (add) while now() is k came somewhere in [k, k + 1). It counts
//     as come at the end of that tick, k + 1, so that nobody is cut short by a fraction: the
//     connection is found idle by the first advance() to k + 1 + time-out or later.
//  2. Hence, if the owner advances at each tick: with packets less than a time-out apart a
//     connection is never found; without, it is found in [time-out, time-out + tick] after its last
//     packet.
//  3. now() must be true. An owner that lags n ticks behind when a packet comes cuts that
//     connection's time-out by n. So advance before the packets of a wake-up are handled, or at
//     each tick.
//  4. What is found is forgotten before on_idle is called for it. on_idle may add (also the same
//     key again), touch and remove, and throw; what is left is found by the next advance(). A
//     nested advance() throws std::logic_error, if the design says nothing else.
//  5. A touch or a remove of what is not there does nothing.
#pragma once

#include <concepts>
#include <cstddef>

#include "carillon/wheel/timer_node.h"

namespace carillon {

namespace detail {
struct AnyIdleCallback {
  template <class Id, class Key>
  void operator()(const Id&, Key&&) const {}
};
}  // namespace detail

template <class D>
concept IdleDetector =
    std::constructible_from<D, Tick, Tick> &&  // (time-out in ticks, at least 1; start tick)
    requires(D detector, const D& view, typename D::key_type key, const typename D::Id id,
             Tick tick, detail::AnyIdleCallback callback) {
  { detector.add(key) } -> std::same_as<typename D::Id>;
  { detector.touch(id) } -> std::same_as<void>;
  { detector.remove(id) } -> std::same_as<bool>;  // whether it was there
  // Moves time to `tick` and calls callback(id, key) for each connection found idle. Returns how
  // many there were. Throws std::invalid_argument if `tick` is before now().
  { detector.advance(tick, callback) } -> std::same_as<std::size_t>;
  { view.now() } -> std::same_as<Tick>;
  { view.size() } -> std::same_as<std::size_t>;
};

}  // namespace carillon
