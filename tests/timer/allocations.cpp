#include "timer/allocations.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "carillon/timer/detail/timer_block.h"
#include "carillon/wheel/hierarchical_wheel.h"

namespace carillon::testing {

constinit thread_local std::size_t allocations = 0;
constinit thread_local bool memory_is_short = false;
std::atomic<std::size_t> block_slabs{0};
std::function<void()> at_next_slab;

}  // namespace carillon::testing

namespace {

void* allocate(std::size_t size) {
  ++carillon::testing::allocations;
  if (carillon::testing::memory_is_short) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

// Only slabs have this alignment: timer blocks, the other aligned memory of a service, have less.
constexpr std::size_t kSlabAlignment = alignof(carillon::detail::Slab<64>);
static_assert(alignof(carillon::detail::TimerBlock) < kSlabAlignment);

void* allocate_aligned(std::size_t size, std::size_t alignment) {
  using carillon::detail::TimerBlock;
  using carillon::testing::at_next_slab;
  if (alignment == kSlabAlignment && at_next_slab) std::exchange(at_next_slab, nullptr)();
  if (alignment == alignof(carillon::detail::TimerBlock) && size > 256 * sizeof(TimerBlock))
    ++carillon::testing::block_slabs;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, rounded)) return memory;
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
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_aligned(size, static_cast<std::size_t>(alignment));
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
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
