// Counts the bytes that the calling thread allocates, and lets an allocation fail.
#pragma once

#include <cstddef>

namespace carillon::queue {

// Bytes that this thread has asked operator new for, without an alignment; freed ones count too.
// (allocations.cpp replaces operator new for the whole program.)
extern constinit thread_local std::size_t allocated_bytes;

// The how manieth allocation of this thread from now on throws std::bad_alloc; 0: none.
extern constinit thread_local std::size_t failing_allocation;

// Returns how many bytes `call` allocates.
template <class Call>
std::size_t bytes_allocated_by(Call call) {
  const std::size_t before = allocated_bytes;
  call();
  return allocated_bytes - before;
}

}  // namespace carillon::queue
