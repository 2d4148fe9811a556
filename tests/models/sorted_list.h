// SortedList: timers in a list ordered by expiry. Kept only to compare the wheels with, and to test
// against; not installed.
//
// It does well if timers are scheduled nearly in the order in which they expire. schedule,
// reschedule: O(timers that expire later), since the position is searched from the end. cancel:
// O(1). advance: O(1) per timer fired; it stops at the first timer that is not due. next_wakeup:
// O(1). Memory: 16 bytes in the node, 40 in the list, twice the 40 while the list grows.
//
// Scheme 2 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987). Contracts:
// comparison_set.h.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"
#include "models/comparison_set.h"
#include "models/entry_array.h"

namespace carillon {
namespace detail {

// A doubly linked list whose links are kept in one array, and reused.
class SortedOrder {
 public:
  static constexpr bool kPolled = false;

  void make_room() {
    if (free_ == kNone) links_.make_room();
  }

  void add(TimerNode& node, Tick expiry) noexcept {
    NodeAccess::expiry(node) = expiry;
    std::size_t link = free_;
    if (link == kNone) {
      link = links_.size();
      links_.push({{nullptr, &node}, expiry, kNone, kNone});
    } else {
      free_ = links_[link].next;
      links_.put(link, {{nullptr, &node}, expiry, kNone, kNone});
    }
    insert(link);
    ++size_;
  }

  bool holds(const TimerNode& node) const noexcept { return links_.holds(node); }

  void remove(TimerNode& node) noexcept {
    --size_;
    drop(links_.index_of(node));
  }

  void move(TimerNode& node, Tick expiry) noexcept {
    const std::size_t link = links_.index_of(node);
    unlink(link);
    NodeAccess::expiry(node) = links_[link].expiry = expiry;
    insert(link);
  }

  std::optional<Tick> first() const noexcept {
    return head_ == kNone ? std::nullopt : std::optional<Tick>(links_[head_].expiry);
  }

  static void begin_at(Tick) noexcept {}

  TimerNode* due_at(Tick tick) noexcept {
    TimerNode* const first = any();
    return first != nullptr && first->expiry() == tick ? first : nullptr;
  }

  TimerNode* any() noexcept {
    // A link without a timer: the timer was destroyed while armed.
    while (head_ != kNone && links_[head_].entry.timer() == nullptr) drop(head_);
    return head_ == kNone ? nullptr : links_[head_].entry.timer();
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return links_.bytes(); }
  void reserve(std::size_t timers) { links_.reserve(timers); }

  void check_invariants() const {
    std::size_t linked = 0, previous = kNone;
    for (std::size_t link = head_; link != kNone; previous = link, link = links_[link].next) {
      require(++linked <= links_.size(), "the list has a loop");
      require(links_[link].previous == previous, "a link does not point back");
      require(previous == kNone || links_[previous].expiry <= links_[link].expiry,
              "it is not in order");
    }
    require(tail_ == previous, "the end is not the last link");
    require(linked >= size_ && links_.check_entries() == size_,
            "it counts other timers than it holds");
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct Link {
    CellEntry entry;
    Tick expiry;  // the timer's, so that a search does not touch it
    std::size_t previous, next;
  };

  static void require(bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("carillon: SortedList is broken: ") + what);
  }

  // Links `link` behind the last one that does not expire later.
  void insert(std::size_t link) noexcept {
    std::size_t before = tail_;
    while (before != kNone && links_[before].expiry > links_[link].expiry)
      before = links_[before].previous;
    const std::size_t after = before == kNone ? head_ : links_[before].next;
    links_[link].previous = before;
    links_[link].next = after;
    (before == kNone ? head_ : links_[before].next) = link;
    (after == kNone ? tail_ : links_[after].previous) = link;
  }

  void unlink(std::size_t link) noexcept {
    const std::size_t before = links_[link].previous, after = links_[link].next;
    (before == kNone ? head_ : links_[before].next) = after;
    (after == kNone ? tail_ : links_[after].previous) = before;
  }

  void drop(std::size_t link) noexcept {
    unlink(link);
    links_[link] = {{}, 0, kNone, free_};
    free_ = link;
  }

  std::size_t size_ = 0;  // timers
  EntryArray<Link> links_{size_};
  std::size_t head_ = kNone;
  std::size_t tail_ = kNone;
  std::size_t free_ = kNone;  // the first link that is not in use; `next` leads to the others
};

}  // namespace detail

using SortedList = detail::ComparisonSet<detail::SortedOrder>;

static_assert(TimerSet<SortedList>);

}  // namespace carillon
