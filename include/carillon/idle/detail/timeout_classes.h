// TimeoutClasses: the classes of a tracker's time-outs, and the blocks in them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "carillon/idle/detail/connection_blocks.h"
#include "carillon/idle/detail/stamp.h"
#include "carillon/idle/detail/timeout_class.h"
#include "carillon/require.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// A class is made for its first time-out, and stays. A block belongs to the class of its first
// connection. If it then gets a connection whose time-out is longer than every time-out of that
// class, it moves to the class of the new time-out.
//
// Invariants
//  - A block with connections and a free index is in the list `with_room` of its class.
//  - No time-out in a block is longer than longest() of the block's class.
class TimeoutClasses {
 public:
  static constexpr Tick kLongestTimeout = Stamp::kReach / 2 - 1;

  // The class of `timeout`; a new one gets a wheel with room for `blocks` blocks. Throws
  // std::bad_alloc.
  TimeoutClass& of(Tick timeout, Tick now, std::size_t blocks) {
    std::unique_ptr<TimeoutClass>& entry = classes_[timeout_class(timeout)];
    if (entry == nullptr) {
      in_use_.reserve(in_use_.size() + 1);
      auto added = std::make_unique<TimeoutClass>(now);
      added->wheel.reserve(blocks);
      entry = std::move(added);
      in_use_.push_back(entry.get());
    }
    return *entry;
  }
  TimeoutClass& of(const Block& block) noexcept { return *classes_[block.timeout_class]; }
  const TimeoutClass& of(const Block& block) const noexcept {
    return *classes_[block.timeout_class];
  }

  // The classes, in the order in which they were made.
  std::size_t size() const noexcept { return in_use_.size(); }
  TimeoutClass& operator[](std::size_t index) noexcept { return *in_use_[index]; }

  // Returns the block for a new connection with `timeout`, which belongs to `timeout_class`. The
  // first that exists of: a block of that class with room, an empty block, any block with room.
  // REQUIRES: `blocks` are not exhausted.
  template <class Blocks>
  Block& block_with_room(Blocks& blocks, TimeoutClass& timeout_class, Tick timeout) noexcept {
    CARILLON_REQUIRE(!blocks.is_exhausted());
    if (Block* own = timeout_class.with_room.front()) return *own;
    if (Block* empty = blocks.empty_block()) {
      blocks.start_using(*empty);
      if (empty->armed()) of(*empty).wheel.cancel(*empty);
      empty->timeout_class = static_cast<std::uint16_t>(detail::timeout_class(timeout));
      empty->timeout = timeout;
      empty->mixed = false;
      timeout_class.with_room.push(*empty);
      return *empty;
    }
    const auto any = std::find_if(in_use_.begin(), in_use_.end(), [](TimeoutClass* other) {
      return other->with_room.front() != nullptr;
    });
    return *(*any)->with_room.front();
  }

  // Call it when `block` has got a connection with `timeout`, of `timeout_class`. If that time-out
  // is longer than every one of the block's class, moves the block to `timeout_class` and returns
  // true.
  bool raise_class_for(Block& block, TimeoutClass& timeout_class, Tick timeout) noexcept {
    if (block.timeout == timeout) return false;
    block.mixed = true;
    if (timeout <= of(block).longest()) return false;
    move(block, timeout_class, timeout);
    return true;
  }

  // Call it after `block` got or lost a connection: adds the block to the list `with_room` of its
  // class, or removes it from there. `was_full`: whether the block was full before.
  void update_list(Block& block, bool was_full) noexcept {
    const bool belongs = block.live != 0 && !block.is_full();
    const bool belonged = !was_full;
    if (belongs && !belonged) of(block).with_room.push(block);
    if (belonged && !belongs) of(block).with_room.remove(block);
  }

  void scale(Factor factor) noexcept {
    for (TimeoutClass* timeout_class : in_use_) timeout_class->scale(factor);
  }

  // The tick, not before `now`, at which the next timer of any block fires.
  Tick next(Tick now) const noexcept {
    Tick next = TimeoutClass::kNever;
    for (const TimeoutClass* timeout_class : in_use_)
      next = std::min(next, timeout_class->next(now));
    return next;
  }

  void reserve(std::size_t blocks) {
    for (TimeoutClass* timeout_class : in_use_) timeout_class->wheel.reserve(blocks);
  }

  std::size_t allocated_bytes() const noexcept {
    std::size_t bytes = in_use_.capacity() * sizeof(TimeoutClass*);
    for (const TimeoutClass* timeout_class : in_use_)
      bytes += sizeof(TimeoutClass) + timeout_class->wheel.allocated_bytes();
    return bytes;
  }

  // Throws std::logic_error if an invariant is broken. O(blocks).
  void check_invariants() const {
    for (const TimeoutClass* timeout_class : in_use_) {
      timeout_class->wheel.check_invariants();
      for (const Block* block = timeout_class->with_room.front(); block != nullptr;
           block = block->next) {
        require(block->live != 0 && !block->is_full(),
                "a block in a list of blocks with room has no connection, or no room");
        require(&of(*block) == timeout_class, "a block is in the list of another class");
      }
    }
  }

 private:
  void move(Block& block, TimeoutClass& to, Tick timeout) noexcept {
    TimeoutClass& from = of(block);
    const bool in_list = !block.is_full();
    if (in_list) from.with_room.remove(block);
    if (in_list) to.with_room.push(block);
    block.timeout_class = static_cast<std::uint16_t>(timeout_class(timeout));
    if (!block.armed()) return;
    const Moment deadline = block.expiry();
    from.wheel.cancel(block);
    to.wheel.schedule(block, deadline);
  }

  std::vector<TimeoutClass*> in_use_;
  std::array<std::unique_ptr<TimeoutClass>, timeout_class(kLongestTimeout) + 1> classes_;
};

}  // namespace carillon::detail
