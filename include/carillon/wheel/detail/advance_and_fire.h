// AdvanceAndFire: the advance() and fire() of every wheel. Here the hand (now(), the tick that the
// wheel has come to) moves, and here a timer that is due calls its owner back.
//
// How the pieces of a wheel fit together
// --------------------------------------
//  - The wheel itself, the *model*, is a HierarchicalWheel (hierarchical_wheel.h) or a HashedWheel
//    (hashed_wheel.h). It knows in which slot a timer waits, and what must be done before the hand
//    comes to a slot: a HierarchicalWheel cascades. Its geometry (geometry.h, levels.h) computes
//    levels, slots and ticks.
//  - SlotWheel (slot_wheel.h), a base of both, has schedule() and reschedule().
//  - AdvanceAndFire, the base of SlotWheel, has advance(), cancel() and clear().
//  - SlotTable (slot_table.h), a member, holds the timers: all slots, their memory, and the sweep
//    that removes null entries.
//
// How an advance goes
// -------------------
// advance(to) first fires what an earlier call has left, then goes from event to event. An event is
// the next tick at which the model has something to do, with the queue to do it with. For each
// event
//  1. move_on() asks the model for its next_event(). If that is after `to`, the hand moves to `to`,
//     and the advance ends.
//  2. The model's approach() prepares the event, while the hand is still before its tick.
//  3. The hand moves to the event's tick. The overdue timers are queued to fire first; behind them,
//     the model's arrive() queues the timers that expire at this tick.
//  4. fire_due() reads the queue, and calls fire() for each entry. fire() calls on_expire or, if
//     the timer has been re-armed for later, places the timer on the wheel anew.
// Two short ways skip most of this: advance() when there is nothing to do up to `to`, and step()
// when one timer, alone in its slot, is all that is due.
//
// Together these are PER_TICK_BOOKKEEPING and EXPIRY_PROCESSING of Varghese and Lauck, with the
// contracts 4 to 8 of timer_set.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/detail/slot_table.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon::detail {

// As a bound: nothing happens before the end of time.
inline constexpr Tick kNever = std::numeric_limits<Tick>::max();

// The next tick at which a model has something to do, and the queue of its table to do it with.
struct Event {
  Tick tick = kNever;
  std::size_t queue = 0;
  bool exists = false;
};

// What one advance has done, and how much it may still do.
template <std::size_t kEntryBudget>
struct Work {
  std::size_t limit;         // timers that may fire in all
  std::size_t entries_left;  // entries that may still be read; kNoLimit: any number
  std::size_t fired = 0;

  explicit Work(std::size_t fire_limit)
      : limit(fire_limit),
        entries_left(fire_limit > kNoLimit - kEntryBudget ? kNoLimit : kEntryBudget + fire_limit) {}

  // Returns true if `entries` more entries may be read: if any are left, however few.
  bool spend(std::size_t entries) noexcept {
    if (entries_left == 0) return false;
    if (entries_left != kNoLimit) entries_left -= std::min(entries_left, entries);
    return true;
  }
};

// Base of the class Model, which has:
//   Event next_event() const
//       The first event after now().
//   bool approach(Event, Work&)
//       Prepares the event, while the hand is still before its tick. It may stop in the middle: by
//       returning false when work.spend() does, or by std::bad_alloc. Then it has called
//       hold_before(event.tick), and next_event() is at now() + 1 until a later call of approach()
//       has come to the end.
//   void arrive(Tick) noexcept
//       The hand is at that tick: makes due what expires there.
//   void place(TimerNode&, hand)
//       Puts an armed timer that expires after `hand` where it has to wait. The caller nulls its
//       old entry in the table.
//   void clear_waiting(sink)
//       Hands over the timers that wait outside of the table.
//   void emptied() noexcept
//       No timer is pending any more.
//
// The table has kQueues queues for the model, and two more: kOverdue holds timers that were overdue
// when they were scheduled, kDue those that fire at now().
template <class Model, std::size_t kQueues, std::size_t kChunkWords, std::size_t kEntryBudget,
          std::size_t kLoneSlots = 0>
class AdvanceAndFire {
 public:
  AdvanceAndFire(const AdvanceAndFire&) = delete;
  AdvanceAndFire& operator=(const AdvanceAndFire&) = delete;

  // The model's schedule() and reschedule() for now() + delay, or for the last tick if that is
  // before. Inside on_expire, now() is the tick being processed.
  void schedule_after(TimerNode& node, Tick delay) { model().schedule(node, after(delay)); }
  void schedule_after(TimerNode& node, Tick delay, Tick slack) {
    model().schedule(node, after(delay), slack);
  }
  void reschedule_after(TimerNode& node, Tick delay) { model().reschedule(node, after(delay)); }
  void schedule_after(TimerNode& node, Moment,
                      Tick slack = 0) = delete;  // schedule() takes moments
  void reschedule_after(TimerNode& node, Moment) = delete;

  bool cancel(TimerNode& node) noexcept {
    if (!node.armed()) return false;
    table_.cancel(node);
    return true;
  }

  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    if (to < next_ && to >= now_) {  // there is nothing to do before next_
      now_ = to;
      return 0;
    }
    if constexpr (kLoneSlots != 0) return step(to, on_expire, limit);
    return process(to, on_expire, limit);
  }

  std::optional<Tick> next_wakeup() const noexcept {
    return model().empty() ? std::nullopt : std::optional<Tick>(next_);
  }

  Moment now() const noexcept { return Moment{now_}; }
  std::size_t size() const noexcept { return table_.size(); }
  bool empty() const noexcept { return model().size() == 0; }

  template <class Sink>
  void clear(Sink&& sink);

  void check_invariants() const;

 protected:
  using Access = NodeAccess;
  using Table = SlotTable<kQueues, kChunkWords, kLoneSlots>;
  using ChunkType = typename Table::ChunkType;
  using SlotType = typename Table::SlotType;
  using WorkType = Work<kEntryBudget>;

  AdvanceAndFire(Tick start_tick, WheelPages pages) noexcept : now_(start_tick), table_(pages) {}
  ~AdvanceAndFire() = default;

  // A new entry for a timer that is scheduled at or before now(); the caller fills it at once. May
  // sweep, and so move any entry.
  [[gnu::noinline]] TimerNode** overdue_entry() {
    SlotType& overdue = table_[Table::kOverdue];
    TimerNode** const entry =
        overdue.needs_chunk() ? table_.grow(Table::kOverdue).entry : overdue.take();
    next_ = now_;
    return entry;
  }

  // Moves the hand to one tick before `tick`, where it waits until approach() is done. All that was
  // due by then has fired.
  void hold_before(Tick tick) noexcept { now_ = next_ = tick - 1; }

  // Calls read(entry) for each timer of a queue, in order; read() nulls the entry. The timers of a
  // chunk are fetched from memory together, and the chunk is given back when it has been read.
  // Returns false if it stopped because no more entries may be read.
  template <class Read>
  bool read_queue(std::size_t queue, WorkType& work, Read&& read) {
    SlotType& slot = table_[queue];
    table_.leave_to_reader(queue);
    while (!slot.empty()) {
      ChunkType* chunk = slot.front();
      TimerNode** const end = slot.end_of(chunk);
      if (!work.spend(static_cast<std::size_t>(end - chunk->begin()))) return false;
      prefetch_timers(chunk->begin(), end);
      for (TimerNode** entry = chunk->begin(); entry != end; ++entry) {
        if (*entry != nullptr) read(entry);
      }
      table_.drop_front(queue);
    }
    table_.set_empty(queue);
    return true;
  }

  static void require(bool holds, const char* what) {
    if (!holds)
      CARILLON_THROW std::logic_error(std::string("carillon: a timer set is broken: ") + what);
  }

  // Invariants
  //  - next_ <= the tick of every event, and next_ == now_ while kDue or kOverdue has entries, or a
  //    slot has arrived;
  //  - while busy_, next_ == now_, so that a nested advance() does not return early, but is
  //    refused.
  Tick now_;
  Tick next_ = kNever;  // there is nothing to do before it
  bool busy_ = false;   // inside advance() or clear()
  Table table_;

 private:
  // Lives while the owner is called back.
  struct Calling {
    AdvanceAndFire& set;
    explicit Calling(AdvanceAndFire& calling_set) noexcept : set(calling_set) { set.busy_ = true; }
    ~Calling() { set.busy_ = false; }
  };

  // Lives while queues are read and the owner is called back.
  struct Busy {
    AdvanceAndFire& set;
    Busy(AdvanceAndFire& busy_set, bool clearing) noexcept : set(busy_set) {
      set.busy_ = true;
      set.table_.keep_still(true, clearing);
    }
    ~Busy() {
      set.busy_ = false;
      set.table_.keep_still(false, false);
    }
  };

  Model& model() noexcept { return static_cast<Model&>(*this); }
  const Model& model() const noexcept { return static_cast<const Model&>(*this); }

  Moment after(Tick delay) const noexcept { return Moment{now_ + std::min(delay, kNever - now_)}; }

  template <class OnExpire>
  [[gnu::noinline]] std::size_t process(Tick to, OnExpire& on_expire, std::size_t limit) {
    refuse_when_busy("advance");
    if (to < now_) [[unlikely]]
      throw_past(to);
    const Busy busy(*this, false);
    if (to == now_) table_.make_due(Table::kOverdue);
    WorkType work(limit);
    while (fire_due(on_expire, work) && move_on(to, work)) {
    }
    return work.fired;
  }

  // When time goes tick by tick, the commonest case is that one timer, alone in its slot, is all
  // that is due at `to`. Nothing is left to be done before `to`, or next_ would be earlier.
  template <class OnExpire>
  [[gnu::noinline]] std::size_t step(Tick to, OnExpire& on_expire, std::size_t limit) {
    if (to != next_ || to == now_ || (now_ ^ to) >= kLoneSlots || limit == 0)
      return process(to, on_expire, limit);
    TimerNode* const node = table_.alone(to % kLoneSlots);
    if (node == nullptr || node->expiry() != to) return process(to, on_expire, limit);
    now_ = to;
    table_.take_out_alone(to % kLoneSlots, *node);
    {
      const Calling calling(*this);
      on_expire(*node);
    }
    next_ = table_[Table::kOverdue].empty() ? model().next_event().tick : now_;
    return 1;
  }

  // Fires the timers due at now(), and places those anew that have been re-armed for later. Returns
  // false if the limit, or the number of entries that may be read, stopped it.
  template <class OnExpire>
  bool fire_due(OnExpire& on_expire, WorkType& work) {
    if (!fire_chunks(on_expire, work)) return false;
    const std::size_t slot = table_.arrived();
    if (kLoneSlots == 0 || slot == Table::kNone) return true;
    if (table_.lone(slot) != nullptr &&
        !(work.spend(1) && fire(table_.lone_entry(slot), on_expire, work)))
      return false;
    table_.finish_arrived();
    return fire_chunks(on_expire, work);
  }

  template <class OnExpire>
  bool fire_chunks(OnExpire& on_expire, WorkType& work) {
    SlotType& due = table_[Table::kDue];
    if (due.empty()) return true;
    table_.leave_to_reader(Table::kDue);
    while (!due.empty()) {
      ChunkType* chunk = due.front();
      TimerNode** const end = due.end_of(chunk);
      if (!work.spend(static_cast<std::size_t>(end - chunk->begin()))) return false;
      prefetch_timers(chunk->begin(), end);
      for (TimerNode** entry = chunk->begin(); entry != end; ++entry) {
        if (*entry != nullptr && !fire(entry, on_expire, work)) return false;
      }
      table_.drop_front(Table::kDue);
      table_.sweep_if_sparse();
    }
    return true;
  }

  // Fires the timer of an entry that came up at now(), or places it anew if it has been re-armed
  // for later. Returns false if the limit forbids that it fires.
  template <class OnExpire>
  bool fire(TimerNode** entry, OnExpire& on_expire, WorkType& work) {
    TimerNode* node = *entry;
    if (node->expiry() > now_) {
      model().place(*node, now_);
      *entry = nullptr;
      return true;
    }
    if (work.fired == work.limit) return false;
    table_.take_out(entry);
    ++work.fired;
    on_expire(*node);
    return true;
  }

  // Moves the hand to the next event, but at most to `to`. While timers are overdue, the hand moves
  // one tick. Returns true if fire_due() must read the new tick; false ends the advance.
  bool move_on(Tick to, WorkType& work) {
    const bool overdue = !table_[Table::kOverdue].empty();
    const Event event = model().next_event();
    next_ = overdue ? now_ : event.tick;
    if (now_ == to) return false;
    const Tick tick = overdue ? now_ + 1 : event.tick;
    if (tick > to || !(overdue || event.exists)) {
      now_ = to;
      return false;
    }
    const bool at_event = event.exists && event.tick == tick;
    if (at_event && !model().approach(event, work)) return false;
    now_ = next_ = tick;
    table_.make_due(Table::kOverdue);
    if (at_event) model().arrive(tick);
    return true;
  }

  void refuse_when_busy(const char* operation) const {
    if (busy_) [[unlikely]]
      throw_busy(operation);
  }

  [[noreturn, gnu::noinline, gnu::cold]] static void throw_busy(const char* operation) {
    CARILLON_THROW std::logic_error(std::string("carillon: ") + operation +
                                    "() was called from inside on_expire or clear()");
  }

  [[noreturn, gnu::noinline, gnu::cold]] void throw_past(Tick to) const {
    CARILLON_THROW std::invalid_argument(
        "carillon: advance(" + std::to_string(to) + ") would go back: the wheel is at tick " +
        std::to_string(now_) + ", and `to` must not be before that");
  }
};

template <class Model, std::size_t kQueues, std::size_t kChunkWords, std::size_t kEntryBudget,
          std::size_t kLoneSlots>
template <class Sink>
void AdvanceAndFire<Model, kQueues, kChunkWords, kEntryBudget, kLoneSlots>::clear(Sink&& sink) {
  refuse_when_busy("clear");
  const Busy busy(*this, true);
  next_ = now_;
  model().clear_waiting(sink);
  for (std::size_t queue = 0; queue < Table::kSlots; ++queue) {
    if (TimerNode* lone = table_.lone(queue)) {
      table_.take_out(table_.lone_entry(queue));
      sink(*lone);
    }
    SlotType& slot = table_[queue];
    while (!slot.empty()) {
      ChunkType* const chunk = slot.front();
      // The sink may add entries at the end.
      for (TimerNode** entry = chunk->begin(); entry != slot.end_of(chunk); ++entry) {
        TimerNode* node = *entry;
        if (node == nullptr) continue;
        table_.take_out(entry);
        sink(*node);
      }
      table_.drop_front(queue);
    }
    if (queue < kQueues && table_.lone(queue) == nullptr) table_.set_empty(queue);
  }
  if (table_.holds_chunks() || !empty()) return;  // the sink has scheduled timers
  if (table_.arrived() != Table::kNone) table_.finish_arrived();
  next_ = kNever;
  model().emptied();
}

template <class Model, std::size_t kQueues, std::size_t kChunkWords, std::size_t kEntryBudget,
          std::size_t kLoneSlots>
void AdvanceAndFire<Model, kQueues, kChunkWords, kEntryBudget, kLoneSlots>::check_invariants()
    const {
  table_.check_invariants();
  require(next_ >= now_, "the next wake-up has passed");
  for (const std::size_t queue : {Table::kOverdue, Table::kDue}) {
    require(table_[queue].empty() || next_ == now_,
            "something is due, and the next wake-up is not now");
  }
  require(table_.arrived() == Table::kNone || next_ == now_,
          "a slot is due, and the next wake-up is not now");
}

}  // namespace carillon::detail
