// SlotTable: all slots of a wheel with their memory: which of them hold timers, how many there are,
// and the sweep for null entries.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/wheel/detail/chunk_pool.h"
#include "carillon/wheel/detail/occupancy.h"
#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/detail/slot_compactor.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Slots 0 .. kTimeSlots-1 are those of the wheel's levels, in the order in which they come up. Two
// more are queues at its hand: kOverdue collects what is scheduled at or before now(), kDue holds
// what fires at now().
//
// Lone timers
// -----------
// While timers are fewer than ticks, most stand alone in the slot of their tick, and a chunk for
// each would cost more than all else that is done for it. So the first kLonePlaces slots have a
// place of their own for their first timer, outside of any chunk.
//
// The sweep
// ---------
// A cancelled timer leaves a null entry until its slot comes up. When more entries are null than
// live, and the slots must grow, they are swept instead: four chunks are looked at for each that a
// slot grows by, until the sweep has been through all slots. So the entries stay below three per
// live timer, plus one chunk per slot. Cancels by themselves take no memory, and those who cancel a
// million timers in a row want it done: cancel sweeps (one chunk a call) only when seven entries of
// eight are null and there are a million of them.
//
// Invariants
//  - a time slot is non-empty exactly if its bit in occupancy_ is set; but the bit stays when a
//    lone timer is cancelled;
//  - size() entries are not null, and the timer of each points back to it.
template <std::size_t kTimeSlots, std::size_t kChunkWords, std::size_t kLonePlaces = 0>
class SlotTable {
 public:
  using ChunkType = Chunk<kChunkWords>;
  using SlotType = Slot<kChunkWords>;

  static constexpr std::size_t kOverdue = kTimeSlots;
  static constexpr std::size_t kDue = kTimeSlots + 1;
  static constexpr std::size_t kSlots = kTimeSlots + 2;
  static constexpr std::size_t kNone = kSlots;

  explicit SlotTable(Pages pages) noexcept : pool_(pages) {}

  SlotType& operator[](std::size_t slot) noexcept { return slots_[slot]; }
  const SlotType& operator[](std::size_t slot) const noexcept { return slots_[slot]; }

  std::size_t size() const noexcept { return live_; }  // timers
  std::size_t bytes() const noexcept { return pool_.bytes(); }

  bool holds_chunks() const noexcept { return pool_.used() != 0; }
  bool no_time_slot() const noexcept { return occupancy_.none(); }
  std::size_t first_time_slot() const noexcept {
    return occupancy_.first();
  }  // REQUIRES: !no_time_slot()
  std::size_t next_time_slot(std::size_t from) const noexcept {
    return occupancy_.next(from);
  }  // kTimeSlots: none

  // --- adding. First the place of the entry, which may be refused by std::bad_alloc and then
  // changes nothing, then the entry.

  // The place of the next entry of a slot, and whether the slot was empty.
  struct Place {
    TimerNode** entry;
    bool was_empty;
  };

  // For a slot that needs a chunk. Sweeps first if that may spare the chunk: any entry may move.
  Place grow(std::size_t slot) {
    if (sparse()) sweep_before_growing();
    return slots_[slot].needs_chunk() ? extend(slot) : Place{slots_[slot].take(), false};
  }

  // The same without a sweep, for those who are reading a slot.
  Place extend(std::size_t slot) {
    SlotType& growing = slots_[slot];
    const bool was_empty = growing.empty();
    if (slot < kLonePlaces && was_empty && lone_[slot] == nullptr) {
      occupancy_.set(slot);
      return {&lone_[slot], true};
    }
    growing.add_chunk(pool_.acquire());
    if (was_empty && slot < kTimeSlots) {
      occupancy_.set(slot);
    } else {
      recount();
    }
    return {growing.take(), was_empty};
  }

  // The place of the next entry of any slot, without a sweep.
  TimerNode** place_in(std::size_t slot) {
    return slots_[slot].needs_chunk() ? extend(slot).entry : slots_[slot].take();
  }

  // Fills a place.
  static void put(TimerNode** entry, TimerNode& node, Tick expiry) noexcept {
    *entry = &node;
    NodeAccess::entry(node) = entry;
    NodeAccess::expiry(node) = expiry;
  }

  void count_in() noexcept { ++live_; }  // a timer that was not pending has been put

  // --- removing

  // Disarms the timer of `entry`, which the owner takes out while reading a slot.
  void take_out(TimerNode** entry) noexcept {
    NodeAccess::entry(**entry) = nullptr;
    *entry = nullptr;
    --live_;
  }

  // Disarms a timer, wherever it is. REQUIRES: it is armed.
  void cancel(TimerNode& node) noexcept {
    __builtin_prefetch(NodeAccess::entry(node), 1);
    *NodeAccess::entry(node) = nullptr;
    NodeAccess::entry(node) = nullptr;
    if (--live_ < cancels_sweep_below_) [[unlikely]]
      sweep_for_cancels();
  }

  // Gives the first chunk of `slot` back. REQUIRES: its entries are all null.
  void drop_front(std::size_t slot) noexcept { slots_[slot].drop_front(pool_); }

  // Queues all of `from` behind what is in `to`; both are time slots.
  void append(std::size_t from, std::size_t to) noexcept {
    if (slots_[from].empty()) return;
    leave_to_reader(from);
    slots_[to].splice(slots_[from]);
    occupancy_.clear(from);
    occupancy_.set(to);
  }

  // `slot` has been read to its end.
  void set_empty(std::size_t slot) noexcept { occupancy_.clear(slot); }

  // Queues all of `slot` behind what is due already.
  void make_due(std::size_t slot) noexcept {
    if (slots_[slot].empty()) return;
    leave_to_reader(slot);
    slots_[arrived_ == kNone ? kDue : arrived_].splice(slots_[slot]);
    if (arrived_ != kNone) occupancy_.set(arrived_);
    if (slot < kTimeSlots) occupancy_.clear(slot);
  }

  // --- lone timers, in slots below kLonePlaces

  // Whoever stands in the lone place of `slot`: before the timers in its chunks. Null: nobody.
  TimerNode* lone(std::size_t slot) const noexcept {
    return slot < kLonePlaces ? lone_[slot] : nullptr;
  }
  TimerNode** lone_place(std::size_t slot) noexcept { return &lone_[slot]; }

  // The same, if there are no others in the slot. REQUIRES: slot < kLonePlaces.
  TimerNode* alone(std::size_t slot) const noexcept {
    return slots_[slot].empty() ? lone_[slot] : nullptr;
  }

  // Puts a timer in the lone place of `slot`, if the slot is empty.
  bool put_alone(std::size_t slot, TimerNode& node) noexcept {
    if (lone_[slot] != nullptr || !slots_[slot].empty()) return false;
    occupancy_.set(slot);
    lone_[slot] = &node;
    NodeAccess::entry(node) = &lone_[slot];
    return true;
  }

  // Disarms `node`, which is alone in `slot`.
  void take_out_alone(std::size_t slot, TimerNode& node) noexcept {
    occupancy_.clear(slot);
    lone_[slot] = nullptr;
    NodeAccess::entry(node) = nullptr;
    --live_;
  }

  // The hand has come to `slot`: behind what is due already its lone timer is due, and then, after
  // finish_arrived(), its chunks.
  void arrive(std::size_t slot) noexcept { arrived_ = slot; }

  std::size_t arrived() const noexcept { return arrived_; }  // kNone: no slot

  void finish_arrived() noexcept {
    const std::size_t slot = std::exchange(arrived_, kNone);
    make_due(slot);
    occupancy_.clear(slot);
  }

  // --- memory

  // No extend() allocates while at most `timers` are pending.
  void reserve(std::size_t timers) {
    if (timers > std::numeric_limits<std::size_t>::max() / 4) throw std::bad_alloc();
    const std::size_t entries = 3 * timers + kFew;
    pool_.reserve(entries / ChunkType::kEntries + kSlots +
                  4);  // any slot may keep a chunk of null entries
  }

  // Chunks are about to be taken from `slot`: the sweep, if it is in there, starts it afresh.
  void leave_to_reader(std::size_t slot) noexcept {
    if (slot == sweep_at_) compactor_.stop();
  }

  // While kDue, or with `all` every slot, is being read by someone whose callbacks may schedule and
  // cancel, nothing is swept there.
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
  static constexpr std::size_t kFew =
      8 * ChunkType::kEntries;  // entries: fewer are not worth a sweep
  static constexpr std::size_t kMany = std::size_t{1} << 20;  // entries: 8 MiB
  static constexpr std::size_t kAlways = std::numeric_limits<std::size_t>::max();

  // Whether null entries outnumber the live ones, or a sweep is on its way because they did.
  bool sparse() const noexcept { return live_ < sweep_below_; }

  // How few live timers make the chunks in use worth a sweep. Null entries can be many
  // in full chunks only, and a slot has at most one that is not.
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

  // Sweeps one chunk. Once begun, a sweep goes on at each call until it has been through all slots.
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
  std::size_t arrived_ =
      kNone;               // the slot at the hand whose lone timer, or chunks, are not due yet
  bool sweeping_ = false;  // a sweep is on its way
  bool due_is_read_ = false;
  bool all_are_read_ = false;
  SlotCompactor<kChunkWords> compactor_;
  ChunkPool<kChunkWords> pool_;
  Occupancy<kTimeSlots> occupancy_;
  std::array<TimerNode*, kLonePlaces> lone_{};
  std::array<SlotType, kSlots> slots_{};
};

template <std::size_t kTimeSlots, std::size_t kChunkWords, std::size_t kLonePlaces>
void SlotTable<kTimeSlots, kChunkWords, kLonePlaces>::check_invariants() const {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(std::string("carillon: SlotTable is broken: ") + what);
  };
  std::size_t chunks = 0, live = 0;
  for (std::size_t index = 0; index < kSlots; ++index) {
    const SlotType& slot = slots_[index];
    const bool empty = slot.empty() && lone(index) == nullptr;
    if (index < kTimeSlots) {
      require(empty || occupancy_.test(index), "a slot holds timers and is not marked");
      require(!empty || !occupancy_.test(index) || index < kLonePlaces, "an empty slot is marked");
    }
    if (TimerNode* node = lone(index)) {
      ++live;
      require(NodeAccess::entry(*node) == &lone_[index],
              "a lone timer does not point back to its place");
    }
    for (ChunkType* chunk = slot.front(); chunk != nullptr; chunk = chunk->next) {
      ++chunks;
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
