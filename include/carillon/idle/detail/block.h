// Block: sixteen connections of a tracker, which are inspected together; and lists of blocks.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "carillon/require.h"
#include "carillon/wheel/exceptions.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// For check_invariants().
inline void require(bool holds, const char* what) {
  if (!holds)
    CARILLON_THROW std::logic_error(std::string("carillon: IdleTracker is broken: ") + what);
}

// Sixteen connections, which are inspected together; one timer on a wheel. Fills one cache line.
struct alignas(64) Block : TimerNode {
  static constexpr std::uint32_t kSize = 16;  // connections
  static constexpr std::uint16_t kAll = 0xFFFF;
  static constexpr std::uint16_t kNoClass = 0xFFFF;

  Tick timeout = 0;           // the one of all its connections, unless `mixed`
  Block* previous = nullptr;  // in its BlockList
  Block* next = nullptr;
  Block* next_found = nullptr;  // in the queue of blocks with bits in `found`
  std::uint32_t number = 0;     // its first connection has index number * kSize
  std::uint16_t live = 0;       // one bit per position, here and in the next two
  std::uint16_t retired = 0;
  std::uint16_t found = 0;                 // the connection was idle when it was inspected
  std::uint16_t timeout_class = kNoClass;  // it is on the wheel of this class
  bool mixed = false;                      // its connections may have different time-outs
  bool queued = false;                     // it is in the queue of blocks with bits in `found`

  bool is_full() const noexcept { return (live | retired) == kAll; }
};
static_assert(sizeof(Block) == 64);

// A list of blocks; the one pushed last is at the front. A block is in at most one list.
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

// The blocks in which connections were found idle, in the order in which they are handed over.
class FoundBlocks {
 public:
  Block* front() const noexcept { return front_; }

  // Adds the connections in `idle`, a bit per position.
  void add(Block& block, unsigned idle) noexcept {
    block.found |= static_cast<std::uint16_t>(idle);
    if (block.queued) return;
    block.queued = true;
    block.next_found = std::exchange(front_, &block);
  }

  // REQUIRES: there is a block, and no bit of `found` is left in the first one.
  void pop() noexcept {
    CARILLON_REQUIRE(front_ != nullptr && front_->found == 0);
    front_->queued = false;
    front_ = front_->next_found;
  }

 private:
  Block* front_ = nullptr;
};

}  // namespace carillon::detail
