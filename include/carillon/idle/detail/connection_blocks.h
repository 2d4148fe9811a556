// ConnectionBlocks: a tracker's connections, sixteen to a block; the stamps that packets store
// apart from what only the owner needs.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "carillon/idle/detail/stamp.h"
#include "carillon/idle/detail/stamp_table.h"
#include "carillon/idle/idle_id.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Of check_invariants().
inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("carillon: IdleTracker is broken: ") + what);
}

// Sixteen connections, which the wheel looks at together. On one cache line.
struct alignas(64) Block : TimerNode {
  static constexpr std::uint32_t kPlaces = 16;
  static constexpr std::uint16_t kAll = 0xFFFF;
  static constexpr std::uint16_t kNoClass = 0xFFFF;

  Tick timeout = 0;           // that of all its connections, unless they are mixed
  Block* previous = nullptr;  // in the list of blocks that it is in
  Block* next = nullptr;
  Block* next_found = nullptr;             // in the queue of blocks with connections in `found`
  std::uint32_t number = 0;                // its first connection is number * kPlaces
  std::uint16_t live = 0;                  // one bit per place: it holds a connection
  std::uint16_t retired = 0;               // its generations are used up
  std::uint16_t found = 0;                 // it was idle when it was looked at
  std::uint16_t timeout_class = kNoClass;  // whose wheel it is on
  bool mixed = false;                      // its connections differ in their time-outs
  bool queued = false;  // it is in the queue of those with connections in `found`

  bool is_full() const noexcept { return (live | retired) == kAll; }
};
static_assert(sizeof(Block) == 64);

// A list of blocks, the last to be pushed first.
class BlockList {
 public:
  Block* front() const noexcept { return front_; }

  void push(Block& block) noexcept {
    block.previous = nullptr;
    block.next = front_;
    if (front_ != nullptr) front_->previous = &block;
    front_ = &block;
  }

  void remove(Block& block) noexcept {
    (block.previous != nullptr ? block.previous->next : front_) = block.next;
    if (block.next != nullptr) block.next->previous = block.previous;
  }

 private:
  Block* front_ = nullptr;
};

// Stamps are eight to a cache line, by themselves (stamp_table.h): they are what packets touch, at
// random. What only the owner needs grows by pages. Nothing moves: a thread may be storing a stamp
// while the owner adds connections.
//
// Thread safety: touch() is safe from any thread at any time, also while the owner calls the rest.
// It may use an id as soon as the owner has it.
template <class Key, std::uint32_t kLastGeneration>
class ConnectionBlocks {
  static_assert(kLastGeneration % 2 == 1 && kLastGeneration <= Stamp::kGenerationMask);

 public:
  using Word = StampTable::Word;

  struct Record {
    Tick timeout = 0;
    std::uint32_t generation = 0;  // odd while it holds a connection
    union {
      Key key;  // alive while it holds a connection
    };

    Record() noexcept {}
    ~Record() {}
  };

  ConnectionBlocks() = default;
  ConnectionBlocks(const ConnectionBlocks&) = delete;
  ConnectionBlocks& operator=(const ConnectionBlocks&) = delete;
  ~ConnectionBlocks() {
    for (std::uint32_t index = 0; index < fresh_ * Block::kPlaces; ++index) {
      if (holds(index)) std::destroy_at(&record(index).key);
    }
  }

  // One relaxed store, if the id is not from the past and no later packet has been noted.
  void touch(IdleId id, std::uint64_t stamp) noexcept {
    if (!Stamp::is_generation(id.generation)) return;  // it was never given
    Word& word = stamps_[id.index];
    const std::uint64_t fresh = stamp | id.generation;
    if (Stamp::supersedes(fresh, word.load(std::memory_order_relaxed)))
      word.store(fresh, std::memory_order_relaxed);
  }

  // The stamps of a block lie one after the other, on two cache lines.
  Word& stamp(std::uint32_t index) noexcept { return stamps_[index]; }
  const Word& stamp(std::uint32_t index) const noexcept { return stamps_[index]; }
  Record& record(std::uint32_t index) noexcept {
    return pages_[index / kPage].records[index % kPage];
  }
  const Record& record(std::uint32_t index) const noexcept {
    return pages_[index / kPage].records[index % kPage];
  }
  Block& block(std::uint32_t number) noexcept {
    return pages_[number / kPageBlocks].blocks[number % kPageBlocks];
  }
  const Block& block(std::uint32_t number) const noexcept {
    return pages_[number / kPageBlocks].blocks[number % kPageBlocks];
  }
  Block& block_of(std::uint32_t index) noexcept { return block(index / Block::kPlaces); }
  const Block& block_of(std::uint32_t index) const noexcept {
    return block(index / Block::kPlaces);
  }

  static constexpr std::uint16_t bit_of(std::uint32_t index) noexcept {
    return static_cast<std::uint16_t>(1U << (index % Block::kPlaces));
  }

  bool holds(std::uint32_t index) const noexcept { return record(index).generation % 2 == 1; }
  bool holds(IdleId id) const noexcept {
    return id.index / Block::kPlaces < fresh_ && record(id.index).generation == id.generation &&
           holds(id.index);
  }
  IdleId id(std::uint32_t index) const noexcept { return {index, record(index).generation}; }

  // A block without connections, or null: then all blocks that are allocated have some.
  Block* empty_block() noexcept {
    if (empty_.front() != nullptr) return empty_.front();
    return fresh_ < blocks() ? &block(fresh_) : nullptr;
  }

  // `block`, the answer of empty_block(), is to get a connection.
  void begin(Block& block) noexcept {
    if (&block == empty_.front()) {
      empty_.remove(block);
    } else {
      block.number = fresh_++;
    }
  }

  // `block` has lost its last connection, and is in no list.
  void end(Block& block) noexcept {
    if (!block.is_full()) empty_.push(block);
  }

  // Gives a free place of `block` to a connection. The caller sees to lists and wheels.
  std::uint32_t acquire(Block& block, Key&& key, Tick timeout) noexcept {
    const auto place = static_cast<std::uint32_t>(
        std::countr_one(static_cast<std::uint16_t>(block.live | block.retired)));
    const std::uint32_t index = block.number * Block::kPlaces + place;
    block.live |= bit_of(index);
    Record& taken = record(index);
    ++taken.generation;
    taken.timeout = timeout;
    std::construct_at(&taken.key, std::move(key));
    ++size_;
    return index;
  }

  // From now on touches with its id are refused. The key is returned. The caller sees to lists and
  // wheels.
  Key release(std::uint32_t index) noexcept {
    Block& block = block_of(index);
    Record& released = record(index);
    block.live &= static_cast<std::uint16_t>(~bit_of(index));
    if (released.generation == kLastGeneration) {
      released.generation = 0;
      block.retired |= bit_of(index);
      ++retired_;
    } else {
      ++released.generation;
    }
    stamp(index).store(released.generation, std::memory_order_relaxed);
    --size_;
    Key key(std::move(released.key));
    std::destroy_at(&released.key);
    return key;
  }

  // Its last packet counts at `tick`, whatever has been stored.
  void restamp(std::uint32_t index, Tick tick) noexcept {
    stamp(index).store(Stamp::of(tick) | record(index).generation, std::memory_order_relaxed);
  }

  // Throws std::length_error for more connections than there can be.
  void require_possible(std::size_t connections) const {
    if (connections > (std::size_t{1} << 31) - retired_)
      throw std::length_error("carillon: an IdleTracker holds at most 2147483648 connections; " +
                              std::to_string(connections) + " were asked for");
  }

  // Room for so many connections. Throws std::bad_alloc with nothing changed. REQUIRES: it is
  // possible.
  void reserve(std::size_t connections) {
    const std::size_t needed = connections + retired_;
    if (needed > capacity()) add_pages((needed - capacity() + kPage - 1) / kPage);
  }

  // How many blocks there will be after reserve(connections).
  std::size_t blocks_for(std::size_t connections) const noexcept {
    return (connections + retired_ + kPage - 1) / kPage * kPageBlocks;
  }

  bool is_exhausted() const noexcept { return size_ + retired_ == capacity(); }
  std::size_t size() const noexcept { return size_; }
  std::size_t blocks() const noexcept { return pages_.size() * kPageBlocks; }  // allocated
  std::uint32_t fresh() const noexcept {
    return fresh_;
  }  // blocks from here on never held anything
  std::size_t bytes() const noexcept {
    return stamps_.bytes() + capacity() * sizeof(Record) + blocks() * sizeof(Block) +
           pages_.capacity() * sizeof(Page);
  }

  // Throws std::logic_error.
  void check_invariants() const {
    std::size_t held = 0;
    for (std::uint32_t number = 0; number < fresh_; ++number) {
      const Block& block = this->block(number);
      require(block.number == number, "a block has another number");
      require((block.live & block.retired) == 0, "a retired place holds a connection");
      for (std::uint32_t place = 0; place < Block::kPlaces; ++place) {
        const bool is_live = (block.live >> place & 1) != 0;
        require(is_live == holds(number * Block::kPlaces + place),
                "a block counts other connections than its records");
        held += is_live ? 1 : 0;
      }
    }
    require(held == size_, "it counts other connections than it holds");
  }

 private:
  static constexpr std::uint32_t kPage = StampTable::kStep;  // connections
  static constexpr std::uint32_t kPageBlocks = kPage / Block::kPlaces;

  struct Page {
    Record* records;
    Block* blocks;
  };

  // Pages that were allocated together.
  struct Memory {
    std::unique_ptr<Record[]> records;
    std::unique_ptr<Block[]> blocks;
  };

  std::size_t capacity() const noexcept { return pages_.size() * kPage; }  // connections

  void add_pages(std::size_t count) {
    if (pages_.size() + count > pages_.capacity())
      pages_.reserve(std::max(pages_.size() + count, 2 * pages_.capacity()));
    if (memory_.size() == memory_.capacity())
      memory_.reserve(std::max<std::size_t>(4, 2 * memory_.capacity()));
    Memory memory{std::make_unique<Record[]>(count * kPage),
                  std::make_unique<Block[]>(count * kPageBlocks)};
    stamps_.grow(capacity() + count * kPage);
    for (std::size_t page = 0; page < count; ++page)
      pages_.push_back(
          {memory.records.get() + page * kPage, memory.blocks.get() + page * kPageBlocks});
    memory_.push_back(std::move(memory));
  }

  StampTable stamps_;

  alignas(64) std::uint32_t fresh_ = 0;  // apart from what touches read
  std::size_t size_ = 0;
  std::size_t retired_ = 0;
  BlockList empty_;  // blocks that held connections before
  std::vector<Page> pages_;
  std::vector<Memory> memory_;
};

}  // namespace carillon::detail
