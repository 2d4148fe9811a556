// Slot: the timers of one slot of a wheel, an append-only array of pointers in chunks.
//
// An entry is a pointer to a timer, and the timer points back at its entry. Cancelling a timer
// writes null to its entry and touches nothing else. A reader of the slot skips null entries.
// SlotCompactor (slot_compactor.h) closes the gaps when they are many.
//
// These are arrays, not lists, because a list is a chain of dependent cache misses. A few cache
// lines of an array hold the addresses of the next sixty timers, so all sixty can be fetched at
// once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "carillon/require.h"
#include "carillon/wheel/detail/chunk_pool.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

inline constexpr std::size_t kEntriesPerLine = 64 / sizeof(TimerNode*);

// Asks the memory for the cache lines of a chunk, for writing.
template <class Chunk>
void prefetch_chunk(Chunk* chunk) noexcept {
  for (std::size_t byte = 0; byte < sizeof(Chunk); byte += 64)
    __builtin_prefetch(reinterpret_cast<char*>(chunk) + byte, 1);
}

// Asks the memory for all timers of a run of entries at once, for writing.
inline void prefetch_timers(TimerNode* const* entry, TimerNode* const* end) noexcept {
  for (; entry != end; ++entry) {
    // Asking for address 0 is slow.
    const void* target = *entry != nullptr ? static_cast<const void*>(*entry) : entry;
    __builtin_prefetch(target, 1);
  }
}

// Invariants
//  - head_ and tail_ are both null (the slot is empty), or head_ is the first chunk, and tail_ the
//    end of the entries of the last chunk;
//  - every chunk but the last is full of entries, live or null.
template <std::size_t kWords>
class Slot {
 public:
  using ChunkType = Chunk<kWords>;
  using Pool = ChunkPool<kWords>;

  bool empty() const noexcept { return head_ == nullptr; }
  ChunkType* front() const noexcept { return head_; }

  // Returns true if the next take() needs another chunk: the last one is full, or the slot has no
  // chunk.
  bool needs_chunk() const noexcept {
    return reinterpret_cast<std::uintptr_t>(tail_) % sizeof(ChunkType) == 0;
  }

  void add_chunk(ChunkType* chunk) noexcept {
    (empty() ? head_ : last()->next) = chunk;
    tail_ = chunk->begin();
  }

  // Appends an entry, which the caller fills at once. REQUIRES: !needs_chunk().
  TimerNode** take() noexcept {
    CARILLON_REQUIRE_DEBUG(!needs_chunk());
    // The chunk's next cache line. Timers go to one slot, then to another: no hardware prefetches
    // it.
    __builtin_prefetch(tail_ + kEntriesPerLine, 1);
    return tail_++;
  }

  // The end of the entries of `chunk`. REQUIRES: the chunk is in this slot.
  TimerNode** end_of(ChunkType* chunk) const noexcept {
    CARILLON_REQUIRE_DEBUG(!empty());
    return chunk == last() ? tail_ : chunk->end();
  }

  ChunkType* last() const noexcept {
    const auto in_last = reinterpret_cast<std::uintptr_t>(tail_) - sizeof(TimerNode*);
    return reinterpret_cast<ChunkType*>(in_last - in_last % sizeof(ChunkType));
  }

  // Gives the first chunk back to the pool. REQUIRES: there is one, and its entries are all null.
  void drop_front(Pool& pool) noexcept {
    CARILLON_REQUIRE_DEBUG(!empty());
    CARILLON_REQUIRE_DEBUG(std::all_of(head_->begin(), end_of(head_),
                                       [](const TimerNode* timer) { return timer == nullptr; }));
    ChunkType* chunk = head_;
    head_ = chunk->next;
    if (head_ == nullptr) tail_ = nullptr;
    pool.release(chunk);
  }

  // Moves the entries of `other` behind those of this slot. Null entries fill up this slot's last
  // chunk.
  void splice(Slot& other) noexcept {
    if (other.empty()) return;
    if (empty()) {
      head_ = other.head_;
    } else {
      ChunkType* end = last();
      std::fill(tail_, end->end(), nullptr);
      end->next = other.head_;
    }
    tail_ = other.tail_;
    other = Slot{};
  }

 private:
  template <std::size_t>
  friend class SlotCompactor;

  ChunkType* head_ = nullptr;
  TimerNode** tail_ = nullptr;
};

}  // namespace carillon::detail
