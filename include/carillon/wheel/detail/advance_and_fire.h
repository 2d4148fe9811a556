// AdvanceAndFire: what is the same in every model: the hand, what is due at it, the limit of an
// advance, and who may call whom.
//
// It is PER_TICK_BOOKKEEPING and EXPIRY_PROCESSING of Varghese and Lauck, with the contracts 4 to 8
// of timer_set.h; a model adds where a timer waits until the hand comes to it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/detail/slot_table.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon::detail {

inline constexpr Tick kNever =
    std::numeric_limits<Tick>::max();  // as a bound: nothing before the end of time

// The next tick at which a model has something to do, and the queue of its table that this is
// about.
struct Stop {
  Tick tick = kNever;
  std::size_t queue = 0;
  bool exists = false;
};

// What one advance has done and may still do.
template <std::size_t kMoves>
struct Work {
  std::size_t limit;
  std::size_t looks;  // entries
  std::size_t fired = 0;

  explicit Work(std::size_t fire_limit)
      : limit(fire_limit), looks(fire_limit > kNoLimit - kMoves ? kNoLimit : kMoves + fire_limit) {}

  bool look(std::size_t entries) noexcept {
    if (looks == 0) return false;
    if (looks != kNoLimit) looks -= std::min(looks, entries);
    return true;
  }
};

// Base of the class Model, which has:
//   Stop next_stop() const         the first tick after now() at which it has something to do
//   bool approach(Stop, Work&)     Prepares that tick while the hand is still before it. It may stop in the middle, by
//                                  returning false when work.look() does, or by std::bad_alloc; then it has called
//                                  hold_before(stop.tick), and its next_stop() is now() + 1 until a later call has come
//                                  to the end
//   void arrive(Tick) noexcept     the hand is at that tick: makes due what expires there
//   void place(TimerNode&, hand)   puts an armed timer whose expiry is after `hand` where it waits; its old entry, in
//                                  the table, is nulled by the caller
//   void clear_waiting(sink)       hands over what waits outside of the table
//   void emptied() noexcept        nothing is pending any more
//
// The table has kQueues queues for the model, and two more: timers that are overdue when they are
// scheduled stand in kOverdue, those that are to fire at now() in kDue.
template <class Model, std::size_t kQueues, std::size_t kChunkWords, std::size_t kMoves,
          std::size_t kLonePlaces = 0>
class AdvanceAndFire {
 public:
  AdvanceAndFire(const AdvanceAndFire&) = delete;
  AdvanceAndFire& operator=(const AdvanceAndFire&) = delete;

  bool cancel(TimerNode& node) noexcept {
    if (!node.armed()) return false;
    table_.cancel(node);
    return true;
  }

  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    if (to < next_ && to >= now_) {  // the short way: nothing is to be done before next_
      now_ = to;
      return 0;
    }
    if constexpr (kLonePlaces != 0) return step(to, on_expire, limit);
    return process(to, on_expire, limit);
  }

  std::optional<Tick> next_wakeup() const noexcept {
    return model().empty() ? std::nullopt : std::optional<Tick>(next_);
  }

  Tick now() const noexcept { return now_; }
  std::size_t size() const noexcept { return table_.size(); }
  bool empty() const noexcept { return model().size() == 0; }

  template <class Sink>
  void clear(Sink&& sink);

  void check_invariants() const;

 protected:
  using Access = NodeAccess;
  using Table = SlotTable<kQueues, kChunkWords, kLonePlaces>;
  using ChunkType = typename Table::ChunkType;
  using SlotType = typename Table::SlotType;
  using WorkType = Work<kMoves>;

  AdvanceAndFire(Tick start_tick, Pages pages) noexcept : now_(start_tick), table_(pages) {}
  ~AdvanceAndFire() = default;

  // The place of the entry of a timer that is scheduled at or before now(). May sweep, and so move
  // any entry.
  [[gnu::noinline]] TimerNode** overdue_place() {
    SlotType& overdue = table_[Table::kOverdue];
    TimerNode** const place =
        overdue.needs_chunk() ? table_.grow(Table::kOverdue).entry : overdue.take();
    next_ = now_;
    return place;
  }

  // The hand stands one tick before `tick`: all that was due by then has fired, and work is left.
  void hold_before(Tick tick) noexcept { now_ = next_ = tick - 1; }

  // Calls read(entry) for each timer of a queue, in order, gives the chunks back as they are read,
  // and the timers fetched in time. The reader nulls the entry. False: stopped by the bound.
  template <class Read>
  bool read_queue(std::size_t queue, WorkType& work, Read&& read) {
    SlotType& slot = table_[queue];
    table_.leave_to_reader(queue);
    while (!slot.empty()) {
      ChunkType* chunk = slot.front();
      TimerNode** const end = slot.end_of(chunk);
      if (!work.look(static_cast<std::size_t>(end - chunk->begin()))) return false;
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
    if (!holds) throw std::logic_error(std::string("carillon: a timer set is broken: ") + what);
  }

  // Invariants
  //  - next_ <= the tick of every stop, and next_ == now_ while kDue or kOverdue has entries, or a
  //    slot has arrived;
  //  - while busy_, next_ == now_, so that a nested advance() never takes the short way.
  Tick now_;
  Tick next_ = kNever;  // nothing is to be done before it
  bool busy_ = false;   // inside advance() or clear()
  Table table_;

 private:
  // While it lives, the owner is called back.
  struct Calling {
    AdvanceAndFire& set;
    explicit Calling(AdvanceAndFire& calling_set) noexcept : set(calling_set) { set.busy_ = true; }
    ~Calling() { set.busy_ = false; }
  };

  // While it lives, the queues are being read and the owner called back.
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

  // The commonest case when time goes tick by tick is that one timer, alone in its slot, is all
  // that is due at `to`. (If anything were left to be done before, next_ would be there.)
  template <class OnExpire>
  [[gnu::noinline]] std::size_t step(Tick to, OnExpire& on_expire, std::size_t limit) {
    if (to != next_ || to == now_ || (now_ ^ to) >= kLonePlaces || limit == 0)
      return process(to, on_expire, limit);
    TimerNode* const node = table_.alone(to % kLonePlaces);
    if (node == nullptr || node->expiry() != to) return process(to, on_expire, limit);
    now_ = to;
    table_.take_out_alone(to % kLonePlaces, *node);
    {
      const Calling calling(*this);
      on_expire(*node);
    }
    next_ = table_[Table::kOverdue].empty() ? model().next_stop().tick : now_;
    return 1;
  }

  // Fires what is due at now(), and moves on what has been re-armed. False: stopped by a bound.
  template <class OnExpire>
  bool fire_due(OnExpire& on_expire, WorkType& work) {
    if (!fire_chunks(on_expire, work)) return false;
    const std::size_t slot = table_.arrived();
    if (kLonePlaces == 0 || slot == Table::kNone) return true;
    if (table_.lone(slot) != nullptr &&
        !(work.look(1) && fire(table_.lone_place(slot), on_expire, work)))
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
      if (!work.look(static_cast<std::size_t>(end - chunk->begin()))) return false;
      prefetch_timers(chunk->begin(), end);
      for (TimerNode** entry = chunk->begin(); entry != end; ++entry) {
        if (*entry != nullptr && !fire(entry, on_expire, work)) return false;
      }
      table_.drop_front(Table::kDue);
      table_.sweep_if_sparse();
    }
    return true;
  }

  // Fires the timer of an entry of now(), or moves it on if it has been re-armed. False: stopped by
  // the limit.
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

  // Moves the hand to the next tick with something to do, or to `to` if there is none before. True:
  // something is due there.
  bool move_on(Tick to, WorkType& work) {
    const bool overdue = !table_[Table::kOverdue].empty();
    const Stop stop = model().next_stop();
    next_ = overdue ? now_ : stop.tick;
    if (now_ == to) return false;
    const Tick tick = overdue ? now_ + 1 : stop.tick;
    if (tick > to || !(overdue || stop.exists)) {
      now_ = to;
      return false;
    }
    const bool at_stop = stop.exists && stop.tick == tick;
    if (at_stop && !model().approach(stop, work)) return false;
    now_ = next_ = tick;
    table_.make_due(Table::kOverdue);
    if (at_stop) model().arrive(tick);
    return true;
  }

  void refuse_when_busy(const char* operation) const {
    if (busy_) [[unlikely]]
      throw_busy(operation);
  }

  [[noreturn, gnu::noinline, gnu::cold]] static void throw_busy(const char* operation) {
    throw std::logic_error(std::string("carillon: ") + operation +
                           "() was called from inside on_expire or clear()");
  }

  [[noreturn, gnu::noinline, gnu::cold]] void throw_past(Tick to) const {
    throw std::invalid_argument("carillon: advance(" + std::to_string(to) +
                                ") would go back: the wheel is at tick " + std::to_string(now_) +
                                ", and `to` must not be before that");
  }
};

template <class Model, std::size_t kQueues, std::size_t kChunkWords, std::size_t kMoves,
          std::size_t kLonePlaces>
template <class Sink>
void AdvanceAndFire<Model, kQueues, kChunkWords, kMoves, kLonePlaces>::clear(Sink&& sink) {
  refuse_when_busy("clear");
  const Busy busy(*this, true);
  next_ = now_;
  model().clear_waiting(sink);
  for (std::size_t queue = 0; queue < Table::kSlots; ++queue) {
    if (TimerNode* lone = table_.lone(queue)) {
      table_.take_out(table_.lone_place(queue));
      sink(*lone);
    }
    SlotType& slot = table_[queue];
    while (!slot.empty()) {
      ChunkType* const chunk = slot.front();
      for (TimerNode** entry = chunk->begin(); entry != slot.end_of(chunk);
           ++entry) {  // the sink may add to the end
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

template <class Model, std::size_t kQueues, std::size_t kChunkWords, std::size_t kMoves,
          std::size_t kLonePlaces>
void AdvanceAndFire<Model, kQueues, kChunkWords, kMoves, kLonePlaces>::check_invariants() const {
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
