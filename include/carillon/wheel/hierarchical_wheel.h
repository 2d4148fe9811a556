// HierarchicalWheel: Carillon's own timing wheel, for any number of timers over the whole range of 64-bit ticks.
//
// Choose it unless you have a reason not to: schedule, cancel and re-arm are O(1), timers fire exactly at their tick, the next
// wake-up is known at any time, and a jump over empty time costs nothing.
//
//   struct Session : carillon::TimerNode { std::string user; };
//
//   carillon::HierarchicalWheel<> wheel(now_ms());
//   wheel.schedule(session, wheel.now() + 30'000);
//   ...
//   wheel.reschedule(session, wheel.now() + 30'000);   // a packet came: one store
//   ...
//   wheel.advance(now_ms(), [](carillon::TimerNode& node) { close(static_cast<Session&>(node)); });
//   sleep_until(wheel.next_wakeup());
//
// How it works
// ------------
// Time is read as digits (BinaryDigits in geometry.h): level 0 has one slot per tick for the ticks that differ from now() in the
// last digit only, level 1 one slot per 256 ticks for those that differ in the last two, and so on: 8 levels for 64 bits. When the
// hand comes to the start of a slot of a higher level, the slot is *cascaded*: each of its timers moves to a lower level. When it
// comes to a slot of level 0, its timers fire.
//  - Nothing wraps: a slot that holds a timer is always ahead of the hand.
//  - The lowest non-empty level holds the earliest timers, and one bit per slot says which come first.
//  - Timers of one tick stay in the order they came: a slot is cascaded before anything can be scheduled below it.
//
// A slot is an array of pointers (slot.h), so that its timers can be fetched from memory all at once. Re-arming a timer for later
// stores its new expiry and leaves its entry where it is: when the entry comes up, the timer moves on to where it belongs by then.
// Cancelling writes null to the entry. Null entries go when their slot comes up, or are swept when they outnumber the live ones:
// each cancel then sweeps one chunk, until the wheel has been swept once around.
//
// Bounds
// ------
// schedule, cancel, reschedule: O(1); cancel and an earlier re-arm may sweep one chunk (62 entries). next_wakeup: O(1).
// advance, without a limit: O(1) per timer fired, per re-arm met and per null entry met, and each timer cascades at most once per
// level. With a limit, at most kMoves + limit + 62 entries are looked at; a call that stops there has fired fewer than `limit`
// timers and returns with next_wakeup() == now(), as if stopped by the limit: call again.
// Memory: 16 bytes in the node and 8 in a slot per timer, as much again at most for null entries, 33 KiB for the empty slots, and a
// half-empty chunk (512 bytes) per non-empty slot.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/wheel/chunk_pool.h"
#include "carillon/wheel/geometry.h"
#include "carillon/wheel/occupancy.h"
#include "carillon/wheel/slack.h"
#include "carillon/wheel/slot.h"
#include "carillon/wheel/slot_compactor.h"
#include "carillon/wheel/timer_node.h"
#include "carillon/wheel/timer_set.h"

namespace carillon {

// The contracts are those of TimerSet (timer_set.h). Neither copied nor moved: callbacks keep its address.
template <class Geometry = BinaryDigits<8>, std::size_t kChunkWords = 64, std::size_t kMoves = std::size_t{1} << 20>
class HierarchicalWheel {
 public:
  explicit HierarchicalWheel(Tick start_tick = 0) noexcept : now_(start_tick) {}
  HierarchicalWheel(const HierarchicalWheel&) = delete;
  HierarchicalWheel& operator=(const HierarchicalWheel&) = delete;
  ~HierarchicalWheel() {
    clear([](TimerNode&) noexcept {});
  }

  void schedule(TimerNode& node, Tick expiry) {
    assert(!node.armed() && "schedule() of a timer that is armed: use reschedule()");
    append(node, expiry);
    ++live_;
  }

  // May fire at any tick of [expiry, expiry + slack]: at the one that is cheapest (slack.h).
  void schedule(TimerNode& node, Tick expiry, Tick slack) { schedule(node, relaxed_expiry(expiry, slack)); }

  bool cancel(TimerNode& node) noexcept {
    TimerNode** entry = Access::entry(node);
    if (entry == nullptr) return false;
    *entry = nullptr;
    Access::entry(node) = nullptr;
    --live_;
    sweep_if_sparse();
    return true;
  }

  void reschedule(TimerNode& node, Tick expiry) {
    TimerNode** entry = Access::entry(node);
    if (entry == nullptr) return schedule(node, expiry);
    if (expiry >= node.expiry()) {
      Access::expiry(node) = expiry;
      return;
    }
    append(node, expiry);
    *entry = nullptr;
    sweep_if_sparse();
  }

  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    if (to < next_ && to >= now_) {  // never inside on_expire: next_ is now_ there
      now_ = to;
      return 0;
    }
    return process(to, on_expire, limit);
  }

  std::optional<Tick> next_wakeup() const noexcept { return empty() ? std::nullopt : std::optional<Tick>(next_); }

  Tick now() const noexcept { return now_; }
  std::size_t size() const noexcept { return live_; }
  bool empty() const noexcept { return live_ == 0; }

  template <class Sink>
  void clear(Sink&& sink);

  // From now on no operation allocates while at most `timers` are pending. Throws std::bad_alloc.
  void reserve(std::size_t timers) {
    const std::size_t entries = 2 * timers + kSparse + 2 * ChunkType::kEntries;
    pool_.reserve(entries / ChunkType::kEntries + std::min(entries, slots_.size()) + 2);
  }

  // Bytes allocated beside the wheel object itself.
  std::size_t allocated_bytes() const noexcept { return pool_.bytes(); }

  void check_invariants() const;

 private:
  using Access = detail::NodeAccess;
  using ChunkType = detail::Chunk<kChunkWords>;
  using SlotType = detail::Slot<kChunkWords>;

  // Slots 0 .. kLevelSlots-1 are those of the levels, lowest level first. Two more are queues at the hand: `overdue` collects what is
  // scheduled at or before now(), `due` holds what fires at now(). An expiry never goes from `due` back to `overdue`.
  static constexpr std::size_t kLevelSlots = Geometry::kLevels * Geometry::kSlots;
  static constexpr std::size_t kOverdue = kLevelSlots;
  static constexpr std::size_t kDue = kLevelSlots + 1;
  static constexpr Tick kNever = std::numeric_limits<Tick>::max();  // as next_: nothing before the end of time
  static constexpr std::size_t kSparsest = 1;  // null entries per live one that are left alone
  static constexpr std::size_t kSparse =
      8 * ChunkType::kEntries;  // so many more null than live entries are not worth a sweep

  // The start of the first non-empty slot ahead of the hand.
  struct Stop {
    Tick tick = kNever;
    unsigned level = 0;
    bool exists = false;
  };

  // What one advance has done and may still do.
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

  struct Busy {
    bool& flag;
    explicit Busy(bool& busy) noexcept : flag(busy) { flag = true; }
    ~Busy() { flag = false; }
  };

  // --- scheduling

  void append(TimerNode& node, Tick expiry) {
    if (expiry > now_) return place(node, expiry, now_);
    SlotType& overdue = slots_[kOverdue];
    if (overdue.needs_chunk()) {
      overdue.add_chunk(pool_.acquire());
      if (!sweeping_) sweep_below_ = live_to_fill_chunks();
    }
    push(overdue, node, expiry);
    next_ = now_;
  }

  // Puts `node` where a timer of `expiry` belongs when the hand is at `hand`. REQUIRES: expiry >= hand.
  void place(TimerNode& node, Tick expiry, Tick hand) {
    const unsigned level = Geometry::level(hand, expiry);
    SlotType& slot = slots_[level * Geometry::kSlots + Geometry::slot(expiry, level)];
    if (slot.needs_chunk()) [[unlikely]]
      extend(slot, level, expiry);
    push(slot, node, expiry);
  }

  void push(SlotType& slot, TimerNode& node, Tick expiry) noexcept {
    Access::entry(node) = slot.push(node);
    Access::expiry(node) = expiry;
  }

  [[gnu::noinline]] void extend(SlotType& slot, unsigned level, Tick expiry) {
    ChunkType* chunk = pool_.acquire();
    if (slot.empty()) {
      occupancy_.set(level, Geometry::slot(expiry, level));
      next_ = std::min(next_, Geometry::start(expiry, level));
    }
    slot.add_chunk(chunk);
    if (!sweeping_) sweep_below_ = live_to_fill_chunks();
  }

  // --- advancing

  template <class OnExpire>
  [[gnu::noinline]] std::size_t process(Tick to, OnExpire& on_expire, std::size_t limit) {
    refuse_when_busy("advance");
    if (to < now_) {
      throw std::invalid_argument("carillon: advance(" + std::to_string(to) + ") would go back: the wheel is at tick " +
                                  std::to_string(now_) + ", and `to` must not be before that");
    }
    const Busy busy(busy_);
    forget_sweep(kDue);
    if (to == now_) make_due(kOverdue);
    Work work(limit);
    while (fire_due(on_expire, work) && move_on(to, work)) {
    }
    return work.fired;
  }

  // Fires what is due at now(), and moves on what has been re-armed. False: stopped by a bound.
  template <class OnExpire>
  bool fire_due(OnExpire& on_expire, Work& work) {
    SlotType& due = slots_[kDue];
    while (!due.empty()) {
      ChunkType* chunk = due.front();
      TimerNode** const end = due.end_of(chunk);
      if (!work.look(static_cast<std::size_t>(end - chunk->begin()))) return false;
      detail::prefetch_timers(chunk->begin(), end);
      for (TimerNode** entry = chunk->begin(); entry != end; ++entry) {
        TimerNode* node = *entry;
        if (node == nullptr) continue;
        if (node->expiry() > now_) {
          place(*node, node->expiry(), now_);
          *entry = nullptr;
          continue;
        }
        if (work.fired == work.limit) return false;
        *entry = nullptr;
        Access::entry(*node) = nullptr;
        --live_;
        ++work.fired;
        on_expire(*node);
      }
      due.drop_front(pool_);
      sweep_if_sparse();
    }
    return true;
  }

  // Moves the hand to the next tick with something to do, or to `to` if there is none before. True: something is due there.
  bool move_on(Tick to, Work& work) {
    const bool overdue = !slots_[kOverdue].empty();
    const Stop stop = next_stop();
    next_ = overdue ? now_ : stop.tick;
    if (now_ == to) return false;
    const Tick tick = overdue ? now_ + 1 : stop.tick;
    if (tick > to || !(overdue || stop.exists)) {
      now_ = to;
      return false;
    }
    const bool at_stop = stop.exists && stop.tick == tick;
    if (at_stop && stop.level > 0 && !cascade(stop, work)) return false;
    now_ = next_ = tick;
    make_due(kOverdue);
    if (at_stop) make_due(Geometry::slot(tick, 0));
    return true;
  }

  Stop next_stop() const noexcept {
    if (cascading_ != 0) return {now_ + 1, cascading_, true};
    if (occupancy_.none()) return {};
    const unsigned level = occupancy_.lowest_level();
    return {Geometry::start(now_, level, occupancy_.first(level)), level, true};
  }

  // Moves the timers of the slot that begins at stop.tick to the levels below. Until that is done the hand stays one tick before: all
  // that was due by then has fired, and what is scheduled into the slot meanwhile joins its end and keeps its turn. False: stopped by
  // the bound; the next call goes on.
  bool cascade(const Stop& stop, Work& work) {
    now_ = next_ = stop.tick - 1;
    cascading_ = stop.level;
    const std::size_t digit = Geometry::slot(stop.tick, stop.level);
    SlotType& slot = slots_[stop.level * Geometry::kSlots + digit];
    forget_sweep(stop.level * Geometry::kSlots + digit);
    while (!slot.empty()) {
      ChunkType* chunk = slot.front();
      TimerNode** const end = slot.end_of(chunk);
      if (!work.look(static_cast<std::size_t>(end - chunk->begin()))) return false;
      detail::prefetch_timers(chunk->begin(), end);
      for (TimerNode** entry = chunk->begin(); entry != end; ++entry) {
        TimerNode* node = *entry;
        if (node == nullptr) continue;
        place(*node, node->expiry(), stop.tick);
        *entry = nullptr;
      }
      slot.drop_front(pool_);
    }
    occupancy_.clear(stop.level, digit);
    cascading_ = 0;
    return true;
  }

  // Queues all of a slot behind what is due already.
  void make_due(std::size_t index) noexcept {
    if (slots_[index].empty()) return;
    forget_sweep(index);
    slots_[kDue].splice(slots_[index]);
    if (index < kLevelSlots) occupancy_.clear(0, index);
  }

  void refuse_when_busy(const char* operation) const {
    if (!busy_) return;
    throw std::logic_error(std::string("carillon: ") + operation + "() was called from inside on_expire or clear()");
  }

  // --- sweeping

  // Entries that live timers do not account for can only be in full chunks: of these, at most kSparsest per live timer are left alone.
  std::size_t live_to_fill_chunks() const noexcept {
    const std::size_t full = (pool_.used() - occupancy_.count()) * ChunkType::kEntries;
    return full > kSparse ? (full - kSparse) / (1 + kSparsest) : 0;
  }

  void sweep_if_sparse() noexcept {
    if (live_ < sweep_below_) [[unlikely]]
      sweep();
  }

  // Sweeps one chunk. Once begun, a sweep goes on at each call until it has been through all slots.
  [[gnu::noinline]] void sweep() noexcept {
    if (!sweeping_) {
      sweep_below_ = live_to_fill_chunks();
      if (live_ >= sweep_below_ || clearing_) return;
      sweeping_ = true;
      sweep_below_ = std::numeric_limits<std::size_t>::max();
    }
    const std::size_t index = next_to_sweep();
    if (index == slots_.size()) return end_sweep();
    const bool finished = compactor_.step(slots_[index], pool_);
    sweep_at_ = finished ? index + 1 : index;
    if (slots_[index].empty() && index < kLevelSlots)
      occupancy_.clear(index / Geometry::kSlots, index % Geometry::kSlots);
  }

  void end_sweep() noexcept {
    compactor_.stop();
    sweeping_ = false;
    sweep_at_ = 0;
    sweep_below_ = live_to_fill_chunks();
  }

  std::size_t next_to_sweep() const noexcept {
    std::size_t from = sweep_at_ % Geometry::kSlots;
    for (std::size_t level = sweep_at_ / Geometry::kSlots; level < Geometry::kLevels; ++level, from = 0) {
      const std::size_t slot = occupancy_.first(level, from);
      if (slot != Geometry::kSlots) return level * Geometry::kSlots + slot;
    }
    if (sweep_at_ <= kOverdue && !slots_[kOverdue].empty()) return kOverdue;
    if (sweep_at_ <= kDue && !slots_[kDue].empty() && !busy_) return kDue;
    return slots_.size();
  }

  // The chunks of this slot are about to be taken from it.
  void forget_sweep(std::size_t index) noexcept {
    if (index == sweep_at_) compactor_.stop();
  }

  // Invariants
  //  - a level's slot is non-empty exactly if its bit in occupancy_ is set, and then lies ahead of the hand, which for the levels below
  //    cascading_ is at now_ + 1;
  //  - no timer is in a slot that begins after its expiry;
  //  - next_ <= the start of every non-empty slot, and next_ == now_ while `due` or `overdue` has entries;
  //  - inside on_expire, next_ == now_.
  Tick now_;
  Tick next_ = kNever;                    // nothing is to be done before it
  std::size_t live_ = 0;                  // timers pending
  unsigned cascading_ = 0;                // the level whose slot at now_ + 1 has been cascaded in part; 0: none
  bool busy_ = false;                     // inside advance() or clear()
  bool clearing_ = false;      // inside clear(): nothing is swept
  bool sweeping_ = false;      // a sweep is on its way
  std::size_t sweep_below_ = 0;  // so few live timers do not justify the chunks
  std::size_t sweep_at_ = 0;              // the slot the sweep has come to
  detail::SlotCompactor<kChunkWords> compactor_;
  detail::ChunkPool<kChunkWords> pool_;
  detail::Occupancy<Geometry::kLevels, Geometry::kSlots> occupancy_;
  std::array<SlotType, kLevelSlots + 2> slots_{};
};

template <class Geometry, std::size_t kChunkWords, std::size_t kMoves>
template <class Sink>
void HierarchicalWheel<Geometry, kChunkWords, kMoves>::clear(Sink&& sink) {
  refuse_when_busy("clear");
  const Busy busy(busy_);
  end_sweep();
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    SlotType& slot = slots_[index];
    if (slot.empty()) continue;
    while (!slot.empty()) {
      TimerNode** const end = slot.end_of(slot.front());
      for (TimerNode** entry = slot.front()->begin(); entry != end; ++entry) {
        TimerNode* node = std::exchange(*entry, nullptr);
        if (node == nullptr) continue;
        Access::entry(*node) = nullptr;
        --live_;
        sink(*node);
      }
      slot.drop_front(pool_);
    }
    if (index < kLevelSlots) occupancy_.clear(index / Geometry::kSlots, index % Geometry::kSlots);
  }
  if (pool_.used() != 0) return;  // the sink has scheduled timers
  next_ = kNever;
  cascading_ = 0;
}

template <class Geometry, std::size_t kChunkWords, std::size_t kMoves>
void HierarchicalWheel<Geometry, kChunkWords, kMoves>::check_invariants() const {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("carillon: HierarchicalWheel is broken: ") + what);
  };
  std::size_t chunks = 0, live = 0;
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    const SlotType& slot = slots_[index];
    Tick start = 0;
    if (index < kLevelSlots) {
      const auto level = static_cast<unsigned>(index / Geometry::kSlots);
      const std::size_t digit = index % Geometry::kSlots;
      require(slot.empty() != occupancy_.test(level, digit), "an occupancy bit differs from its slot");
      const Tick hand = level < cascading_ ? now_ + 1 : now_;
      start = Geometry::start(hand, level, digit);
      require(slot.empty() || start > now_, "a timer's slot is not ahead of the hand");
      require(slot.empty() || next_ <= start, "the next wake-up is after a non-empty slot");
    } else {
      require(slot.empty() || next_ == now_, "something is due, and the next wake-up is not now");
    }
    for (ChunkType* chunk = slot.front(); chunk != nullptr; chunk = chunk->next) {
      ++chunks;
      for (TimerNode** entry = chunk->begin(); entry != slot.end_of(chunk); ++entry) {
        if (*entry == nullptr) continue;
        ++live;
        require(Access::entry(**entry) == entry, "a timer does not point back to its entry");
        require((*entry)->expiry() >= start, "a timer is in a slot that begins after its expiry");
      }
    }
  }
  require(live == live_, "the count of live timers");
  require(chunks == pool_.used(), "a chunk is lost");
  require(next_ >= now_, "the next wake-up has passed");
}

static_assert(TimerSet<HierarchicalWheel<>>);

}  // namespace carillon
