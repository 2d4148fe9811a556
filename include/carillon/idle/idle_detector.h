// IdleDetector: the interface and the contract of every design that finds idle connections.
//
// The owner adds connections, packets touch them, and advance() hands over the connections that had
// no packet for their time-out. Two designs are in the library: IdleTracker (idle_tracker.h), the
// one to use, and IdleRing (idle_ring.h), the published ring queue. The two designs that the ring
// was published to replace, IdleScan and TimerPerPacket, are in tests/models for comparison and are
// not installed.
//
// Contracts
// ---------
//  1. Time is a Tick that the owner moves with advance(). Tick k lasts from k to k + 1. If now() is
//     k when a packet (touch) or a log-in (add) is reported, it came somewhere in [k, k + 1). It
//     counts as if it came at the end of that tick, at k + 1, so that no connection loses a
//     fraction of a tick. The connection is found idle by the first advance() to k + 1 + time-out
//     or later.
//  2. It follows, if the owner advances at each tick: a connection whose packets are less than a
//     time-out apart is never found; any other is found in [time-out, time-out + tick] after its
//     last packet.
//  3. now() must be true. If the owner lags n ticks behind when a packet comes, that connection's
//     time-out is n ticks shorter. So call advance() before the packets of a wake-up are handled,
//     or at each tick.
//  4. A connection that is found idle is forgotten before on_idle is called for it. on_idle may
//     call add (also with the same key), touch and remove, and may throw; the idle connections that
//     are left are then found by the next advance(). A nested advance() throws std::logic_error,
//     unless the design documents something else.
//  5. touch and remove do nothing if the connection is not there.
#pragma once

#include <concepts>
#include <cstddef>

#include "carillon/idle/ticks.h"
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
    std::constructible_from<D, Ticks, Tick> &&  // (time-out, at least 1; start tick)
    requires(D detector, const D& view, typename D::key_type key, const typename D::Id id,
             Tick tick, detail::AnyIdleCallback callback) {
  { detector.add(key) } -> std::same_as<typename D::Id>;
  { detector.touch(id) } -> std::same_as<void>;
  // Returns true if the connection was there.
  { detector.remove(id) } -> std::same_as<bool>;
  // Moves time to `tick` and calls callback(id, key) for each connection found idle. Returns their
  // number. Throws std::invalid_argument if `tick` is before now().
  { detector.advance(tick, callback) } -> std::same_as<std::size_t>;
  { view.now() } -> std::same_as<Tick>;
  { view.size() } -> std::same_as<std::size_t>;
};

}  // namespace carillon
