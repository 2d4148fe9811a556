// IdleRing: the published ring queue for idle connections: slots of sets, and a map from each key
// to its slot.
//
// The ring has one slot more than the time-out has ticks. Its hand moves by one slot a tick. A
// packet moves its key to the slot just behind the hand, which the hand reaches last. Every key in
// the slot that the hand reaches is idle.
//
//   carillon::IdleRing<int> ring(carillon::Ticks{30});  // a time-out of 30 ticks: 31 slots
//   ring.add(socket);
//   ring.touch(socket);
//   ring.advance(ring.now() + 1, [](int, int socket) { close(socket); });
//
// The published recipe has 30 slots for 30 s; with_slots(30) makes that ring. A packet at second 0
// sharp is then found idle at second 30, as promised. But a packet at second 0.9 is found at second
// 30 too, which is early, after 29.1 s. So that ring keeps its promise only for packets that come
// on the tick, or for a time-out of 29 s.
//
// Cost, as published: a packet takes a look-up, a removal and an insertion in hash tables, under
// one lock if there is more than one thread. All connections have the same time-out. IdleRing is
// here for comparison; IdleTracker (idle_tracker.h) is the one to use.
//
// Contracts: IdleDetector (idle_detector.h). The id of a connection is its key; adding a key that
// is already there counts as a packet. Not thread-safe. Complexity: add, touch, remove O(1) on
// average; advance O(min(ticks, slots)), and O(1) per key found.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "carillon/idle/idle_detector.h"
#include "carillon/idle/ticks.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/timer_node.h"

namespace carillon {

template <class Key>
class IdleRing {
 public:
  using key_type = Key;
  using Id = Key;

  // Throws std::invalid_argument if `timeout` is 0.
  explicit IdleRing(Ticks timeout, Tick start_tick = 0)
      : IdleRing(Slots{timeout.count + 1}, start_tick) {
    if (timeout.count == 0)
      CARILLON_THROW std::invalid_argument("carillon: a time-out is at least one tick");
  }
  // The published ring. Throws std::invalid_argument if `slots` is 0.
  static IdleRing with_slots(Tick slots, Tick start_tick = 0) {
    return IdleRing(Slots{slots}, start_tick);
  }

  Key add(const Key& key) {
    const auto [known, added] = slot_of_.try_emplace(key, behind_the_hand());
    if (added) {
      slots_[known->second].insert(key);
    } else {
      touch(key);
    }
    return key;
  }

  void touch(const Key& key) {
    const auto known = slot_of_.find(key);
    if (known == slot_of_.end()) return;
    auto entry = take_out(key, known->second);
    known->second = behind_the_hand();
    slots_[known->second].insert(std::move(entry));
  }

  bool remove(const Key& key) {
    const auto known = slot_of_.find(key);
    if (known == slot_of_.end()) return false;
    take_out(key, known->second);
    slot_of_.erase(known);
    return true;
  }

  template <class OnIdle>
  std::size_t advance(Tick to, OnIdle&& on_idle) {
    if (busy_)
      CARILLON_THROW std::logic_error("carillon: advance() was called from inside on_idle");
    if (to < now_)
      CARILLON_THROW std::invalid_argument("carillon: advance(" + std::to_string(to) +
                                           ") would go back");
    const Busy busy(busy_);
    std::size_t found = hand_over_due(on_idle);  // the keys that an exception left
    while (now_ < to) {
      now_ = slot_of_.empty() ? to : now_ + 1;
      // The slot that the hand reaches becomes, once it is empty, the slot just behind the hand.
      due_.swap(slots_[behind_the_hand()]);
      found += hand_over_due(on_idle);
    }
    return found;
  }

  Tick now() const noexcept { return now_; }
  std::size_t size() const noexcept { return slot_of_.size(); }
  std::size_t slots() const noexcept { return slots_.size(); }

 private:
  using Set = std::unordered_set<Key>;

  struct Slots {
    Tick count;
  };
  struct Busy {
    bool& busy;
    explicit Busy(bool& flag) noexcept : busy(flag) { busy = true; }
    ~Busy() { busy = false; }
  };

  IdleRing(Slots slots, Tick start_tick) : now_(start_tick), slots_(slots.count) {
    if (slots.count == 0)
      CARILLON_THROW std::invalid_argument("carillon: a ring has at least one slot");
  }

  std::size_t behind_the_hand() const noexcept {
    return static_cast<std::size_t>(now_ % slots_.size());
  }

  typename Set::node_type take_out(const Key& key, std::size_t slot) {
    auto entry = slots_[slot].extract(key);
    return entry.empty() ? due_.extract(key) : std::move(entry);
  }

  template <class OnIdle>
  std::size_t hand_over_due(OnIdle& on_idle) {
    std::size_t found = 0;
    while (!due_.empty()) {
      Key key = *due_.begin();
      remove(key);
      ++found;
      const Key id = key;
      on_idle(id, std::move(key));
    }
    return found;
  }

  Tick now_;
  bool busy_ = false;
  std::vector<Set> slots_;
  Set due_;  // the keys of the slot that the hand has reached
  std::unordered_map<Key, std::size_t> slot_of_;
};

static_assert(IdleDetector<IdleRing<int>>);

}  // namespace carillon
