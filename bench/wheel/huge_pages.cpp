// operator new and delete. While a HugePages lives, large allocations come from its memory.
#include "huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace carillon::bench {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;
constexpr std::size_t kRoom = std::size_t{16} << 30;  // addresses, not memory
// Bytes. Smaller allocations come from malloc, as always.
constexpr std::size_t kLarge = std::size_t{16} << 10;

// Hands out memory, lowest addresses first. Sizes are rounded up to a power of two, and memory is
// aligned to its size. Freed memory is kept for the next allocation of its size.
class Arena {
 public:
  bool open() const { return begin_ != nullptr; }
  bool owns(const void* memory) const { return memory >= begin_ && memory < end_; }

  void map() {
    mapping_ = mmap(nullptr, kRoom + kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) throw std::bad_alloc();
    madvise(mapping_, kRoom + kPage, MADV_HUGEPAGE);
    auto* address = static_cast<std::byte*>(mapping_);
    begin_ = address + (kPage - reinterpret_cast<std::uintptr_t>(address) % kPage) % kPage;
    end_ = begin_ + kRoom;
    fresh_ = 0;
    free_ = {};
  }

  void unmap() {
    munmap(mapping_, kRoom + kPage);
    begin_ = end_ = nullptr;
  }

  void* allocate(std::size_t bytes, std::size_t alignment) {
    const std::size_t size = std::bit_ceil(std::max(bytes, alignment));
    Free*& list = free_[class_of(size)];
    if (list != nullptr) {
      void* memory = list;
      list = list->next;
      return memory;
    }
    const std::size_t offset = (fresh_ + size - 1) / size * size;
    if (offset + size > kRoom) throw std::bad_alloc();
    fresh_ = offset + size;
    size_classes_[offset / kLarge] = static_cast<std::uint8_t>(class_of(size));
    return begin_ + offset;
  }

  void release(void* memory) {
    const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(memory) - begin_);
    Free*& list = free_[size_classes_[offset / kLarge]];
    list = new (memory) Free{list};
  }

 private:
  struct Free {
    Free* next;
  };

  static std::size_t class_of(std::size_t size) {
    return static_cast<std::size_t>(std::countr_zero(size));
  }

  void* mapping_ = nullptr;
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
  std::size_t fresh_ = 0;         // the first byte that was never handed out
  std::array<Free*, 64> free_{};  // by size class
  std::array<std::uint8_t, kRoom / kLarge> size_classes_{};  // where an allocation begins
};

Arena arena;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (arena.open() && bytes >= kLarge) return arena.allocate(bytes, alignment);
  alignment = std::max(alignment, alignof(std::max_align_t));
  void* memory =
      alignment == alignof(std::max_align_t)
          ? std::malloc(std::max<std::size_t>(bytes, 1))
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (arena.owns(memory)) return arena.release(memory);
  std::free(memory);
}

}  // namespace

HugePages::HugePages() {
  arena.map();
}

HugePages::~HugePages() {
  arena.unmap();
}

}  // namespace carillon::bench

using carillon::bench::allocate;
using carillon::bench::release;

// The standard library's other forms call these.
void* operator new(std::size_t bytes) {
  return allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  release(memory);
}
