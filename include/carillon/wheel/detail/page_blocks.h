// PageBlocks: blocks of memory of one size, in ordinary pages or in huge ones (pages.h); and
// take_huge_page(), which takes one huge page from the system.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "carillon/wheel/pages.h"

namespace carillon::detail {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

// 2 MiB of memory, aligned to 2 MiB; the caller deletes it with that alignment. Asks Linux to use
// one huge page for it. If Linux refuses, the memory works as well, but slower. Throws
// std::bad_alloc.
inline void* take_huge_page() {
  void* memory = ::operator new (kHugePage, std::align_val_t{kHugePage});
#if defined(__linux__)
  static_cast<void>(madvise(memory, kHugePage, MADV_HUGEPAGE));
#endif
  return memory;
}

// Hands out blocks of kBytes, and frees them all when it is destroyed. With WheelPages::kHuge as
// many blocks as fit lie in each huge page; a block that is larger than a huge page is allocated by
// itself, as all blocks are with WheelPages::kDefault.
template <std::size_t kBytes, std::size_t kAlignment>
class PageBlocks {
  static_assert(kBytes % kAlignment == 0, "the block behind a block is aligned, too");

 public:
  explicit PageBlocks(WheelPages pages) noexcept
      : huge_(pages == WheelPages::kHuge && kBytes <= kHugePage) {}

  // A new block. Throws std::bad_alloc with nothing changed.
  void* take() {
    if (left_ < kBytes) {
      const std::align_val_t alignment{huge_ ? kHugePage : kAlignment};
      taken_.push_back(
          {huge_ ? take_huge_page() : ::operator new(kBytes, alignment), Delete{alignment}});
      left_ = size();
    }
    void* const block = static_cast<std::byte*>(taken_.back().get()) + (size() - left_);
    left_ -= kBytes;
    return block;
  }

  // Bytes allocated from the system.
  std::size_t bytes() const noexcept { return taken_.size() * size(); }

 private:
  struct Delete {
    std::align_val_t alignment;
    void operator()(void* memory) const noexcept { ::operator delete(memory, alignment); }
  };

  // Bytes of one allocation.
  std::size_t size() const noexcept { return huge_ ? kHugePage : kBytes; }

  const bool huge_;
  std::size_t left_ = 0;  // bytes of the last allocation that are in no block
  std::vector<std::unique_ptr<void, Delete>> taken_;
};

}  // namespace carillon::detail
