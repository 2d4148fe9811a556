// BinaryHeap: timers in a binary min-heap, as in the JDK's Timer, DelayQueue and
// ScheduledThreadPoolExecutor. Kept only to compare the wheels with, and to test against; not
// installed.
//
// schedule, cancel, reschedule: O(log n). A timer knows its entry in the heap, so cancelling needs
// no search; the JDK's Timer keeps a cancelled timer until its time, its DelayQueue searches.
// advance: O(log n) per timer fired. next_wakeup: O(1). Memory: 16 bytes in the node, 32 in the
// heap, twice the 32 while the heap grows.
//
// Contracts: comparison_set.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"
#include "models/comparison_set.h"
#include "models/entry_array.h"

namespace carillon {
namespace detail {

// A heap does not keep the order of timers with equal expiry. So each timer has a number, counted
// up as timers are scheduled.
class HeapOrder {
 public:
  static constexpr bool kPolled = false;

  void make_room() { heap_.make_room(); }

  void add(TimerNode& node, Tick expiry) noexcept {
    NodeAccess::expiry(node) = expiry;
    heap_.push({{nullptr, &node}, expiry, next_number_++});
    ++size_;
    rise(heap_.size() - 1);
  }

  bool holds(const TimerNode& node) const noexcept { return heap_.holds(node); }

  void remove(TimerNode& node) noexcept {
    --size_;
    drop(heap_.index_of(node));
  }

  void move(TimerNode& node, Tick expiry) noexcept {
    const std::size_t index = heap_.index_of(node);
    NodeAccess::expiry(node) = expiry;
    heap_.put(index, {{nullptr, &node}, expiry, next_number_++});
    settle(index);
  }

  std::optional<Tick> first() const noexcept {
    return heap_.size() == 0 ? std::nullopt : std::optional<Tick>(heap_[0].expiry);
  }

  static void begin_at(Tick) noexcept {}

  TimerNode* due_at(Tick tick) noexcept {
    // A cell without a timer: the timer was destroyed while armed.
    while (heap_.size() > 0 && heap_[0].entry.timer() == nullptr) drop(0);
    return heap_.size() > 0 && heap_[0].expiry == tick ? heap_[0].entry.timer() : nullptr;
  }

  TimerNode* any() noexcept {
    while (heap_.size() > 0 && heap_[heap_.size() - 1].entry.timer() == nullptr)
      heap_.shrink(heap_.size() - 1);
    return heap_.size() == 0 ? nullptr : heap_[heap_.size() - 1].entry.timer();
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return heap_.bytes(); }
  void reserve(std::size_t timers) { heap_.reserve(timers); }

  void check_invariants() const {
    bool ordered = heap_.check_entries() == size_;
    for (std::size_t i = 0; i < heap_.size(); ++i) {
      const TimerNode* timer = heap_[i].entry.timer();
      ordered = ordered && (timer == nullptr || timer->expiry() == heap_[i].expiry) &&
                !(i > 0 && before(heap_[i], heap_[parent(i)]));
    }
    if (!ordered) throw std::logic_error("carillon: BinaryHeap is broken: it is not in order");
  }

 private:
  struct Cell {
    CellEntry entry;
    Tick expiry;           // a copy of the timer's, so that a comparison does not touch the timer
    std::uint64_t number;  // how many timers were added before this one
  };

  static bool before(const Cell& a, const Cell& b) noexcept {
    return a.expiry != b.expiry ? a.expiry < b.expiry : a.number < b.number;
  }

  static std::size_t parent(std::size_t index) noexcept { return (index - 1) / 2; }

  void drop(std::size_t gap) noexcept {
    const std::size_t last = heap_.size() - 1;
    if (gap != last) heap_.put(gap, heap_[last]);
    heap_.shrink(last);
    if (gap != last) settle(gap);
  }

  void settle(std::size_t index) noexcept {
    if (index > 0 && before(heap_[index], heap_[parent(index)])) return rise(index);
    sink(index);
  }

  void rise(std::size_t index) noexcept {
    const Cell cell = heap_[index];
    for (; index > 0 && before(cell, heap_[parent(index)]); index = parent(index))
      heap_.put(index, heap_[parent(index)]);
    heap_.put(index, cell);
  }

  void sink(std::size_t index) noexcept {
    const Cell cell = heap_[index];
    for (std::size_t child = 2 * index + 1; child < heap_.size(); child = 2 * index + 1) {
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], cell)) break;
      heap_.put(index, heap_[child]);
      index = child;
    }
    heap_.put(index, cell);
  }

  std::size_t size_ = 0;  // timers
  EntryArray<Cell> heap_{size_};
  std::uint64_t next_number_ = 0;
};

}  // namespace detail

using BinaryHeap = detail::ComparisonSet<detail::HeapOrder>;

static_assert(TimerSet<BinaryHeap>);

}  // namespace carillon
