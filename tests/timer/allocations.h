// Counts what the calling thread allocates, refuses memory to it, and lets a test act at the moment
// when a wheel takes memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace carillon::testing {

// Calls of operator new without an alignment by this thread. (allocations.cpp replaces operator new
// for the whole program.)
extern constinit thread_local std::size_t allocations;
extern constinit thread_local bool memory_is_short;

// The slabs of timer blocks that the process has taken.
extern std::atomic<std::size_t> block_slabs;

// While it lives, operator new without an alignment throws std::bad_alloc on this thread.
struct NoMemory {
  NoMemory() noexcept { memory_is_short = true; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() { memory_is_short = false; }
};

// Called once, when a HierarchicalWheel<> on any thread next takes a slab of chunks. It may throw
// std::bad_alloc. A slab serves 127 chunks, so a wheel takes its first one for the first timer that
// is 256 ticks ahead or more. In a TimerService the thread that places this timer is inside its
// shard's door, and every other use of the shard finds the door taken.
extern std::function<void()> at_next_slab;

}  // namespace carillon::testing
