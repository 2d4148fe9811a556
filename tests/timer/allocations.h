// What the calling thread allocates, counted; and how memory is refused to it.
#pragma once

#include <cstddef>

namespace carillon::testing {

// Calls of operator new by this thread. (allocations.cpp replaces it for the whole program.)
extern constinit thread_local std::size_t allocations;
extern constinit thread_local bool memory_is_short;

// While it lives, operator new throws std::bad_alloc on this thread.
struct NoMemory {
  NoMemory() noexcept { memory_is_short = true; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() { memory_is_short = false; }
};

}  // namespace carillon::testing
