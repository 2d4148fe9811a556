// SlotTable: all slots of a wheel and their memory. It knows which slots hold timers and how many
// timers there are, and sweeps out null entries.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/require.h"
#include "carillon/wheel/detail/chunk_pool.h"
#include "carillon/wheel/detail/occupancy.h"
#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/detail/slot_compactor.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Slots 0 .. kTimeSlots-1, the time slots, are the slots of the wheel's levels (each queue of
// geometry.h is one), in the same order. Two more slots are queues at the wheel's hand: kOverdue
// collects the timers that are scheduled at or before now(), kDue holds those that fire at now().
//
// Lone timers
// -----------
// While there are fewer timers than ticks, most timers are alone in the slot of their tick. A chunk
// for each would cost more than all other work on that timer. So each of the first kLoneSlots slots
// has one entry outside of any chunk, its lone entry, for its first timer.
//
// The sweep
// ---------
// A cancelled timer leaves a null entry until its slot comes up. If a slot must grow while more
// entries are null than live, null entries are swept out instead: for each chunk that a slot would
// grow by, four chunks are swept, until the sweep has been through all slots. So there are fewer
// than three entries per live timer, plus one chunk per slot. A cancel by itself takes no memory,
// and an owner that cancels a million timers in a row wants that to be fast: cancel sweeps, one
// chunk a call, only if seven entries of eight are null, and there are a million of them.
//
// Invariants
//  - the bit of a time slot in occupancy_ is set if the slot holds entries; of a slot that is empty
//    it is clear, unless a lone timer of the slot was cancelled;
//  - size() entries are not null, and the timer of each points back to it.
template <std::size_t kTimeSlots, std::size_t kChunkWords, std::size_t kLoneSlots = 0>
class SlotTable {
 public:
  using ChunkType = Chunk<kChunkWords>;
  using SlotType = Slot<kChunkWords>;

  static constexpr std::size_t kOverdue = kTimeSlots;
  static constexpr std::size_t kDue = kTimeSlots + 1;
  static constexpr std::size_t kSlots = kTimeSlots + 2;
  static constexpr std::size_t kNone = kSlots;

  explicit SlotTable(WheelPages pages) noexcept : pool_(pages, live_) {}

  SlotType& operator[](std::size_t slot) noexcept { return slots_[slot]; }
  const SlotType& operator[](std::size_t slot) const noexcept { return slots_[slot]; }

  std::size_t size() const noexcept { return live_; }  // timers
  std::size_t bytes() const noexcept { return pool_.bytes(); }

  bool holds_chunks() const noexcept { return pool_.used() != 0; }

  // Returns true if no time slot holds timers.
  bool no_time_slot() const noexcept { return occupancy_.none(); }

  // The first time slot that holds timers. REQUIRES: !no_time_slot().
  std::size_t first_time_slot() const noexcept { return occupancy_.first(); }

  // The first time slot from `from` on that holds timers; kTimeSlots if they are all empty.
  std::size_t next_time_slot(std::size_t from) const noexcept { return occupancy_.next(from); }

  // --- adding
  // In two steps: get a new entry, then put() a timer into it. The first step may throw
  // std::bad_alloc, with nothing changed.

  struct NewEntry {
    TimerNode** entry;
    bool was_empty;  // the slot was empty before
  };

  // A new entry at the end of a slot that needs a chunk. Sweeps first if that may save the chunk:
  // any entry may move.
  NewEntry grow(std::size_t slot) {
    if (sparse()) sweep_before_growing();
    return slots_[slot].needs_chunk() ? extend(slot) : NewEntry{slots_[slot].take(), false};
  }

  // The same without a sweep, for callers that are reading a slot.
  NewEntry extend(std::size_t slot) {
    SlotType& growing = slots_[slot];
    const bool was_empty = growing.empty();
    if (slot < kLoneSlots && was_empty && lone(slot) == nullptr) {
      occupancy_.set(slot);
      return {lone_entry(slot), true};
    }
    growing.add_chunk(pool_.acquire());
    if (was_empty && slot < kTimeSlots) {
      occupancy_.set(slot);
    } else {
      recount();
    }
    return {growing.take(), was_empty};
  }

  // A new entry at the end of any slot, without a sweep.
  TimerNode** new_entry(std::size_t slot) {
    return slots_[slot].needs_chunk() ? extend(slot).entry : slots_[slot].take();
  }

  // Puts a timer into an entry.
  static void put(TimerNode** entry, TimerNode& node, Tick expiry) noexcept {
    *entry = &node;
    NodeAccess::entry(node) = entry;
    NodeAccess::expiry(node) = expiry;
  }

  // A timer that was not pending has been put into an entry.
  void count_in() noexcept { ++live_; }

  // --- removing

  // Disarms the timer of `entry`, of a slot that the caller is reading.
  void take_out(TimerNode** entry) noexcept {
    NodeAccess::entry(**entry) = nullptr;
    *entry = nullptr;
    --live_;
  }

  // Returns true if the timer is armed here: goes back along the row of its entry to the mark, as a
  // node does that dies while armed. O(entries of a chunk).
  bool holds(const TimerNode& node) const noexcept {
    TimerNode* const* entry = NodeAccess::entry(node);
    if (entry == nullptr) return false;
    while (!RowOwner::is_mark(*entry)) --entry;
    return RowOwner::of(*entry).timers == &live_;
  }

  // Disarms a timer, wherever it is. REQUIRES: it is armed, and by this set.
  void cancel(TimerNode& node) noexcept {
    CARILLON_REQUIRE(node.armed(), node.expiry());
    CARILLON_REQUIRE_DEBUG(holds(node), node.expiry());
    __builtin_prefetch(NodeAccess::entry(node), 1);
    *NodeAccess::entry(node) = nullptr;
    NodeAccess::entry(node) = nullptr;
    if (--live_ < cancels_sweep_below_) [[unlikely]]
      sweep_for_cancels();
  }

  // Gives the first chunk of `slot` back. REQUIRES: its entries are all null.
  void drop_front(std::size_t slot) noexcept { slots_[slot].drop_front(pool_); }

  // Moves all entries of `from` behind those of `to`; both are time slots.
  void append(std::size_t from, std::size_t to) noexcept {
    if (slots_[from].empty()) return;
    leave_to_reader(from);
    slots_[to].splice(slots_[from]);
    occupancy_.clear(from);
    occupancy_.set(to);
  }

  // `slot` has been read to its end.
  void set_empty(std::size_t slot) noexcept { occupancy_.clear(slot); }

  // Moves all entries of `slot` behind those that are due already.
  void make_due(std::size_t slot) noexcept {
    if (slots_[slot].empty()) return;
    leave_to_reader(slot);
    slots_[arrived_ == kNone ? kDue : arrived_].splice(slots_[slot]);
    if (arrived_ != kNone) occupancy_.set(arrived_);
    if (slot < kTimeSlots) occupancy_.clear(slot);
  }

  // --- lone timers, in slots below kLoneSlots

  // The lone entry of `slot`. REQUIRES: slot < kLoneSlots.
  TimerNode** lone_entry(std::size_t slot) noexcept {
    CARILLON_REQUIRE(slot < kLoneSlots, slot);
    return &lone_row_[slot + 1];
  }

  // The timer in the lone entry of `slot`, which fires before the timers in its chunks; null if the
  // entry is free.
  TimerNode* lone(std::size_t slot) const noexcept {
    return slot < kLoneSlots ? lone_row_[slot + 1] : nullptr;
  }

  // The same, but null if the slot has chunks, too. REQUIRES: slot < kLoneSlots.
  TimerNode* alone(std::size_t slot) const noexcept {
    CARILLON_REQUIRE(slot < kLoneSlots, slot);
    return slots_[slot].empty() ? lone_row_[slot + 1] : nullptr;
  }

  // Puts a timer into the lone entry of `slot` if the slot is empty. Returns true if it did.
  bool put_alone(std::size_t slot, TimerNode& node) noexcept {
    TimerNode** const entry = lone_entry(slot);
    if (*entry != nullptr || !slots_[slot].empty()) return false;
    occupancy_.set(slot);
    *entry = &node;
    NodeAccess::entry(node) = entry;
    return true;
  }

  // Disarms `node`, which is alone in `slot`.
  void take_out_alone(std::size_t slot, TimerNode& node) noexcept {
    occupancy_.clear(slot);
    *lone_entry(slot) = nullptr;
    NodeAccess::entry(node) = nullptr;
    --live_;
  }

  // The hand has come to `slot`. Behind the timers that are due already, its lone timer is due
  // next, and then, after finish_arrived(), the timers in its chunks.
  void arrive(std::size_t slot) noexcept { arrived_ = slot; }

  std::size_t arrived() const noexcept { return arrived_; }  // kNone: no slot

  void finish_arrived() noexcept {
    const std::size_t slot = std::exchange(arrived_, kNone);
    make_due(slot);
    occupancy_.clear(slot);
  }

  // --- counting

  struct SlotCount {
    std::size_t timers;
    std::size_t entries;  // that were read
  };
  SlotCount count(std::size_t slot) const noexcept {
    SlotCount count{lone(slot) != nullptr, 0};
    for (ChunkType* chunk = slots_[slot].front(); chunk != nullptr; chunk = chunk->next) {
      const auto end = slots_[slot].end_of(chunk);
      count.entries += static_cast<std::size_t>(end - chunk->begin());
      for (auto entry = chunk->begin(); entry != end; ++entry) count.timers += *entry != nullptr;
    }
    return count;
  }

  // --- memory

  // From now on no extend() allocates while at most `timers` are pending.
  void reserve(std::size_t timers) {
    if (timers > std::numeric_limits<std::size_t>::max() / 4) CARILLON_THROW std::bad_alloc();
    const std::size_t entries = 3 * timers + kFew;
    // Any slot may keep a chunk of null entries.
    pool_.reserve(entries / ChunkType::kEntries + kSlots + 4);
  }

  // The caller is about to take chunks from `slot`. If the sweep is in that slot, it begins the
  // slot anew.
  void leave_to_reader(std::size_t slot) noexcept {
    if (slot == sweep_at_) compactor_.stop();
  }

  // Says whether kDue, or with `all` every slot, is being read while callbacks schedule and cancel.
  // No slot that is read so is swept.
  void keep_still(bool due, bool all) noexcept {
    due_is_read_ = due;
    if (all) end_sweep();
    all_are_read_ = all;
  }

  // Sweeps one chunk if null entries outnumber the live ones.
  void sweep_if_sparse() noexcept {
    if (sparse()) [[unlikely]]
      sweep();
  }

  void check_invariants() const;

 private:
  // Fewer null entries are not worth a sweep.
  static constexpr std::size_t kFew = 8 * ChunkType::kEntries;
  static constexpr std::size_t kMany = std::size_t{1} << 20;  // entries: 8 MiB
  static constexpr std::size_t kAlways = std::numeric_limits<std::size_t>::max();

  // Returns true if null entries outnumber the live ones, or if they did and the sweep has not been
  // through all slots since.
  bool sparse() const noexcept { return live_ < sweep_below_; }

  // Sets the numbers of live timers below which the chunks in use are worth a sweep. Only full
  // chunks can hold many null entries, and each slot has at most one chunk that is not full.
  void recount() noexcept {
    if (sweeping_) return;
    const std::size_t chunks = pool_.used();
    const std::size_t full =
        chunks > occupancy_.count() ? (chunks - occupancy_.count()) * ChunkType::kEntries : 0;
    sweep_below_ = full > kFew ? (full - kFew) / 2 : 0;
    cancels_sweep_below_ = full > kMany ? full / 8 : 0;
  }

  [[gnu::noinline]] void sweep_before_growing() noexcept {
    for (int chunk = 0; chunk < 4 && sparse(); ++chunk) sweep();
  }

  [[gnu::noinline]] void sweep_for_cancels() noexcept {
    sweep();
    if (sweeping_) cancels_sweep_below_ = kAlways;
  }

  // Sweeps one chunk. A sweep that has begun goes on with each call, until it has been through all
  // slots.
  [[gnu::noinline]] void sweep() noexcept {
    if (all_are_read_) return;
    if (!sweeping_) {
      recount();
      if (!sparse()) return;
      sweeping_ = true;
      sweep_below_ = kAlways;
    }
    const std::size_t slot = next_to_sweep();
    if (slot == kSlots) return end_sweep();
    const bool finished = slots_[slot].empty() || compactor_.step(slots_[slot], pool_);
    sweep_at_ = finished ? slot + 1 : slot;
    if (slot < kTimeSlots && slots_[slot].empty() && lone(slot) == nullptr) occupancy_.clear(slot);
  }

  void end_sweep() noexcept {
    compactor_.stop();
    sweeping_ = false;
    sweep_at_ = 0;
    recount();
  }

  std::size_t next_to_sweep() const noexcept {
    const std::size_t slot = occupancy_.next(sweep_at_);
    if (slot != kTimeSlots) return slot;
    if (sweep_at_ <= kOverdue && !slots_[kOverdue].empty()) return kOverdue;
    if (sweep_at_ <= kDue && !slots_[kDue].empty() && !due_is_read_) return kDue;
    return kSlots;
  }

  std::size_t live_ = 0;
  std::size_t sweep_below_ = 0;          // live timers
  std::size_t cancels_sweep_below_ = 0;  // the same, for cancel()
  std::size_t sweep_at_ = 0;             // the slot the sweep has come to
  // The slot at the hand whose lone timer, or chunks, have not been moved to kDue yet.
  std::size_t arrived_ = kNone;
  bool sweeping_ = false;  // a sweep has begun, and has not been through all slots
  bool due_is_read_ = false;
  bool all_are_read_ = false;
  SlotCompactor<kChunkWords> compactor_;
  ChunkPool<kChunkWords> pool_;
  Occupancy<kTimeSlots> occupancy_;
  RowOwner lone_owner_{&live_};
  std::array<TimerNode*, kLoneSlots + 1> lone_row_{lone_owner_.mark()};  // a mark, and the entries
  std::array<SlotType, kSlots> slots_{};
};

template <std::size_t kTimeSlots, std::size_t kChunkWords, std::size_t kLoneSlots>
void SlotTable<kTimeSlots, kChunkWords, kLoneSlots>::check_invariants() const {
  const auto require = [](bool holds, const char* what) {
    if (!holds)
      CARILLON_THROW std::logic_error(std::string("carillon: SlotTable is broken: ") + what);
  };
  std::size_t chunks = 0, live = 0;
  for (std::size_t index = 0; index < kSlots; ++index) {
    const SlotType& slot = slots_[index];
    const bool empty = slot.empty() && lone(index) == nullptr;
    if (index < kTimeSlots) {
      require(empty || occupancy_.test(index), "a slot holds timers and is not marked");
      require(!empty || !occupancy_.test(index) || index < kLoneSlots, "an empty slot is marked");
    }
    if (TimerNode* node = lone(index)) {
      ++live;
      require(NodeAccess::entry(*node) == &lone_row_[index + 1],
              "a lone timer does not point back to its entry");
    }
    for (ChunkType* chunk = slot.front(); chunk != nullptr; chunk = chunk->next) {
      ++chunks;
      require(chunk->slab().timers == &live_, "a chunk does not lead to the count of timers");
      for (TimerNode** entry = chunk->begin(); entry != slot.end_of(chunk); ++entry) {
        if (*entry == nullptr) continue;
        ++live;
        require(NodeAccess::entry(**entry) == entry, "a timer does not point back to its entry");
      }
    }
  }
  require(live == live_, "it counts other timers than it holds");
  require(chunks == pool_.used(), "a chunk is lost");
}

}  // namespace carillon::detail
