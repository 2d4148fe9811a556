// ScanList: timers in no order; each advance reads all of them. Kept only to compare the wheels
// with, and to test against; not installed.
//
// It shows what a scan costs. schedule: O(1), amortized. cancel, reschedule: O(1). advance: O(n)
// for the call and O(n) for each tick at which a timer fires. next_wakeup: O(1), as of the last
// scan. Memory: 16 bytes in the node, 16 in the list, twice the 16 while the list grows.
//
// Scheme 1 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987), without the
// count-down in each timer: the expiry is absolute instead. Contracts: comparison_set.h.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>

#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"
#include "models/comparison_set.h"
#include "models/entry_array.h"

namespace carillon {
namespace detail {

// The timers in the order in which they were added, with gaps where timers were removed. The gaps
// are closed when they are half of the array and it is full.
class ScanOrder {
 public:
  static constexpr bool kPolled = true;

  void make_room() {
    if (!timers_.full()) return;
    if (size_ <= timers_.size() / 2) {
      close_gaps();
    }
    timers_.make_room();
  }

  void add(TimerNode& node, Tick expiry) noexcept {
    NodeAccess::expiry(node) = expiry;
    timers_.push({{nullptr, &node}});
    ++size_;
  }

  bool holds(const TimerNode& node) const noexcept { return timers_.holds(node); }

  void remove(TimerNode& node) noexcept {
    *NodeAccess::entry(node) = nullptr;
    if (--size_ == 0) timers_.shrink(0);
  }

  static void move(TimerNode& node, Tick expiry) noexcept { NodeAccess::expiry(node) = expiry; }

  std::optional<Tick> first() const noexcept {
    std::optional<Tick> first;
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      const TimerNode* timer = timers_[i].entry.timer();
      if (timer != nullptr && (!first || timer->expiry() < *first)) first = timer->expiry();
    }
    return first;
  }

  void begin_at(Tick) noexcept { scanned_ = 0; }

  TimerNode* due_at(Tick tick) noexcept {
    for (; scanned_ < timers_.size(); ++scanned_) {
      TimerNode* timer = timers_[scanned_].entry.timer();
      if (timer != nullptr && timer->expiry() == tick) return timer;
    }
    return nullptr;
  }

  TimerNode* any() noexcept {
    while (timers_.size() > 0 && timers_[timers_.size() - 1].entry.timer() == nullptr)
      timers_.shrink(timers_.size() - 1);
    return timers_.size() == 0 ? nullptr : timers_[timers_.size() - 1].entry.timer();
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return timers_.bytes(); }

  // Room for twice as many, so that half may be gaps.
  void reserve(std::size_t timers) { timers_.reserve(2 * timers); }

  void check_invariants() const {
    if (timers_.check_entries() != size_)
      throw std::logic_error("carillon: ScanList is broken: it counts other timers than it holds");
  }

 private:
  struct Cell {
    CellEntry entry;
  };

  void close_gaps() noexcept {
    std::size_t out = 0;
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      if (timers_[i].entry.timer() != nullptr) timers_.put(out++, timers_[i]);
    }
    timers_.shrink(out);
  }

  std::size_t size_ = 0;  // timers
  EntryArray<Cell> timers_{size_};
  std::size_t scanned_ = 0;  // cells that due_at() has read
};

}  // namespace detail

using ScanList = detail::ComparisonSet<detail::ScanOrder>;

static_assert(TimerSet<ScanList>);

}  // namespace carillon
