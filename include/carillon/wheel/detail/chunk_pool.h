// ChunkPool: the memory of a wheel's slots. It hands out chunks of a few cache lines, and takes
// them back to reuse them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "carillon/wheel/detail/page_blocks.h"
#include "carillon/wheel/pages.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

template <std::size_t kWords>
struct Slab;

// Room for kEntries pointers to timers, aligned to its own size. So a pointer just past the last
// entry is a multiple of the chunk's size: one mask tells that a chunk is full, and another finds
// the chunk of an entry.
template <std::size_t kWords>
struct alignas(kWords * sizeof(void*)) Chunk {
  static constexpr std::size_t kEntries = kWords - 2;

  Chunk* next;                   // the next chunk of the slot, or of the free list
  TimerNode* row[kEntries + 1];  // the mark of the slab that it is part of, and the entries

  TimerNode** begin() noexcept { return row + 1; }
  TimerNode** end() noexcept { return row + 1 + kEntries; }
  inline Slab<kWords>& slab() const noexcept;
};

// The unit of allocation: a header with chunks behind it, 127 chunks in 64 KiB if a chunk has 64
// words, the default.
template <std::size_t kWords>
struct alignas(kWords * sizeof(void*)) Slab : RowOwner {
  explicit Slab(std::size_t& all_timers) noexcept { timers = &all_timers; }

  Slab* previous = nullptr;
  Slab* next = nullptr;
  Chunk<kWords>* free = nullptr;  // a list of the chunks that were handed out and have come back
  // Chunks from this index on were not handed out since the slab was last unused. They are handed
  // out in order of address, and not touched before.
  std::size_t fresh = 0;
  std::size_t used = 0;  // chunks handed out now

  Chunk<kWords>* chunks() noexcept { return reinterpret_cast<Chunk<kWords>*>(this + 1); }
};

template <std::size_t kWords>
Slab<kWords>& Chunk<kWords>::slab() const noexcept {
  return static_cast<Slab<kWords>&>(RowOwner::of(row[0]));
}

// Invariants
//  - a slab is in `full_` while all its chunks are in use;
//  - in `unused_` while none of its chunks is in use. It is taken from there when no slab in
//    `available_` is left;
//  - in `available_` otherwise.
//
// Memory from the system costs a page fault for every 4 KiB, so unused slabs are kept for the next
// peak: as many as there are slabs in use, and kSpare more (of huge pages 1 more, since the system
// clears each whole page that it gives), and at least as many as reserve() promised. The others go
// back to the system, at most two slabs per release.
//
// acquire() is O(1) plus at most one allocation. release() is O(1) and never throws.
template <std::size_t kWords>
class ChunkPool {
 public:
  using ChunkType = Chunk<kWords>;
  using SlabType = Slab<kWords>;

  // `timers` counts the timers of all entries.
  ChunkPool(WheelPages pages, std::size_t& timers) noexcept
      : timers_(timers), slab_bytes_(pages == WheelPages::kHuge ? kHugePage : kSlabBytes) {}
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;
  ~ChunkPool() {
    release_all(available_);
    release_all(full_);
    release_all(unused_);
  }

  // A chunk with undefined entries. Throws std::bad_alloc with nothing changed.
  ChunkType* acquire() {
    if (available_ == nullptr) {
      if (unused_ == nullptr) add_slab();
      --unused_count_;
      push(pop(unused_), available_);
    }
    SlabType* slab = available_;
    ChunkType* chunk = slab->free;
    if (chunk != nullptr) {
      slab->free = chunk->next;
      __builtin_prefetch(slab->free, 1);  // the next chunk to be acquired
    } else {
      chunk = slab->chunks() + slab->fresh++;
      chunk->row[0] = slab->mark();
    }
    ++slab->used;
    if (full(*slab)) move(slab, available_, full_);
    __builtin_prefetch(reinterpret_cast<char*>(chunk) + 64, 1);
    chunk->next = nullptr;
    ++used_;
    return chunk;
  }

  void release(ChunkType* chunk) noexcept {
    SlabType* slab = &chunk->slab();
    if (full(*slab)) move(slab, full_, available_);
    chunk->next = slab->free;
    slab->free = chunk;
    --used_;
    if (--slab->used == 0) set_aside(slab);
  }

  // From now on, up to `chunks` chunks can be in use without an allocation.
  void reserve(std::size_t chunks) {
    while (slabs_ * chunks_per_slab() < chunks) add_slab();
    if (reserved_ < chunks) reserved_ = chunks;
  }

  std::size_t used() const noexcept { return used_; }                  // chunks
  std::size_t bytes() const noexcept { return slabs_ * slab_bytes_; }  // allocated from the system

 private:
  static constexpr std::size_t kSlabBytes = sizeof(SlabType) + 127 * sizeof(ChunkType);
  static constexpr std::size_t kSpare = 8;  // slabs: half a megabyte

  std::size_t chunks_per_slab() const noexcept {
    return (slab_bytes_ - sizeof(SlabType)) / sizeof(ChunkType);
  }
  bool full(const SlabType& slab) const noexcept { return slab.used == chunks_per_slab(); }
  std::align_val_t alignment() const noexcept {
    return std::align_val_t{slab_bytes_ == kHugePage ? kHugePage : alignof(SlabType)};
  }

  void add_slab() {
    void* memory =
        slab_bytes_ == kHugePage ? take_huge_page() : ::operator new(slab_bytes_, alignment());
    push(new (memory) SlabType(timers_), unused_);
    ++slabs_;
    ++unused_count_;
  }

  void set_aside(SlabType* slab) noexcept {
    slab->free = nullptr;
    slab->fresh = 0;
    move(slab, available_, unused_);
    ++unused_count_;
    const std::size_t spare = slab_bytes_ == kHugePage ? 1 : kSpare;
    while (unused_count_ > slabs_ - unused_count_ + spare &&
           (slabs_ - 1) * chunks_per_slab() >= reserved_) {
      --unused_count_;
      --slabs_;
      free_memory(pop(unused_));
    }
  }

  static void push(SlabType* slab, SlabType*& list) noexcept {
    slab->previous = nullptr;
    slab->next = list;
    if (list != nullptr) list->previous = slab;
    list = slab;
  }

  static SlabType* pop(SlabType*& list) noexcept {
    SlabType* const first = list;
    list = first->next;
    if (list != nullptr) list->previous = nullptr;
    return first;
  }

  static void remove(SlabType* slab, SlabType*& list) noexcept {
    (slab->previous != nullptr ? slab->previous->next : list) = slab->next;
    if (slab->next != nullptr) slab->next->previous = slab->previous;
  }

  static void move(SlabType* slab, SlabType*& from, SlabType*& to) noexcept {
    remove(slab, from);
    push(slab, to);
  }

  void free_memory(SlabType* slab) noexcept {
    slab->~SlabType();
    ::operator delete(static_cast<void*>(slab), alignment());
  }

  void release_all(SlabType* list) noexcept {
    while (list != nullptr) {
      SlabType* next = list->next;
      free_memory(list);
      list = next;
    }
  }

  std::size_t& timers_;
  const std::size_t slab_bytes_;
  SlabType* available_ = nullptr;
  SlabType* full_ = nullptr;
  SlabType* unused_ = nullptr;
  std::size_t slabs_ = 0;
  std::size_t unused_count_ = 0;
  std::size_t used_ = 0;      // chunks in use
  std::size_t reserved_ = 0;  // chunks promised by reserve()
};

}  // namespace carillon::detail
