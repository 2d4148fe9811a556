// ComparisonSet: a TimerSet made of any plain order of timers, to compare the wheels with.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>

#include "carillon/wheel/detail/advance_and_fire.h"
#include "carillon/wheel/slack.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// An Order holds the timers that are not due yet:
//   kPolled                  whether it is asked at each advance, or only when the earliest timer is due
//   make_room()              so that add() cannot fail. Throws std::bad_alloc with nothing changed. May move any entry
//   add(node, expiry) noexcept    behind all of the same expiry
//   holds(node), remove(node), move(node, expiry) noexcept
//   first() const noexcept   the earliest expiry, if there is one
//   begin_at(tick) noexcept  `tick` is that
//   due_at(tick) noexcept    the first timer that expires at it, or null if there is none left
//   any() noexcept           some timer, or null
//   size(), bytes(), reserve(n), check_invariants()
//
// All contracts of TimerSet (timer_set.h) hold, but for memory, which is O(the most timers that
// were pending at a time). What is due stands in a queue, as in a wheel, so that it can be left
// there by a limit. With a limit, an advance moves no more than 2^20 + limit timers into that.
template <class Order>
class ComparisonSet : public AdvanceAndFire<ComparisonSet<Order>, 1, 64, std::size_t{1} << 20> {
  using Base = AdvanceAndFire<ComparisonSet, 1, 64, std::size_t{1} << 20>;

 public:
  explicit ComparisonSet(Tick start_tick = 0) noexcept : Base(start_tick, Pages::kDefault) {}
  ~ComparisonSet() {
    this->clear([](TimerNode&) noexcept {});
  }

  void schedule(TimerNode& node, Tick expiry) {
    assert(!node.armed() && "schedule() of a timer that is armed: use reschedule()");
    if (expiry <= now_) {
      Table::put(this->overdue_place(), node, expiry);
      table_.count_in();
      return;
    }
    order_.make_room();
    add(node, expiry);
  }

  // May fire at any tick of [expiry, expiry + slack]: at the roundest (slack.h).
  void schedule(TimerNode& node, Tick expiry, Tick slack) {
    schedule(node, relaxed_expiry(expiry, slack));
  }

  bool cancel(TimerNode& node) noexcept {
    if (!node.armed() || !order_.holds(node)) return Base::cancel(node);
    disarm(node);
    return true;
  }

  void reschedule(TimerNode& node, Tick expiry) {
    if (!node.armed()) return schedule(node, expiry);
    const bool waits = order_.holds(node);
    if (expiry > now_) {
      if (waits) {
        order_.move(node, expiry);
        next_ = std::min(next_, expiry);
      } else {
        Access::expiry(node) =
            expiry;  // it is about to be looked at, and waits for its new time from then on
      }
    } else if (!waits && node.expiry() <= expiry) {
      Access::expiry(node) = expiry;
    } else {
      TimerNode** const place = this->overdue_place();
      if (waits) {
        order_.remove(node);
        table_.count_in();
      } else {
        *Access::entry(node) = nullptr;
      }
      Table::put(place, node, expiry);
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

  static constexpr std::size_t kArriving =
      0;  // the timers of now_ + 1, while they are taken out of the order

  void add(TimerNode& node, Tick expiry) noexcept {
    order_.add(node, expiry);
    next_ = std::min(next_, expiry);
  }

  void disarm(TimerNode& node) noexcept {
    order_.remove(node);
    Access::entry(node) = nullptr;
  }

  Stop next_stop() const noexcept {
    if (!table_[kArriving].empty()) return {now_ + 1, kArriving, true};
    const std::optional<Tick> first = order_.first();
    return first ? Stop{*first, kArriving, true} : Stop{};
  }

  bool approach(const Stop& stop, WorkType& work) {
    this->hold_before(stop.tick);
    order_.begin_at(stop.tick);
    while (TimerNode* node = order_.due_at(stop.tick)) {
      if (!work.look(1)) return false;
      TimerNode** const place = table_.place_in(kArriving);
      order_.remove(*node);
      Table::put(place, *node, node->expiry());
      table_.count_in();
    }
    return true;
  }

  void arrive(Tick) noexcept { table_.make_due(kArriving); }

  // Puts a timer of the table, which was re-armed, into the order.
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
