// TimerPerPacket: each packet starts a timer. When a timer fires, it checks whether its packet was
// the connection's last.
//
// The second of the designs that IdleRing was published to replace. Kept only to compare with, and
// to test against; not installed. It never scans, but it holds a timer for every packet of the last
// time-out, and fires them all. (A single timer per connection that each packet pushes back is
// HierarchicalWheel::reschedule(); bench/idle measures that too.)
//
// Contracts: IdleDetector (idle_detector.h). An id is the key. To add a key that is there already
// counts as a packet. Not thread-safe.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "carillon/idle/idle_detector.h"
#include "carillon/idle/ticks.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_pool.h"

namespace carillon {

template <class Key>
class TimerPerPacket {
 public:
  using key_type = Key;
  using Id = Key;

  explicit TimerPerPacket(Ticks timeout, Tick start_tick = 0)
      : timeout_(timeout.count), timers_(start_tick) {
    if (timeout.count == 0)
      throw std::invalid_argument("carillon: a time-out is at least one tick");
  }

  Key add(const Key& key) {
    last_packet_.try_emplace(key, Tick{0});
    touch(key);
    return key;
  }

  void touch(const Key& key) {
    const auto known = last_packet_.find(key);
    if (known == last_packet_.end()) return;
    known->second = now() + 1;
    timers_.schedule(timers_.now() + 1 + timeout_, key);
  }

  // The timers of the connection stay; when they fire, they find no connection.
  bool remove(const Key& key) { return last_packet_.erase(key) == 1; }

  template <class OnIdle>
  std::size_t advance(Tick to, OnIdle&& on_idle) {
    std::size_t found = 0;
    timers_.advance(to, [&](TimerId, Key&& key) {
      const auto known = last_packet_.find(key);
      if (known == last_packet_.end() || known->second + timeout_ > now()) return;
      last_packet_.erase(known);
      ++found;
      const Key id = key;
      on_idle(id, std::move(key));
    });
    return found;
  }

  Tick now() const noexcept { return timers_.now(); }
  std::size_t size() const noexcept { return last_packet_.size(); }
  std::size_t timers() const noexcept { return timers_.size(); }  // pending

 private:
  Tick timeout_;
  // The tick from which the time-out counts: the one after the last packet.
  std::unordered_map<Key, Tick> last_packet_;
  TimerPool<Key> timers_;
};

static_assert(IdleDetector<TimerPerPacket<int>>);

}  // namespace carillon
