// Counts the allocations of this program, and makes allocations fail on demand.
#pragma once

#include <cstddef>

namespace carillon::testing {

std::size_t allocations();      // calls of operator new so far
std::size_t allocated_bytes();  // allocated and not freed

// While an object of this class lives, operator new succeeds `allowed` times, then throws
// std::bad_alloc.
class FailingAllocations {
 public:
  explicit FailingAllocations(std::size_t allowed);
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
  ~FailingAllocations();
};

}  // namespace carillon::testing
