// SlotCompactor: removes the null entries of a slot, one chunk at a time, keeping the order of the others.
#pragma once

#include <algorithm>
#include <cstddef>

#include "carillon/wheel/chunk_pool.h"
#include "carillon/wheel/slot.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Between two steps the slot is whole and may be appended to, and entries may be nulled. Whoever takes chunks out of the slot must
// call stop() first.
//
// Invariant: the entries of write_ from out_ on are null.
template <std::size_t kWords>
class SlotCompactor {
 public:
  using ChunkType = Chunk<kWords>;

  // Forgets how far it came; the next step begins a slot.
  void stop() noexcept { write_ = nullptr; }

  // Moves the live entries of the next chunk of `slot` down into the room left before it. Returns whether that was the last.
  // REQUIRES: the slot is not empty.
  bool step(Slot<kWords>& slot, ChunkPool<kWords>& pool) noexcept {
    ChunkType* read = write_ == nullptr ? slot.head_ : write_->next;
    if (read == nullptr) return finish(slot);
    const bool is_last = read == slot.last();
    move_down(read, slot.end_of(read));
    if (write_ != read) {
      (write_ == nullptr ? slot.head_ : write_->next) = read->next;
      pool.release(read);
    }
    return is_last && finish(slot);
  }

 private:
  // Moves the entries of `read` to out_, and on to the beginning of `read` when the chunk of out_ is full.
  void move_down(ChunkType* read, TimerNode** const end) noexcept {
    TimerNode** entry = read->begin();
    prefetch_timers(entry, end);
    if (write_ != nullptr) {
      entry = move_entries(entry, end, write_->end());
      if (out_ != write_->end()) return;
    }
    TimerNode** const begin = read->begin();
    out_ = begin;
    move_entries(entry, end, end);
    if (out_ != begin) write_ = read;
    std::fill(out_, end, nullptr);
  }

  // Moves live entries from [entry, end) to [out_, room). Returns where it stopped, at the end of either.
  TimerNode** move_entries(TimerNode** entry, TimerNode** end, TimerNode** room) noexcept {
    TimerNode** nowhere;
    for (; entry != end && out_ != room; ++entry) {
      TimerNode* node = *entry;
      // Live and null entries come in no pattern: no branch, hence no misprediction.
      TimerNode*** back = node == nullptr ? &nowhere : &NodeAccess::entry(*node);
      *back = out_;
      *out_ = node;
      out_ += node != nullptr;
    }
    return entry;
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
