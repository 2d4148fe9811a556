// TrackerCore::check_invariants(): what must hold between two calls of an IdleTracker; for tests.
#pragma once

#include <cstdint>

#include "carillon/idle/detail/connection_blocks.h"
#include "carillon/idle/detail/tracker_core.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

template <class Key, std::uint32_t kLastGeneration>
void TrackerCore<Key, kLastGeneration>::check_invariants() const {
  blocks_.check_invariants();
  classes_.check_invariants();
  for (std::uint32_t number = 0; number < blocks_.used_blocks(); ++number) {
    const Block& block = blocks_.block(number);
    require(block.found == 0 || block.queued, "a found connection is not in the queue");
    for (std::uint32_t position = 0; position < Block::kSize; ++position) {
      if (!blocks_.holds(number * Block::kSize + position)) continue;
      const Tick timeout = blocks_.connection(number * Block::kSize + position).timeout;
      require(block.mixed || block.timeout == timeout,
              "the time-outs of a block differ, but it is not marked as mixed");
      require(classes_.of(block).longest() >= timeout,
              "a time-out is longer than the longest of the block's class");
      require(block.armed() || (block.found >> position & 1) != 0,
              "a connection will never be inspected");
    }
  }
  require(next_ <= classes_.next(now_), "the next wake-up is too late for a class");
}

}  // namespace carillon::detail
