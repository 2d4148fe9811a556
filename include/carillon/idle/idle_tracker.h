// IdleTracker: finds, among any number of connections, those that had no packet for their time-out.
// A packet costs one store.
//
// Choose it for connections, sessions, cache entries, leases: for anything that use keeps alive and
// that is dropped when unused. With a timer per connection that each packet pushes back, most of
// the work is for connections that are never dropped. Here a packet only stores a tick, and the
// tracker inspects a connection about once per time-out, however many packets came.
//
//   // A time-out of 30 ticks of a second; int: the key.
//   carillon::IdleTracker<int> tracker(carillon::Ticks{30}, now_s());
//   tracker.reserve(100'000);
//   carillon::IdleId id = tracker.add(socket);          // a log-in
//   tracker.touch(id);                                  // a packet; any thread
//   tracker.remove(id);                                 // it hung up by itself; any thread
//   tracker.advance(now_s(), [](carillon::IdleId, int socket) { close(socket); });  // at each tick
//
// examples/gateway.cpp is a complete program around it.
//
// How it works
// ------------
// A touch stores the tick in the connection's stamp. The stamps lie in a table of their own.
// Sixteen neighbours in that table are a block. A block has one timer on a wheel, for the earliest
// deadline that its connections had when the block was last inspected. When the timer fires, the
// sixteen stamps, two cache lines, tell which connections are idle and when the block must be
// inspected again.
//
// Compared with the obvious design, a scan of all connections, this scans sixteen at a time, and
// only when one of them may be due. Compared with a timer per connection, it has a sixteenth as
// many timers, and packets do not push them back.
//
// Overload (after Envoy's scaled timers)
// --------------------------------------
// scale_timeouts(0.5) halves every time-out, also those of connections that are already waiting,
// and touches no connection. To make that possible, time-outs that agree in their five highest bits
// form a class, each block belongs to one class, each class has a wheel, and the hands of the
// wheels are moved ahead (timeout_class.h).
//  - The factor takes effect at the next advance(). While it is constant, and when it falls, a
//    connection is found in [factor * time-out, factor * time-out + 1 tick] after its last packet.
//    A connection that has already been silent for longer is found at once. After a fall, both may
//    be a tick later for a connection whose time-out is not the longest of its block's class.
//  - When the factor rises by `rise`, a connection may be found late by one tick + rise * (longest
//    time-out of its class - its own time-out), which is less than a tick + rise / 16 of its
//    time-out. The bound is one tick + rise * the longest time-out of its block's class if its own
//    time-out was changed, or if the tracker was full and connections of several classes share
//    blocks.
//  - A fall only brings forward inspections that would have come later. Pass a limit to advance()
//    to spread them.
//
// Contracts, in addition to those of IdleDetector (idle_detector.h). If the owner advances at each
// tick, a connection whose packets are less than a time-out apart is never found; any other is
// found in [time-out, time-out + tick] after its last packet.
//  - touch(id) means: a packet came in the current tick, and counts at its end. touch(id, at)
//    means: a packet came at exactly `at`; the connection is found by advance(at + time-out). A
//    packet earlier than the last stored one is ignored.
//  - After its connection was found idle or removed, an id is refused for ever. A touch that races
//    the remove() of its own connection never counts for another connection, even if the index was
//    given to another in the middle of that touch. One effect remains if the touching thread is
//    held up between two instructions for as long as a remove and an add take: the packets of the
//    new connection are not stored until its next inspection, and it may be found late, by at most
//    one time-out. It is never found early.
//  - Packets of one connection on several threads at once: if a thread is held up between two
//    instructions of its touch for n ticks, its old tick may be stored last, and the connection may
//    be found n ticks early. To avoid this, let one thread handle all packets of a connection.
//  - advance(to, on_idle, limit) finds at most `limit` connections, and inspects at most about 2^17
//    if there is a limit. next_wakeup() <= now() means that some work is left. A connection that
//    was seen to be idle when the limit stopped a call is handed over by the next call, unless a
//    packet comes first. The connections that one call finds are in no particular order.
//  - Ticks are at most 2^63 - 1; time-outs are 1 .. kLongestTimeout ticks.
//
//  - One winner: of all calls of remove() with an id and the advance() that finds its connection,
//    exactly one ends it. If remove() returned true, on_idle is not called for it, also if
//    advance() is running on another thread.
//
// Thread safety: touch() and remove() may be called by any thread at any time between the return of
// add() and the destruction of the tracker; they neither wait nor allocate. All other functions:
// one thread at a time, which need not be the thread that touches or removes.
//
// Cost: add, remove, set_timeout O(1), amortized over the pages of 16384 connections that add
// allocates. advance O(1) if no block is due, otherwise O(1) per connection of each block that it
// inspects. next_wakeup O(1). Memory per connection: 24 bytes and the key (alignment may add to the
// key), 4 for a sixteenth of a block, 2 on the wheel. Memory per class of time-outs: 330 KiB.
// Memory is taken in pages, so a tracker takes at least 0.8 MB. It also reserves addresses, with
// no memory behind them, for its MostConnections: 8 bytes for each, and 8 MiB (stamp_table.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "carillon/idle/detail/connection_blocks.h"
#include "carillon/idle/detail/stamp.h"
#include "carillon/idle/detail/tracker_core.h"
#include "carillon/idle/idle_detector.h"
#include "carillon/idle/ticks.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// Key: what names the connection to its owner, such as a socket or a pointer. Moving a key must not
// throw.
// kLastGeneration: only tests change it. An index is given to (kLastGeneration + 1) / 2
// connections, 8 million, one after the other, and is then retired, so that no id is given twice.
template <class Key, std::uint32_t kLastGeneration = detail::Stamp::kGenerationMask>
class IdleTracker {
  static_assert(std::is_nothrow_move_constructible_v<Key> && std::is_nothrow_destructible_v<Key>);

 public:
  using key_type = Key;
  using Id = IdleId;

  // 2^38 - 1.
  static constexpr Tick kLongestTimeout =
      detail::TrackerCore<Key, kLastGeneration>::kLongestTimeout;
  static constexpr Tick kLastTick = (Tick{1} << 63) - 1;

  // `default_timeout`, in ticks, is used for connections that are added without a time-out of their
  // own. `most`, 1 .. 2^31: the connections that there will be at most at the same time; a million
  // take 16 MiB of addresses. Throws std::invalid_argument if one of them is out of range, and a
  // std::bad_alloc whose what() says so if the process cannot get the addresses.
  explicit IdleTracker(Ticks default_timeout, Tick start_tick = 0,
                       MostConnections most = MostConnections(std::size_t{1} << 20))
      : core_(checked_tick(start_tick), checked(most)),
        default_timeout_(checked(default_timeout)) {}

  // Adds a connection. Its first packet, the log-in, came in the current tick, or at exactly `at`.
  // Throws std::length_error if there are most_connections() already, or if 9 * 10^12 connections
  // have been there (2.8 years at 100 000 a second); std::bad_alloc;
  // std::invalid_argument if the time-out is out of range. Nothing has changed then.
  IdleId add(Key key) { return add(std::move(key), default_timeout_); }
  IdleId add(Key key, Ticks timeout) { return add(std::move(key), timeout, now() + 1); }
  IdleId add(Key key, Ticks timeout, Tick at) {
    return core_.add(std::move(key), checked(timeout).count, at);
  }

  // Reports a packet in the current tick. Any thread.
  void touch(IdleId id) noexcept { core_.touch(id); }

  // Reports a packet at exactly `at`. Any thread. A caller with a finer clock rounds up.
  // REQUIRES: `at` is less than 2^38 ticks from now().
  void touch(IdleId id, Tick at) noexcept { core_.touch(id, at); }

  // Returns true if the connection was tracked; it will not be found, and its key is destroyed on
  // this thread. Returns false if it is gone, or if the tracker never gave this id. Any thread.
  bool remove(IdleId id) noexcept { return core_.remove(id); }

  // Sets another time-out, which counts from the last packet: if it has already passed, the next
  // advance() finds the connection. Returns false if the connection is not tracked. Throws what
  // add() throws; nothing has changed then.
  bool set_timeout(IdleId id, Ticks timeout) {
    return core_.set_timeout(id, checked(timeout).count);
  }

  // If the connection is not tracked, these return false, null or nullopt. The pointer is valid
  // until the connection ends.
  bool contains(IdleId id) const noexcept { return connections().holds(id); }
  const Key* key(IdleId id) const noexcept {
    return contains(id) ? &connections().connection(id.index).key : nullptr;
  }
  std::optional<Ticks> timeout(IdleId id) const noexcept {
    return contains(id) ? std::optional<Ticks>(connections().connection(id.index).timeout)
                        : std::nullopt;
  }
  // The tick at which the last packet counts.
  std::optional<Tick> last_packet(IdleId id) const noexcept {
    return contains(id) ? std::optional(core_.last_packet(id.index)) : std::nullopt;
  }

  // Moves time to `to` and calls on_idle(IdleId, Key&&) for the connections that are idle by then,
  // at most `limit`. Returns how many there were. If a call over more than 2^37 ticks ends at its
  // limit, now() may still be before `to`. Throws std::invalid_argument if `to` is before now() or
  // after kLastTick, std::bad_alloc (call again), and what on_idle throws.
  template <class OnIdle>
  std::size_t advance(Tick to, OnIdle&& on_idle, std::size_t limit = kNoLimit) {
    return core_.advance(checked_tick(to), on_idle, limit);
  }

  // The tick to which advance() should be called next: no connection becomes idle before it, and it
  // is never later than the tick at which advance() would find one if no more packets come. Returns
  // nullopt if nothing is tracked.
  std::optional<Tick> next_wakeup() const noexcept {
    return empty() ? std::nullopt : std::optional(core_.next());
  }

  // Multiplies all time-outs by `factor`, 0 .. 1, from the next advance() on. The factor is rounded
  // to 24 binary digits after the point; a scaled time-out is rounded up to whole ticks.
  // O(classes of time-outs). Throws std::invalid_argument if `factor` is out of range.
  void scale_timeouts(double factor) {
    if (!(factor >= 0 && factor <= 1))
      CARILLON_THROW std::invalid_argument("carillon: a factor of time-outs must be in 0 .. 1");
    core_.scale(factor);
  }
  double factor() const noexcept { return core_.factor(); }

  Tick now() const noexcept { return core_.now(); }
  std::size_t size() const noexcept { return connections().size(); }
  bool empty() const noexcept { return size() == 0; }
  std::size_t most_connections() const noexcept { return connections().most(); }

  // Allocates in advance: from now on nothing allocates while at most `connections` are tracked and
  // each has the default time-out, one of `timeouts`, or one of the same classes. Throws
  // std::bad_alloc, std::invalid_argument, and std::length_error if add() would.
  void reserve(std::size_t connections, std::initializer_list<Ticks> timeouts = {}) {
    core_.prepare_for(default_timeout_.count);
    for (const Ticks timeout : timeouts) core_.prepare_for(checked(timeout).count);
    core_.reserve(connections);
  }

  // Bytes allocated by the tracker, including its keys, not counting the tracker object itself.
  std::size_t allocated_bytes() const noexcept { return core_.allocated_bytes(); }

  // Throws std::logic_error that says which invariant is broken. O(connections); for tests.
  void check_invariants() const { core_.check_invariants(); }

 private:
  friend struct detail::TrackerAccess;

  static Ticks checked(Ticks timeout) {
    if (timeout.count == 0 || timeout.count > kLongestTimeout)
      CARILLON_THROW std::invalid_argument(
          "carillon: a time-out of " + std::to_string(timeout.count) +
          " ticks; it must be in 1 .. " + std::to_string(kLongestTimeout));
    return timeout;
  }

  static std::size_t checked(MostConnections most) {
    if (most.count == 0 || most.count > decltype(core_)::kMostConnections)
      CARILLON_THROW std::invalid_argument("carillon: an IdleTracker for at most " +
                                           std::to_string(most.count) +
                                           " connections; it must be 1 .. 2147483648");
    return most.count;
  }

  static Tick checked_tick(Tick tick) {
    if (tick > kLastTick)
      CARILLON_THROW std::invalid_argument(
          "carillon: an IdleTracker counts ticks up to 2^63 - 1, not to " + std::to_string(tick));
    return tick;
  }

  const auto& connections() const noexcept { return core_.connections(); }

  detail::TrackerCore<Key, kLastGeneration> core_;
  const Ticks default_timeout_;
};

static_assert(IdleDetector<IdleTracker<int>>);

}  // namespace carillon
