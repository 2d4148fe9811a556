// Counts what this program allocates, and makes allocations fail on demand.
#pragma once

#include <cstddef>

namespace carillon::testing {

std::size_t allocations();      // calls of operator new so far
std::size_t allocated_bytes();  // asked for and not given back

// While it lives, operator new succeeds `allowed` times and throws std::bad_alloc from then on.
class FailingAllocations {
 public:
  explicit FailingAllocations(std::size_t allowed);
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
  ~FailingAllocations();
};

}  // namespace carillon::testing
