// TimeoutClasses: the classes that a tracker's time-outs fall into, and the blocks in them.
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
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

// A class is made when the first time-out of it comes, and stays. A block is of the class of its
// first connection, and moves to one that reaches further if a connection with a longer time-out
// comes into it.
//
// Invariants: a block with connections and a free place is in the list of its class; its class
// reaches as far as the longest of its time-outs.
class TimeoutClasses {
 public:
  static constexpr Tick kLongestTimeout = Stamp::kReach / 2 - 1;

  // The class of `timeout`, whose wheel has room for `blocks` blocks. Throws std::bad_alloc.
  TimeoutClass& of(Tick timeout, Tick now, std::size_t blocks) {
    std::unique_ptr<TimeoutClass>& place = classes_[timeout_class(timeout)];
    if (place == nullptr) {
      in_use_.reserve(in_use_.size() + 1);
      auto added = std::make_unique<TimeoutClass>(now);
      added->wheel.reserve(blocks);
      place = std::move(added);
      in_use_.push_back(place.get());
    }
    return *place;
  }
  TimeoutClass& of(const Block& block) noexcept { return *classes_[block.timeout_class]; }
  const TimeoutClass& of(const Block& block) const noexcept {
    return *classes_[block.timeout_class];
  }

  // In the order in which they came.
  std::size_t size() const noexcept { return in_use_.size(); }
  TimeoutClass& operator[](std::size_t place) noexcept { return *in_use_[place]; }

  // Where a connection with `timeout`, of `timeout_class`, is to go: a block of its own class, else
  // an empty one, else any. REQUIRES: `blocks` are not exhausted.
  template <class Blocks>
  Block& block_with_room(Blocks& blocks, TimeoutClass& timeout_class, Tick timeout) noexcept {
    if (Block* own = timeout_class.with_room.front()) return *own;
    if (Block* empty = blocks.empty_block()) {
      blocks.begin(*empty);
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

  // `block` has a connection with `timeout`, of `timeout_class`: it is on the wheel of a class that
  // reaches so far. True: of another than before.
  bool suit(Block& block, TimeoutClass& timeout_class, Tick timeout) noexcept {
    if (block.timeout == timeout) return false;
    block.mixed = true;
    if (timeout <= of(block).longest()) return false;
    move(block, timeout_class, timeout);
    return true;
  }

  // Puts `block`, which was full or not before it got or lost a connection, into the list of its
  // class or takes it out. It leaves the class with its last connection.
  void list(Block& block, bool was_full) noexcept {
    const bool belongs = block.live != 0 && !block.is_full();
    const bool belonged = !was_full;
    if (belongs && !belonged) of(block).with_room.push(block);
    if (belonged && !belongs) of(block).with_room.remove(block);
  }

  void scale(Factor factor) noexcept {
    for (TimeoutClass* timeout_class : in_use_) timeout_class->scale(factor);
  }

  // The tick, not before `now`, at which a block of any class comes up.
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

  // Throws std::logic_error.
  void check_invariants() const {
    for (const TimeoutClass* timeout_class : in_use_) {
      timeout_class->wheel.check_invariants();
      for (const Block* block = timeout_class->with_room.front(); block != nullptr;
           block = block->next) {
        require(block->live != 0 && !block->is_full(),
                "a block in the list of those with room has none, or all");
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
    const Tick deadline = block.expiry();
    from.wheel.cancel(block);
    to.wheel.schedule(block, deadline);
  }

  std::vector<TimeoutClass*> in_use_;
  std::array<std::unique_ptr<TimeoutClass>, timeout_class(kLongestTimeout) + 1> classes_;
};

}  // namespace carillon::detail
