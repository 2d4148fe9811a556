// ComparisonSet: makes a TimerSet (timer_set.h) of a plain order of timers: a list in no order
// (scan_list.h), a sorted list (sorted_list.h) or a heap (binary_heap.h).
//
// These designs are kept only to compare the wheels with, in benchmarks and in docs/wheels.md, and
// to run the tests of TimerSet over. They are not installed. Programs use the wheels of
// include/carillon/wheel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "carillon/wheel/detail/advance_and_fire.h"
#include "carillon/wheel/slack.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// An Order holds the timers that are not due yet. It has
//   kPolled
//       True if it is asked at each advance; false if only when the earliest timer is due.
//   make_room()
//       Makes sure that add() cannot fail. Throws std::bad_alloc with nothing changed. May move any
//       entry.
//   add(node, expiry) noexcept
//       Adds a timer behind all of the same expiry.
//   holds(node), remove(node), move(node, expiry) noexcept
//   first() const noexcept
//       The earliest expiry, if there is one.
//   begin_at(tick) noexcept
//       Says that calls of due_at() for `tick`, the earliest expiry, follow.
//   due_at(tick) noexcept
//       The first timer that expires at `tick`; null if none is left.
//   any() noexcept
//       Any timer; null if no timer is left.
//   size(), bytes(), reserve(n), check_invariants()
//
// All contracts of TimerSet (timer_set.h) hold except the one on memory, which is O(the most timers
// that were pending at a time). Timers that are due stand in a queue, as in a wheel, so that a
// limit can leave some of them there. With a limit, an advance moves at most 2^20 + limit timers
// into that queue.
template <class Order>
class ComparisonSet : public AdvanceAndFire<ComparisonSet<Order>, 1, 64, std::size_t{1} << 20> {
  using Base = AdvanceAndFire<ComparisonSet, 1, 64, std::size_t{1} << 20>;

 public:
  explicit ComparisonSet(Tick start_tick = 0) noexcept : Base(start_tick, WheelPages::kDefault) {}
  ~ComparisonSet() {
    this->clear([](TimerNode&) noexcept {});
  }

  void schedule(TimerNode& node, Moment expiry) {
    if (node.armed()) return reschedule(node, expiry);
    if (expiry <= now_) {
      Table::put(this->overdue_entry(), node, expiry);
      table_.count_in();
      return;
    }
    order_.make_room();
    add(node, expiry);
  }

  // May fire at any tick of [expiry, expiry + slack]: at the roundest (slack.h).
  void schedule(TimerNode& node, Moment expiry, Tick slack) {
    schedule(node, Moment{relaxed_expiry(expiry, slack)});
  }

  bool cancel(TimerNode& node) noexcept {
    if (!node.armed() || !order_.holds(node)) return Base::cancel(node);
    disarm(node);
    return true;
  }

  void reschedule(TimerNode& node, Moment expiry) {
    if (!node.armed()) return schedule(node, expiry);
    const bool waits = order_.holds(node);
    if (expiry > now_) {
      if (waits) {
        order_.move(node, expiry);
        next_ = std::min<Tick>(next_, expiry);
      } else if (node.expiry() <= now_) {
        // A timer that is due is not left where it stands, among those that still are.
        order_.make_room();
        table_.take_out(Access::entry(node));
        add(node, expiry);
      } else {
        // The timer is about to come up; then it is found to be re-armed, and goes to the order.
        Access::expiry(node) = expiry;
      }
    } else if (!waits && node.expiry() <= expiry) {
      Access::expiry(node) = expiry;
    } else {
      TimerNode** const entry = this->overdue_entry();
      if (waits) {
        order_.remove(node);
        table_.count_in();
      } else {
        *Access::entry(node) = nullptr;
      }
      Table::put(entry, node, expiry);
    }
  }

  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    if (Order::kPolled && !empty()) next_ = now_;
    return Base::advance(to, on_expire, limit);
  }

  std::size_t size() const noexcept { return table_.size() + order_.size(); }
  bool empty() const noexcept { return size() == 0; }

  // From now on no operation allocates while at most `timers` are pending. Throws std::bad_alloc.
  void reserve(std::size_t timers) {
    table_.reserve(timers);
    order_.reserve(timers);
  }

  // Bytes allocated beside the set itself.
  std::size_t allocated_bytes() const noexcept { return table_.bytes() + order_.bytes(); }

  void check_invariants() const {
    Base::check_invariants();
    order_.check_invariants();
    const std::optional<Tick> first = order_.first();
    Base::require(!first || (*first > now_ && *first >= next_),
                  "the next wake-up is after a timer's expiry");
  }

 private:
  friend Base;
  using Base::next_;
  using Base::now_;
  using Base::table_;
  using typename Base::Access;
  using typename Base::SlotType;
  using typename Base::Table;
  using typename Base::WorkType;

  // The queue for the timers of now_ + 1 while they are taken out of the order.
  static constexpr std::size_t kArriving = 0;

  void add(TimerNode& node, Tick expiry) noexcept {
    order_.add(node, expiry);
    next_ = std::min(next_, expiry);
  }

  void disarm(TimerNode& node) noexcept {
    order_.remove(node);
    Access::entry(node) = nullptr;
  }

  Event next_event() const noexcept {
    if (!table_[kArriving].empty()) return {now_ + 1, kArriving, true};
    const std::optional<Tick> first = order_.first();
    return first ? Event{*first, kArriving, true} : Event{};
  }

  bool approach(const Event& event, WorkType& work) {
    this->hold_before(event.tick);
    order_.begin_at(event.tick);
    while (TimerNode* node = order_.due_at(event.tick)) {
      if (!work.spend(1)) return false;
      TimerNode** const entry = table_.new_entry(kArriving);
      order_.remove(*node);
      Table::put(entry, *node, node->expiry());
      table_.count_in();
    }
    return true;
  }

  void arrive(Tick) noexcept { table_.make_due(kArriving); }

  // Moves a timer that was re-armed from the table to the order.
  void place(TimerNode& node, Tick) {
    order_.make_room();
    table_.take_out(Access::entry(node));
    add(node, node.expiry());
  }

  template <class Sink>
  void clear_waiting(Sink& sink) {
    while (TimerNode* node = order_.any()) {
      disarm(*node);
      sink(*node);
    }
  }

  static void emptied() noexcept {}

  Order order_;
};

}  // namespace carillon::detail
