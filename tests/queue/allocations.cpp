#include "queue/allocations.h"

#include <cstdlib>
#include <new>

namespace carillon::queue {

constinit thread_local std::size_t allocated_bytes = 0;
constinit thread_local std::size_t failing_allocation = 0;

}  // namespace carillon::queue

namespace {

void* allocate(std::size_t size) noexcept {
  carillon::queue::allocated_bytes += size;
  std::size_t& failing = carillon::queue::failing_allocation;
  if (failing > 0 && --failing == 0) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}

void* allocate_or_throw(std::size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// g++ 12 looks through some of these and not through others, and finds that they do not match.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

// All of these, because sanitizers bring their own, which do not call each other.
void* operator new(std::size_t size) {
  return allocate_or_throw(size);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
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
