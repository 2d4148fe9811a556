// PageBlocks: equal blocks of memory, from ordinary pages or huge ones, all given back together.
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

// A page, aligned to its size, to be deleted with that alignment. Throws std::bad_alloc.
inline void* take_huge_page() {
  void* memory = ::operator new (kHugePage, std::align_val_t{kHugePage});
#if defined(__linux__)
  static_cast<void>(madvise(memory, kHugePage,
                            MADV_HUGEPAGE));  // a wish: refused, the memory is as good, but slower
#endif
  return memory;
}

// Blocks of memory that are all given back together, at the end.
template <std::size_t kBytes, std::size_t kAlignment>
class PageBlocks {
  static_assert(kBytes % kAlignment == 0, "the block behind a block is aligned, too");

 public:
  explicit PageBlocks(Pages pages) noexcept : huge_(pages == Pages::kHuge && kBytes <= kHugePage) {}

  // Throws std::bad_alloc with nothing changed.
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

  std::size_t bytes() const noexcept {
    return taken_.size() * size();
  }  // allocated from the system

 private:
  struct Delete {
    std::align_val_t alignment;
    void operator()(void* memory) const noexcept { ::operator delete(memory, alignment); }
  };

  std::size_t size() const noexcept {
    return huge_ ? kHugePage : kBytes;
  }  // of what is taken at a time

  const bool huge_;
  std::size_t left_ = 0;  // bytes of what was taken last
  std::vector<std::unique_ptr<void, Delete>> taken_;
};

}  // namespace carillon::detail
