// ConnectionBlocks: the connections of a tracker, sixteen to a block. Stamps, which packets store,
// are kept apart from the data that only the owner uses.
//
// Words used here. The *index* of a connection is its number in the tracker, as in IdleId; its
// *position* is its number in its block, 0 .. 15. An index is *free* (no connection has it), *live*
// (a connection has it), *left* (its connection was removed, and the owner does not know yet) or
// *retired* (its generations are used up, and no connection will get it).
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
#include "carillon/require.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// Packets touch stamps at random, so stamps have a table of their own, eight to a cache line
// (stamp_table.h). The other data of connections grows by pages. Nothing ever moves in memory,
// because a thread may be storing a stamp while the owner adds connections.
//
// One thread ends a connection: the one that changes its generation from odd to even. From then on
// the key is its own. Blocks, lists and wheels are the owner's, so
// a thread that removes a connection pushes its index onto a list, linked through the memory of the
// keys, and the owner takes the list as a whole. Nothing is allocated, and no thread waits.
//
// Thread safety: touch() and remove() may be called by any thread at any time, also while the owner
// calls other functions, with any id that the owner has got. All others: the owner alone.
template <class Key, std::uint32_t kLastGeneration>
class ConnectionBlocks {
  static_assert(kLastGeneration % 2 == 1 && kLastGeneration <= Stamp::kGenerationMask);

 public:
  using Word = StampTable::Word;

  // The data of the connection at one index. While the index is free or retired, it means nothing.
  struct Connection {
    Tick timeout = 0;
    std::atomic<std::uint32_t> generation{0};  // odd while the index is live
    union {
      Key key;                  // constructed while the index is live
      std::uint32_t next_left;  // while the index is in the list that begins with left_
    };

    Connection() noexcept {}
    ~Connection() {}
  };

  // How many connections there can be. So many indices are given at most, and kSpare more in the
  // place of those that are retired.
  static constexpr std::size_t kMost = std::size_t{1} << 31;
  static constexpr std::size_t kSpare = std::size_t{1} << 20;

  // Throws StampTable::NoAddresses. REQUIRES: 1 <= most <= kMost.
  explicit ConnectionBlocks(std::size_t most)
      : stamps_(most + kSpare),
        most_(most),
        pages_(std::make_unique<Page[]>(stamps_.limit() / kPage)) {
    CARILLON_REQUIRE(1 <= most && most <= kMost, most);
  }
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
  Connection& connection(std::uint32_t index) noexcept { return connections(index)[index % kPage]; }
  const Connection& connection(std::uint32_t index) const noexcept {
    return connections(index)[index % kPage];
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
  bool holds(std::uint32_t index) const noexcept { return id(index).generation % 2 == 1; }
  bool holds(IdleId id) const noexcept {
    return id.index / Block::kSize < used_blocks_ && this->id(id.index) == id && holds(id.index);
  }
  // The id of the connection at `index`. An even generation means that no connection has the index.
  IdleId id(std::uint32_t index) const noexcept {
    return {index, connection(index).generation.load(std::memory_order_relaxed)};
  }

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
    CARILLON_REQUIRE(block.live == 0, block.number, block.live);
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
    taken.timeout = timeout;
    std::construct_at(&taken.key, std::move(key));
    taken.generation.store(id(index).generation + 1, std::memory_order_release);
    ++taken_;
    return index;
  }

  // Ends the connection, and returns true, if `id` is that of a live one: nobody else ends it. The
  // caller takes the key and then frees the index, or leaves that to the owner. Any thread.
  bool end(IdleId id) noexcept {
    if (!Stamp::is_generation(id.generation) || !stamps_.has(id.index)) return false;
    // Null if the owner never gave this id.
    Connection* const page = pages_[id.index / kPage].connections.load(std::memory_order_acquire);
    std::uint32_t generation = id.generation;
    return page != nullptr &&
           page[id.index % kPage].generation.compare_exchange_strong(
               generation, id.generation + 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // REQUIRES: the caller has ended the connection at `index`.
  Key take_key(std::uint32_t index) noexcept {
    Connection& ended = connection(index);
    CARILLON_REQUIRE(ended.generation.load(std::memory_order_relaxed) % 2 == 0, index);
    Key& key = ended.key;
    Key taken(std::move(key));
    std::destroy_at(&key);
    return taken;
  }

  // Ends the connection and destroys its key; the owner frees the index with take_left(). Returns
  // false if the connection has ended already. Any thread.
  bool remove(IdleId id) noexcept {
    if (!end(id)) return false;
    [[maybe_unused]] const Key key = take_key(id.index);  // destroyed when the index is pushed
    std::uint64_t head = left_.load(std::memory_order_relaxed);
    std::uint64_t pushed = 0;
    do {
      connection(id.index).next_left = static_cast<std::uint32_t>(head);
      pushed = ((head >> 32) + 1) << 32 | id.index;
      // Releases what was done with the key's memory.
    } while (!left_.compare_exchange_weak(head, pushed, std::memory_order_release,
                                          std::memory_order_relaxed));
    return true;
  }

  // Calls free(index) for each connection that remove() has ended since the last call.
  template <class Free>
  void take_left(Free&& free) noexcept {
    if (left_.load(std::memory_order_relaxed) == 0) return;
    const std::uint64_t head = left_.exchange(0, std::memory_order_acquire);
    auto index = static_cast<std::uint32_t>(head);
    for (std::uint64_t count = head >> 32; count != 0; --count)
      free(std::exchange(index, connection(index).next_left));
  }

  // Frees or retires the index of a connection that has ended. From now on touches with its id are
  // refused. The caller updates lists and wheels.
  void free(std::uint32_t index) noexcept {
    Block& block = block_of(index);
    Connection& freed = connection(index);
    block.live &= static_cast<std::uint16_t>(~bit_of(index));
    if (id(index).generation > kLastGeneration) {
      freed.generation.store(0, std::memory_order_relaxed);
      block.retired |= bit_of(index);
      ++retired_;
    }
    stamp(index).store(id(index).generation, std::memory_order_relaxed);
    --taken_;
  }

  // Returns true if the stamp is from an earlier connection with this index: that connection was
  // removed in the middle of its touch, which then stored the stamp.
  bool stamp_is_foreign(IdleId id) const noexcept {
    return Stamp::generation(stamp(id.index).load(std::memory_order_relaxed)) != id.generation;
  }

  // Sets the tick at which the last packet counts, whatever the stamp was.
  void restamp(std::uint32_t index, Tick tick) noexcept {
    stamp(index).store(Stamp::of(tick) | id(index).generation, std::memory_order_relaxed);
  }

  // The age of the oldest stamp of `block` at `now`. REQUIRES: all its indices are live.
  std::int64_t oldest_age(const Block& block, Tick now) const noexcept {
    CARILLON_REQUIRE(block.live == Block::kAll, block.number, block.live);
    const Word* const stamps = &stamp(block.number * Block::kSize);
    std::int64_t oldest = std::numeric_limits<std::int64_t>::min();
    for (unsigned i = 0; i < Block::kSize; ++i)
      oldest = std::max(oldest, Stamp::rough_age(stamps[i].load(std::memory_order_relaxed), now));
    return Stamp::age_of_rough(oldest);
  }

  // Throws std::length_error if that is more connections than there can be.
  void require_possible(std::size_t connections) const {
    if (connections > most_)
      CARILLON_THROW std::length_error("carillon: this IdleTracker holds at most " +
                                       std::to_string(most_) + " connections (MostConnections)");
    if (connections + retired_ > stamps_.limit())
      CARILLON_THROW std::length_error(
          "carillon: this IdleTracker has given as many ids as it can; make a new one");
  }

  // Makes room for this many connections. Throws std::bad_alloc; nothing has changed then.
  // REQUIRES: require_possible(connections) does not throw.
  void reserve(std::size_t connections) {
    const std::size_t needed = connections + retired_;
    CARILLON_REQUIRE(connections <= most_ && needed <= stamps_.limit(), connections, most_,
                     retired_);
    if (needed > capacity()) add_pages((needed - capacity() + kPage - 1) / kPage);
  }

  // How many blocks there will be after reserve(connections).
  std::size_t blocks_for(std::size_t connections) const noexcept {
    return (connections + retired_ + kPage - 1) / kPage * kPageBlocks;
  }

  bool is_exhausted() const noexcept { return taken_ + retired_ == capacity(); }
  // The number of indices that are live or left.
  std::size_t taken() const noexcept { return taken_; }
  std::size_t size() const noexcept {
    return taken_ - static_cast<std::size_t>(left_.load(std::memory_order_relaxed) >> 32);
  }
  std::size_t most() const noexcept { return most_; }
  std::size_t blocks() const noexcept { return page_count_ * kPageBlocks; }  // allocated
  // The number of blocks that have ever had a connection; these have the lowest numbers.
  std::uint32_t used_blocks() const noexcept { return used_blocks_; }
  std::size_t bytes() const noexcept {
    return stamps_.bytes() + capacity() * sizeof(Connection) + blocks() * sizeof(Block) +
           stamps_.limit() / kPage * sizeof(Page);
  }

  // Throws std::logic_error if an invariant is broken. O(connections). REQUIRES: no other thread
  // removes a connection at the same time.
  void check_invariants() const {
    std::size_t live = 0, held = 0;
    for (std::uint32_t number = 0; number < used_blocks_; ++number) {
      const Block& block = this->block(number);
      require(block.number == number, "a block has another number");
      require((block.live & block.retired) == 0, "a retired index has a connection");
      for (std::uint32_t position = 0; position < Block::kSize; ++position) {
        const bool is_live = (block.live >> position & 1) != 0;
        const bool is_held = holds(number * Block::kSize + position);
        require(is_live || !is_held, "a connection is missing in its block's `live`");
        live += is_live ? 1U : 0U;
        held += is_held ? 1U : 0U;
      }
    }
    require(live == taken_, "taken() is not the number of bits in `live`");
    require(held == size(), "size() is not the number of live connections");
  }

 private:
  static constexpr std::uint32_t kPage = StampTable::kStep;  // connections
  static constexpr std::uint32_t kPageBlocks = kPage / Block::kSize;

  struct Page {
    std::atomic<Connection*> connections{nullptr};  // the owner writes it before it gives an id
    Block* blocks = nullptr;
  };

  // Owns pages that were allocated together.
  struct Memory {
    std::unique_ptr<Connection[]> connections;
    std::unique_ptr<Block[]> blocks;
  };

  std::size_t capacity() const noexcept { return page_count_ * kPage; }  // connections

  void add_pages(std::size_t count) {
    if (memory_.size() == memory_.capacity())
      memory_.reserve(std::max<std::size_t>(4, 2 * memory_.capacity()));
    Memory memory{std::make_unique<Connection[]>(count * kPage),
                  std::make_unique<Block[]>(count * kPageBlocks)};
    stamps_.grow(capacity() + count * kPage);
    for (std::size_t page = 0; page < count; ++page) {
      Page& added = pages_[page_count_++];
      added.blocks = memory.blocks.get() + page * kPageBlocks;
      added.connections.store(memory.connections.get() + page * kPage, std::memory_order_release);
    }
    memory_.push_back(std::move(memory));
  }  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): memory_ owns the arrays

  Connection* connections(std::uint32_t index) const noexcept {
    return pages_[index / kPage].connections.load(std::memory_order_relaxed);
  }

  StampTable stamps_;

  // On another cache line than stamps_, which touches read.
  alignas(64) const std::size_t most_;  // connections
  std::uint32_t used_blocks_ = 0;
  std::size_t page_count_ = 0;
  std::size_t taken_ = 0;                // live and left indices
  std::size_t retired_ = 0;              // retired indices
  BlockList empty_;                      // used blocks without connections, but with a free index
  const std::unique_ptr<Page[]> pages_;  // room for all that there can be
  std::vector<Memory> memory_;

  // The list of left indices: their number in the upper half, the first of them in the lower.
  alignas(64) std::atomic<std::uint64_t> left_{0};
};

}  // namespace carillon::detail
