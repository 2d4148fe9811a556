// SlotCompactor: removes the null entries of a slot, one chunk at a time. The other entries keep
// their order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "carillon/require.h"
#include "carillon/wheel/detail/chunk_pool.h"
#include "carillon/wheel/detail/slot.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Between two steps the slot is whole: entries may be appended and nulled. Before a chunk is taken
// out of the slot, stop() must be called.
//
// Invariant: the entries of write_ from out_ on are null.
template <std::size_t kWords>
class SlotCompactor {
 public:
  using ChunkType = Chunk<kWords>;

  // Forgets how far it came. The next step begins a slot.
  void stop() noexcept { write_ = nullptr; }

  // Moves the live entries of the next chunk of `slot` forward, into the room that removed entries
  // have left. Returns true if that chunk was the slot's last. REQUIRES: the slot is not empty.
  bool step(Slot<kWords>& slot, ChunkPool<kWords>& pool) noexcept {
    CARILLON_REQUIRE(!slot.empty());
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
    // Fetches what the next steps will touch: the timers of the next chunk, and the chunk behind
    // it.
    for (std::uint64_t live = live_entries(next->begin(), slot.end_of(next)); live != 0;
         live &= live - 1) {
      __builtin_prefetch(next->begin()[std::countr_zero(live)], 1);
    }
    if (next->next != nullptr) prefetch_chunk(next->next);
    return false;
  }

 private:
  // Moves the live entries of `read` to out_. When the chunk of out_ is full, it goes on at the
  // beginning of `read`.
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

  // One bit per entry, set if the entry is not null. Live and null entries come in no pattern: a
  // branch per entry would be mispredicted at each change.
  static std::uint64_t live_entries(TimerNode* const* begin, TimerNode* const* end) noexcept {
    static_assert(ChunkType::kEntries <= 64);
    std::uint64_t live = 0;
    for (TimerNode* const* entry = end; entry != begin;)
      live = live << 1 | std::uint64_t{*--entry != nullptr};
    return live;
  }

  // Ends the slot where its live entries end.
  bool finish(Slot<kWords>& slot) noexcept {
    slot.tail_ = write_ == nullptr ? nullptr : out_;
    stop();
    return true;
  }

  ChunkType* write_ = nullptr;  // the chunk that is being filled; null: none yet
  TimerNode** out_ = nullptr;   // its next free entry
};

}  // namespace carillon::detail
