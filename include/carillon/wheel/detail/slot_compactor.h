// SlotCompactor: removes the null entries of a slot, one chunk at a time, keeping the order of the
// others.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "carillon/wheel/detail/chunk_pool.h"
#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Between two steps the slot is whole and may be appended to, and entries may be nulled. Whoever
// takes chunks out of the slot must call stop() first.
//
// Invariant: the entries of write_ from out_ on are null.
template <std::size_t kWords>
class SlotCompactor {
 public:
  using ChunkType = Chunk<kWords>;

  // Forgets how far it came; the next step begins a slot.
  void stop() noexcept { write_ = nullptr; }

  // Moves the live entries of the next chunk of `slot` down into the room left before it. Returns
  // whether that was the last. REQUIRES: the slot is not empty.
  bool step(Slot<kWords>& slot, ChunkPool<kWords>& pool) noexcept {
    ChunkType* read = write_ == nullptr ? slot.head_ : write_->next;
    if (read == nullptr) return finish(slot);
    const bool is_last = read == slot.last();
    move_down(read, slot.end_of(read));
    ChunkType* next = read->next;
    if (write_ != read) {
      (write_ == nullptr ? slot.head_ : write_->next) = next;
      pool.release(read);
    }
    if (is_last) return finish(slot);
    // By the next step its timers are here, and by the one after that the chunk which is not looked
    // at yet.
    for (std::uint64_t live = live_entries(next->begin(), slot.end_of(next)); live != 0;
         live &= live - 1) {
      __builtin_prefetch(next->begin()[std::countr_zero(live)], 1);
    }
    if (next->next != nullptr) prefetch_chunk(next->next);
    return false;
  }

 private:
  // Moves the live entries of `read` to out_, and on to the beginning of `read` when the chunk of
  // out_ is full.
  void move_down(ChunkType* read, TimerNode** const end) noexcept {
    TimerNode** const begin = read->begin();
    for (std::uint64_t live = live_entries(begin, end); live != 0; live &= live - 1) {
      TimerNode** const entry = begin + std::countr_zero(live);
      if (write_ == nullptr || out_ == write_->end()) {
        write_ = read;
        out_ = begin;
      }
      if (out_ != entry) {
        *out_ = *entry;
        NodeAccess::entry(**entry) = out_;
        *entry = nullptr;
      }
      ++out_;
    }
  }

  // One bit per entry that is not null. Live and null entries come in no pattern: asking one by one
  // would mispredict at each change.
  static std::uint64_t live_entries(TimerNode* const* begin, TimerNode* const* end) noexcept {
    static_assert(ChunkType::kEntries <= 64);
    std::uint64_t live = 0;
    for (TimerNode* const* entry = end; entry != begin;)
      live = live << 1 | std::uint64_t{*--entry != nullptr};
    return live;
  }

  // The slot ends where the live entries end.
  bool finish(Slot<kWords>& slot) noexcept {
    slot.tail_ = write_ == nullptr ? nullptr : out_;
    stop();
    return true;
  }

  ChunkType* write_ = nullptr;  // the chunk that is being filled; null: none yet
  TimerNode** out_ = nullptr;   // its next free entry
};

}  // namespace carillon::detail
