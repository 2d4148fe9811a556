// IdleTracker: finds, among any number of connections, those that had no packet for their time-out;
// a packet costs one store.
//
// Choose it for connections, sessions, cache entries, leases: whatever is kept alive by use and
// dropped when unused. A timer per connection, pushed back by each packet, works hardest for those
// who are never dropped; here the packet leaves a mark, and the wheel looks at a connection about
// once per time-out, however many packets came.
//
//   carillon::IdleTracker<int> tracker(30, now_s());          // a time-out of 30 ticks of a second; keys are sockets
//   tracker.reserve(100'000);
//   carillon::IdleId id = tracker.add(socket);                // a log-in
//   tracker.touch(id);                                        // a packet: from any thread
//   tracker.remove(id);                                       // it hung up by itself
//   tracker.advance(now_s(), [](carillon::IdleId, int socket) { close(socket); });   // at each tick
//
// How it works
// ------------
// A touch stores the tick into the connection's stamp, in a table of nothing but stamps. Sixteen
// neighbours in that table are a block, and a block has one timer on a wheel, for the earliest of
// its deadlines as they were when it was last looked at. When the timer fires, the sixteen stamps,
// two cache lines, say who is idle and when the block must be looked at again.
//
// That is the scan of all connections that everybody writes first, but of sixteen at a time and
// only when one of them may be due; and it is the timer per connection that packets push back, but
// a sixteenth of one and not pushed by packets.
//
// Overload (after Envoy's scaled timers)
// --------------------------------------
// scale_timeouts(0.5) halves every time-out, also of the connections that wait already, and touches
// none of them: the time-outs fall into classes that agree in their five highest bits, a block is
// of one class, each class has a wheel, and the hands of the wheels are moved ahead
// (timeout_class.h).
//  - In force from the next advance(). While the factor stays what it is, and when it falls, a
//    connection is found in [factor * time-out, + 1 tick] after its last packet, as the contract
//    below says; one that is idle for longer already, at once.
//  - When the factor rises again, by `rise`, a connection may be found late by one tick and rise *
//    (the longest time-out of its class less its own), that is less than rise / 16 of its time-out.
//    By rise * the longest time-out of its block's class if its own has been changed, or if the
//    tracker was full and connections of several classes share blocks.
//  - The looks that a fall brings forward are those that would have come by and by. Give advance()
//    a limit to spread them.
//
// Contracts, beside those of IdleDetector (idle_detector.h): with packets less than a time-out
// apart never found; without, found in [time-out, time-out + tick], if the owner advances at each
// tick
//  - touch(id) says: a packet came in the current tick, and counts at its end. touch(id, at) says:
//    it came at exactly `at`. Then it is found by advance(at + time-out). A packet that came
//    earlier than the last one noted is ignored.
//  - An id is refused for ever once its connection was found idle or removed. A touch that races
//    the remove() of its connection touches nobody: not even if the place has been given to another
//    in the middle of that touch. In that one case, a thread held up between two instructions for
//    as long as a remove and an add take, the other connection may be found late, by one time-out
//    at the most, for its packets are not noted until it is looked at. Never early.
//  - Packets of one connection on several threads at once: if one thread is held up between two
//    instructions of its touch for n ticks, the tick it had is stored last, and the connection may
//    be found early by n. Who has that hands packets of one connection to one thread.
//  - advance(to, on_idle, limit) finds at most `limit`, and with a limit looks at some 2^17
//    connections at the most. next_wakeup() <= now() says that there is something left. Who was
//    seen to be idle when the limit stopped a call is handed over by the next one, unless a packet
//    comes first. What one call finds is in no particular order.
//  - Ticks up to 2^63 - 1; time-outs 1 .. kLongestTimeout ticks.
//
// Thread safety: touch() from any thread, at any time between the return of add() and the tracker's
// end; everything else from one thread at a time, which may be another than those that touch.
//
// Cost: add, remove, set_timeout O(1), amortized over the pages of 16384 connections that add
// allocates. advance O(1) when nothing comes up, and else O(1) per connection of a block that it
// looks at; next_wakeup O(1). Memory per connection: 24 bytes and the key (alignment may add to the
// key), 4 for a sixteenth of a block, 2 on the wheel; and 330 KiB per class of time-outs. By pages:
// the least that a tracker takes is 0.8 MB. Stamps lie in 32 GiB of addresses, without memory
// behind those that are not in use (stamp_table.h).
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
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// Key: whatever names the connection to its owner, a socket or a pointer. Moving it must not throw.
// A place in the tracker serves (kLastGeneration + 1) / 2 connections, 8 million, and is then
// retired, so that no id comes back. (The parameter is there for the tests.)
template <class Key, std::uint32_t kLastGeneration = detail::Stamp::kGenerationMask>
class IdleTracker {
  static_assert(std::is_nothrow_move_constructible_v<Key> && std::is_nothrow_destructible_v<Key>);

 public:
  using key_type = Key;
  using Id = IdleId;

  static constexpr Tick kLongestTimeout =
      detail::TrackerCore<Key, kLastGeneration>::kLongestTimeout;  // 2^38 - 1
  static constexpr Tick kLastTick = (Tick{1} << 63) - 1;

  // `default_timeout`, in ticks, is that of connections added without one. Throws
  // std::invalid_argument if it is out of range, and a std::bad_alloc that says so if 32 GiB of
  // addresses are not to be had (stamp_table.h).
  explicit IdleTracker(Tick default_timeout, Tick start_tick = 0)
      : core_(checked_tick(start_tick)), default_timeout_(checked(default_timeout)) {}

  // A connection whose first packet, the log-in, came in the current tick, or at exactly `at`.
  // Throws std::bad_alloc, std::length_error at 2^31 connections, std::invalid_argument for a
  // time-out that is out of range; then nothing has changed.
  IdleId add(Key key) { return add(std::move(key), default_timeout_); }
  IdleId add(Key key, Tick timeout) { return add(std::move(key), timeout, now() + 1); }
  IdleId add(Key key, Tick timeout, Tick at) {
    return core_.add(std::move(key), checked(timeout), at);
  }

  // A packet, in the current tick. Any thread.
  void touch(IdleId id) noexcept { core_.touch(id); }

  // A packet, at exactly `at`. Any thread. REQUIRES: `at` is less than 2^38 ticks from now(). Who
  // stamps with a finer clock of his own rounds up.
  void touch(IdleId id, Tick at) noexcept { core_.touch(id, at); }

  // True: it was tracked, and will not be found. False: the id is from the past, or was never
  // given.
  bool remove(IdleId id) noexcept { return core_.remove(id); }

  // Another time-out from its last packet on: found at once by the next advance() if that has
  // passed. False: as for remove(). Throws what add() throws, with nothing changed.
  bool set_timeout(IdleId id, Tick timeout) { return core_.set_timeout(id, checked(timeout)); }

  // Of one that is tracked; else false, null, none.
  bool contains(IdleId id) const noexcept { return connections().holds(id); }
  const Key* key(IdleId id) const noexcept {
    return contains(id) ? &connections().record(id.index).key : nullptr;
  }
  std::optional<Tick> timeout(IdleId id) const noexcept {
    return contains(id) ? std::optional(connections().record(id.index).timeout) : std::nullopt;
  }
  std::optional<Tick> last_packet(IdleId id) const noexcept {  // the tick at which it counts
    return contains(id) ? std::optional(core_.last_packet(id.index)) : std::nullopt;
  }

  // Moves time to `to` and hands over those that are idle by then, at most `limit`: on_idle(IdleId,
  // Key&&). Returns how many there were. Over more than 2^37 ticks at once a call that ends at its
  // limit leaves now() before `to`. Throws std::invalid_argument if `to` is before now() or after
  // kLastTick, std::bad_alloc (call again), and what on_idle throws.
  template <class OnIdle>
  std::size_t advance(Tick to, OnIdle&& on_idle, std::size_t limit = kNoLimit) {
    return core_.advance(checked_tick(to), on_idle, limit);
  }

  // Nothing is idle before it, and it is never later than the first that will be, if no more
  // packets come. None if nothing is tracked.
  std::optional<Tick> next_wakeup() const noexcept {
    return empty() ? std::nullopt : std::optional(core_.next());
  }

  // Multiplies all time-outs by `factor`, 0 .. 1, from the next advance() on. It is rounded to 24
  // binary places, and a scaled time-out up to whole ticks. O(classes of time-outs). Throws
  // std::invalid_argument.
  void scale_timeouts(double factor) {
    if (!(factor >= 0 && factor <= 1))
      throw std::invalid_argument("carillon: a factor of time-outs must be in 0 .. 1");
    core_.scale(factor);
  }
  double factor() const noexcept { return core_.factor(); }

  Tick now() const noexcept { return core_.now(); }
  std::size_t size() const noexcept { return connections().size(); }
  bool empty() const noexcept { return size() == 0; }

  // From now on nothing allocates while at most `connections` are tracked, with the default
  // time-out or one of `timeouts` (or of a class with them). Throws std::bad_alloc,
  // std::invalid_argument, std::length_error.
  void reserve(std::size_t connections, std::initializer_list<Tick> timeouts = {}) {
    core_.prepare_for(default_timeout_);
    for (const Tick timeout : timeouts) core_.prepare_for(checked(timeout));
    core_.reserve(connections);
  }

  // Bytes allocated beside the tracker object itself, with the keys.
  std::size_t allocated_bytes() const noexcept { return core_.allocated_bytes(); }

  // Throws std::logic_error that says what is broken, if anything is. O(connections); for tests.
  void check_invariants() const { core_.check_invariants(); }

 private:
  friend struct detail::TrackerAccess;

  static Tick checked(Tick timeout) {
    if (timeout == 0 || timeout > kLongestTimeout)
      throw std::invalid_argument("carillon: a time-out of " + std::to_string(timeout) +
                                  " ticks; it must be in 1 .. " + std::to_string(kLongestTimeout));
    return timeout;
  }

  static Tick checked_tick(Tick tick) {
    if (tick > kLastTick)
      throw std::invalid_argument("carillon: an IdleTracker counts ticks up to 2^63 - 1, not to " +
                                  std::to_string(tick));
    return tick;
  }

  const auto& connections() const noexcept { return core_.connections(); }

  detail::TrackerCore<Key, kLastGeneration> core_;
  const Tick default_timeout_;
};

static_assert(IdleDetector<IdleTracker<int>>);

}  // namespace carillon
