// IdleScan: a map from each connection to its last packet, read from end to end at each advance().
//
// The first of the designs that IdleRing was published to replace. Kept only to compare with, and
// to test against; not installed. A packet costs one look-up and one store. Each advance() is
// O(connections), whether any connection is idle or not.
//
// Contracts: IdleDetector (idle_detector.h). An id is the key. To add a key that is there already
// counts as a packet. Not thread-safe.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "carillon/idle/idle_detector.h"
#include "carillon/idle/ticks.h"
#include "carillon/wheel/timer_node.h"

namespace carillon {

template <class Key>
class IdleScan {
 public:
  using key_type = Key;
  using Id = Key;

  explicit IdleScan(Ticks timeout, Tick start_tick = 0)
      : timeout_(timeout.count), now_(start_tick) {
    if (timeout.count == 0)
      throw std::invalid_argument("carillon: a time-out is at least one tick");
  }

  Key add(const Key& key) {
    last_packet_.insert_or_assign(key, now_ + 1);
    return key;
  }

  void touch(const Key& key) {
    const auto known = last_packet_.find(key);
    if (known != last_packet_.end()) known->second = now_ + 1;
  }

  bool remove(const Key& key) { return last_packet_.erase(key) == 1; }

  template <class OnIdle>
  std::size_t advance(Tick to, OnIdle&& on_idle) {
    if (busy_) throw std::logic_error("carillon: advance() was called from inside on_idle");
    if (to < now_)
      throw std::invalid_argument("carillon: advance(" + std::to_string(to) + ") would go back");
    const Busy busy(busy_);
    now_ = to;
    std::vector<Key> idle;
    for (const auto& [key, last] : last_packet_) {
      if (is_idle(last)) idle.push_back(key);
    }
    std::size_t found = 0;
    for (Key& key : idle) {
      const auto known = last_packet_.find(key);
      // on_idle may have removed or touched it.
      if (known == last_packet_.end() || !is_idle(known->second)) continue;
      last_packet_.erase(known);
      ++found;
      const Key id = key;
      on_idle(id, std::move(key));
    }
    return found;
  }

  Tick now() const noexcept { return now_; }
  std::size_t size() const noexcept { return last_packet_.size(); }

 private:
  struct Busy {
    bool& busy;
    explicit Busy(bool& flag) noexcept : busy(flag) { busy = true; }
    ~Busy() { busy = false; }
  };

  bool is_idle(Tick last) const noexcept { return now_ >= last && now_ - last >= timeout_; }

  Tick timeout_;
  Tick now_;
  bool busy_ = false;
  // The tick from which the time-out counts: the one after the last packet.
  std::unordered_map<Key, Tick> last_packet_;
};

static_assert(IdleDetector<IdleScan<int>>);

}  // namespace carillon
