#include "timer/allocations.h"

#include <cstdlib>
#include <new>

namespace carillon::testing {

constinit thread_local std::size_t allocations = 0;
constinit thread_local bool memory_is_short = false;

}  // namespace carillon::testing

namespace {

void* allocate(std::size_t size) {
  ++carillon::testing::allocations;
  if (carillon::testing::memory_is_short) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// g++ 12 looks through some of these and not through others, and finds that they do not match.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
// Sanitizers bring one of their own, which would not call the above.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return allocate(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
