// Pages: in what pages of memory a wheel's slots, and a pool's timers, lie.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace carillon {

// A cancel, or a re-arm, touches memory at random. With millions of timers that costs, beside a cache miss, a walk through the page
// table, unless pages are large. kHuge takes memory by 2 MiB and asks Linux for one page for each (madvise), which it gives if
// /sys/kernel/mm/transparent_hugepage/enabled says "madvise" or "always"; otherwise, and elsewhere, pages are ordinary. For 100 000
// timers and more: one page is kept once it is taken. docs/decisions.md has what it brings.
enum class Pages { kDefault, kHuge };

namespace detail {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

// A page, aligned to its size, to be deleted with that alignment. Throws std::bad_alloc.
inline void* take_huge_page() {
  void* memory = ::operator new (kHugePage, std::align_val_t{kHugePage});
#if defined(__linux__)
  static_cast<void>(madvise(memory, kHugePage, MADV_HUGEPAGE));  // a wish: refused, the memory is as good, but slower
#endif
  return memory;
}

// Blocks of memory that are all given back together, at the end.
template <std::size_t kBytes, std::size_t kAlignment>
class Blocks {
  static_assert(kBytes % kAlignment == 0, "the block behind a block is aligned, too");

 public:
  explicit Blocks(Pages pages) noexcept : huge_(pages == Pages::kHuge && kBytes <= kHugePage) {}

  // Throws std::bad_alloc with nothing changed.
  void* take() {
    if (left_ < kBytes) {
      const std::align_val_t alignment{huge_ ? kHugePage : kAlignment};
      taken_.push_back({huge_ ? take_huge_page() : ::operator new(kBytes, alignment), Delete{alignment}});
      left_ = size();
    }
    void* const block = static_cast<std::byte*>(taken_.back().get()) + (size() - left_);
    left_ -= kBytes;
    return block;
  }

  std::size_t bytes() const noexcept { return taken_.size() * size(); }  // allocated from the system

 private:
  struct Delete {
    std::align_val_t alignment;
    void operator()(void* memory) const noexcept { ::operator delete(memory, alignment); }
  };

  std::size_t size() const noexcept { return huge_ ? kHugePage : kBytes; }  // of what is taken at a time

  const bool huge_;
  std::size_t left_ = 0;  // bytes of what was taken last
  std::vector<std::unique_ptr<void, Delete>> taken_;
};

}  // namespace detail
}  // namespace carillon
