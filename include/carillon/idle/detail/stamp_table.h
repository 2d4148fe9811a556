// StampTable: the stamps of a tracker's connections in one array. The array grows in place, so a
// touch, on any thread, finds a stamp by its index alone.
//
// Besides the store itself, a touch costs only the way to the stamp. So the table reserves address
// space for every possible index, 32 GiB, and takes memory only for the indices in use. The rest
// can be read, as zeros, but not written; it counts neither as committed nor as resident (reading
// it takes page tables, 64 MiB if all of it is read). A process that limits its addresses
// (`ulimit -v`) or locks all mapped memory (`mlockall`) must leave room for it.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace carillon::detail {

// Thread safety: operator[] from any thread at any time; the rest from one thread at a time.
class StampTable {
 public:
  using Word = std::atomic<std::uint64_t>;
  static_assert(sizeof(Word) == 8 && Word::is_always_lock_free,
                "zeroed pages from the system must be words of value 0");
  static_assert(sizeof(void*) == 8, "32 GiB of addresses need 64 bits");

  // Words by which the table grows: 128 KiB, a whole number of pages on every system.
  static constexpr std::size_t kStep = 16'384;

  struct NoAddresses : std::bad_alloc {
    const char* what() const noexcept override {
      return "carillon: an IdleTracker takes 32 GiB of addresses, which are not to be had (see "
             "`ulimit -v`)";
    }
  };

  // Throws NoAddresses.
  StampTable() : words_(reserve()) {}
  StampTable(const StampTable&) = delete;
  StampTable& operator=(const StampTable&) = delete;
  ~StampTable() { munmap(words_, kAddresses); }

  // Words with an index below size() can be written. All others can only be read, and are 0.
  Word& operator[](std::uint32_t index) noexcept { return words_[index]; }
  const Word& operator[](std::uint32_t index) const noexcept { return words_[index]; }

  // Grows to `size` words; the new ones are 0. Throws std::bad_alloc; nothing has changed then.
  // REQUIRES: size >= size(), and it is a multiple of kStep.
  void grow(std::size_t size) {
    Word* const fresh = words_ + size_;
    const std::size_t bytes = (size - size_) * sizeof(Word);
    if (mprotect(fresh, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
#if defined(MADV_DODUMP)
    static_cast<void>(madvise(fresh, bytes, MADV_DODUMP));
#endif
    // Written now, so that no packet waits for memory. The stores are atomic because a touch with
    // an id that was never given may read these words at the same time.
    for (; size_ < size; ++size_) words_[size_].store(0, std::memory_order_relaxed);
  }

  std::size_t size() const noexcept {
    return size_;
  }  // words
  std::size_t bytes() const noexcept {
    return size_ * sizeof(Word);
  }

 private:
  static constexpr std::size_t kAddresses = (std::size_t{1} << 32) * sizeof(Word);

  static Word* reserve() {
    void* const addresses =
        mmap(nullptr, kAddresses, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (addresses == MAP_FAILED) throw NoAddresses();
#if defined(MADV_DONTDUMP)
    // Keeps the 32 GiB out of core dumps. If it fails, dumps contain them.
    static_cast<void>(madvise(addresses, kAddresses, MADV_DONTDUMP));
#endif
    return static_cast<Word*>(addresses);
  }

  Word* const words_;
  std::size_t size_ = 0;
};

}  // namespace carillon::detail
