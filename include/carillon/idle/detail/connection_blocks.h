// ConnectionBlocks: the connections of a tracker, sixteen to a block. Stamps, which packets store,
// are kept apart from the data that only the owner uses.
//
// Words used here. The *index* of a connection is its number in the tracker, as in IdleId; its
// *position* is its number in its block, 0 .. 15. An index is *free* (no connection has it), *live*
// (a connection has it) or *retired* (its generations are used up, and no connection will get it).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "carillon/idle/detail/block.h"
#include "carillon/idle/detail/stamp.h"
#include "carillon/idle/detail/stamp_table.h"
#include "carillon/idle/idle_id.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Packets touch stamps at random, so stamps have a table of their own, eight to a cache line
// (stamp_table.h). The other data of connections grows by pages. Nothing ever moves in memory,
// because a thread may be storing a stamp while the owner adds connections.
//
// Thread safety: touch() may be called by any thread at any time, also while the owner calls other
// functions, with any id that the owner has got. All other functions: the owner alone.
template <class Key, std::uint32_t kLastGeneration>
class ConnectionBlocks {
  static_assert(kLastGeneration % 2 == 1 && kLastGeneration <= Stamp::kGenerationMask);

 public:
  using Word = StampTable::Word;

  // The data of the connection at one index, or of none while the index is free or retired.
  struct Connection {
    Tick timeout = 0;
    std::uint32_t generation = 0;  // odd while the index is live
    union {
      Key key;  // constructed while the index is live
    };

    Connection() noexcept {}
    ~Connection() {}
  };

  // How many connections there can be. So many indices are given at most, and kSpare more in the
  // place of those that are retired.
  static constexpr std::size_t kMost = std::size_t{1} << 31;
  static constexpr std::size_t kSpare = std::size_t{1} << 20;

  // Throws StampTable::NoAddresses. REQUIRES: 1 <= most <= kMost.
  explicit ConnectionBlocks(std::size_t most) : stamps_(most + kSpare), most_(most) {}
  ConnectionBlocks(const ConnectionBlocks&) = delete;
  ConnectionBlocks& operator=(const ConnectionBlocks&) = delete;
  ~ConnectionBlocks() {
    for (std::uint32_t index = 0; index < used_blocks_ * Block::kSize; ++index) {
      if (holds(index)) std::destroy_at(&connection(index).key);
    }
  }

  // Does one relaxed store if the id is still valid and no later packet is stored already.
  void touch(IdleId id, std::uint64_t stamp) noexcept {
    // Otherwise no connection ever had this id.
    if (!stamps_.has(id.index) || !Stamp::is_generation(id.generation)) return;
    Word& word = stamps_[id.index];
    const std::uint64_t fresh = stamp | id.generation;
    if (Stamp::supersedes(fresh, word.load(std::memory_order_relaxed)))
      word.store(fresh, std::memory_order_relaxed);
  }

  // The stamps of a block are adjacent, on two cache lines.
  Word& stamp(std::uint32_t index) noexcept { return stamps_[index]; }
  const Word& stamp(std::uint32_t index) const noexcept { return stamps_[index]; }
  Connection& connection(std::uint32_t index) noexcept {
    return pages_[index / kPage].connections[index % kPage];
  }
  const Connection& connection(std::uint32_t index) const noexcept {
    return pages_[index / kPage].connections[index % kPage];
  }
  Block& block(std::uint32_t number) noexcept {
    return pages_[number / kPageBlocks].blocks[number % kPageBlocks];
  }
  const Block& block(std::uint32_t number) const noexcept {
    return pages_[number / kPageBlocks].blocks[number % kPageBlocks];
  }
  Block& block_of(std::uint32_t index) noexcept { return block(index / Block::kSize); }
  const Block& block_of(std::uint32_t index) const noexcept { return block(index / Block::kSize); }

  static constexpr std::uint16_t bit_of(std::uint32_t index) noexcept {
    return static_cast<std::uint16_t>(1U << (index % Block::kSize));
  }

  // Returns true if the index is live, or the id that of a live connection.
  bool holds(std::uint32_t index) const noexcept { return connection(index).generation % 2 == 1; }
  bool holds(IdleId id) const noexcept {
    return id.index / Block::kSize < used_blocks_ &&
           connection(id.index).generation == id.generation && holds(id.index);
  }
  IdleId id(std::uint32_t index) const noexcept { return {index, connection(index).generation}; }

  // A block without connections; null if all allocated blocks have some.
  Block* empty_block() noexcept {
    if (empty_.front() != nullptr) return empty_.front();
    return used_blocks_ < blocks() ? &block(used_blocks_) : nullptr;
  }

  // Call it before `block`, which empty_block() returned, gets its first connection.
  void start_using(Block& block) noexcept {
    if (&block == empty_.front()) {
      empty_.remove(block);
    } else {
      block.number = used_blocks_++;
    }
  }

  // Call it when `block` has lost its last connection. REQUIRES: it is in no list.
  void stop_using(Block& block) noexcept {
    if (!block.is_full()) empty_.push(block);
  }

  // Gives a free index of `block` to a connection, and returns the index. The caller updates lists
  // and wheels.
  std::uint32_t acquire(Block& block, Key&& key, Tick timeout) noexcept {
    const auto position = static_cast<std::uint32_t>(
        std::countr_one(static_cast<std::uint16_t>(block.live | block.retired)));
    const std::uint32_t index = block.number * Block::kSize + position;
    block.live |= bit_of(index);
    Connection& taken = connection(index);
    ++taken.generation;
    taken.timeout = timeout;
    std::construct_at(&taken.key, std::move(key));
    ++size_;
    return index;
  }

  // Frees or retires the index, and returns the key. From now on touches with the connection's id
  // are refused. The caller updates lists and wheels.
  Key release(std::uint32_t index) noexcept {
    Block& block = block_of(index);
    Connection& released = connection(index);
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

  // Sets the tick at which the last packet counts, whatever the stamp was.
  void restamp(std::uint32_t index, Tick tick) noexcept {
    stamp(index).store(Stamp::of(tick) | connection(index).generation, std::memory_order_relaxed);
  }

  // The age of the oldest stamp of `block` at `now`. REQUIRES: all its indices are live.
  std::int64_t oldest_age(const Block& block, Tick now) const noexcept {
    const Word* const stamps = &stamp(block.number * Block::kSize);
    std::int64_t oldest = std::numeric_limits<std::int64_t>::min();
    for (unsigned i = 0; i < Block::kSize; ++i)
      oldest = std::max(oldest, Stamp::rough_age(stamps[i].load(std::memory_order_relaxed), now));
    return Stamp::age_of_rough(oldest);
  }

  // Throws std::length_error if that is more connections than there can be.
  void require_possible(std::size_t connections) const {
    if (connections > most_)
      throw std::length_error("carillon: this IdleTracker holds at most " + std::to_string(most_) +
                              " connections (MostConnections)");
    if (connections + retired_ > stamps_.limit())
      throw std::length_error(
          "carillon: this IdleTracker has given as many ids as it can; make a new one");
  }

  // Makes room for this many connections. Throws std::bad_alloc; nothing has changed then.
  // REQUIRES: require_possible(connections) does not throw.
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
  std::size_t most() const noexcept { return most_; }
  std::size_t blocks() const noexcept { return pages_.size() * kPageBlocks; }  // allocated
  // The number of blocks that have ever had a connection; these have the lowest numbers.
  std::uint32_t used_blocks() const noexcept { return used_blocks_; }
  std::size_t bytes() const noexcept {
    return stamps_.bytes() + capacity() * sizeof(Connection) + blocks() * sizeof(Block) +
           pages_.capacity() * sizeof(Page);
  }

  // Throws std::logic_error if an invariant is broken. O(connections).
  void check_invariants() const {
    std::size_t held = 0;
    for (std::uint32_t number = 0; number < used_blocks_; ++number) {
      const Block& block = this->block(number);
      require(block.number == number, "a block has another number");
      require((block.live & block.retired) == 0, "a retired index has a connection");
      for (std::uint32_t position = 0; position < Block::kSize; ++position) {
        const bool is_live = (block.live >> position & 1) != 0;
        require(is_live == holds(number * Block::kSize + position),
                "a block's `live` differs from the generations of its connections");
        held += is_live ? 1 : 0;
      }
    }
    require(held == size_, "size() is not the number of live connections");
  }

 private:
  static constexpr std::uint32_t kPage = StampTable::kStep;  // connections
  static constexpr std::uint32_t kPageBlocks = kPage / Block::kSize;

  struct Page {
    Connection* connections;
    Block* blocks;
  };

  // Owns pages that were allocated together.
  struct Memory {
    std::unique_ptr<Connection[]> connections;
    std::unique_ptr<Block[]> blocks;
  };

  std::size_t capacity() const noexcept { return pages_.size() * kPage; }  // connections

  void add_pages(std::size_t count) {
    if (pages_.size() + count > pages_.capacity())
      pages_.reserve(std::max(pages_.size() + count, 2 * pages_.capacity()));
    if (memory_.size() == memory_.capacity())
      memory_.reserve(std::max<std::size_t>(4, 2 * memory_.capacity()));
    Memory memory{std::make_unique<Connection[]>(count * kPage),
                  std::make_unique<Block[]>(count * kPageBlocks)};
    stamps_.grow(capacity() + count * kPage);
    for (std::size_t page = 0; page < count; ++page)
      pages_.push_back(
          {memory.connections.get() + page * kPage, memory.blocks.get() + page * kPageBlocks});
    memory_.push_back(std::move(memory));
  }  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): memory_ owns the arrays

  StampTable stamps_;

  // On another cache line than stamps_, which touches read.
  alignas(64) const std::size_t most_;  // connections
  std::uint32_t used_blocks_ = 0;
  std::size_t size_ = 0;     // live indices
  std::size_t retired_ = 0;  // retired indices
  BlockList empty_;          // used blocks without connections, but with a free index
  std::vector<Page> pages_;
  std::vector<Memory> memory_;
};

}  // namespace carillon::detail
