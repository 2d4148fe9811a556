// StampTable: the stamps of a tracker's connections in one array. The array grows in place, so a
// touch, on any thread, finds a stamp by its index alone.
//
// Besides the store itself, a touch costs only the way to the stamp. So the table reserves the
// addresses of all the words that it may ever have, and takes memory only for those in use. The
// rest can be read, as zeros, but not written; it counts neither as committed nor as resident. It
// does count where a process limits its addresses (`ulimit -v`) or locks all its memory
// (`mlockall`).
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "carillon/require.h"
#include "carillon/wheel/exceptions.h"

namespace carillon::detail {

// Thread safety: has() and operator[] from any thread at any time; the rest from one thread at a
// time.
class StampTable {
 public:
  using Word = std::atomic<std::uint64_t>;
  static_assert(sizeof(Word) == 8 && Word::is_always_lock_free,
                "zeroed pages from the system must be words of value 0");
  static_assert(sizeof(void*) == 8, "up to 16 GiB of addresses need 64 bits");

  // Words by which the table grows: 128 KiB, a whole number of pages on every system.
  static constexpr std::size_t kStep = 16'384;

  struct NoAddresses : std::bad_alloc {
    const char* what() const noexcept override {
      return "carillon: an IdleTracker gets no addresses for its MostConnections, 8 bytes each and "
             "8 MiB (see `ulimit -v` and `ulimit -l`)";
    }
  };

  // Reserves addresses for `limit` words, at most 2^32, rounded up to kStep. Throws NoAddresses.
  explicit StampTable(std::size_t limit)
      : limit_((limit + kStep - 1) / kStep * kStep), words_(reserve(limit_ * sizeof(Word))) {}
  StampTable(const StampTable&) = delete;
  StampTable& operator=(const StampTable&) = delete;
  ~StampTable() { munmap(words_, limit_ * sizeof(Word)); }

  // The number of words for which there are addresses.
  std::size_t limit() const noexcept { return limit_; }
  bool has(std::uint32_t index) const noexcept { return index < limit_; }

  // Words with an index below size() can be written. All others can only be read, and are 0.
  // REQUIRES: has(index).
  Word& operator[](std::uint32_t index) noexcept {
    CARILLON_REQUIRE_DEBUG(has(index), index, limit_);
    return words_[index];
  }
  const Word& operator[](std::uint32_t index) const noexcept {
    CARILLON_REQUIRE_DEBUG(has(index), index, limit_);
    return words_[index];
  }

  // Grows to `size` words; the new ones are 0. Throws std::bad_alloc; nothing has changed then.
  // REQUIRES: size() <= size <= limit(), and it is a multiple of kStep.
  void grow(std::size_t size) {
    CARILLON_REQUIRE(size_ <= size && size <= limit_ && size % kStep == 0, size, size_, limit_);
    Word* const fresh = words_ + size_;
    const std::size_t bytes = (size - size_) * sizeof(Word);
    if (mprotect(fresh, bytes, PROT_READ | PROT_WRITE) != 0) CARILLON_THROW std::bad_alloc();
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
  static Word* reserve(std::size_t bytes) {
    void* const addresses =
        mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (addresses == MAP_FAILED) CARILLON_THROW NoAddresses();
#if defined(MADV_DONTDUMP)
    // Keeps unused addresses out of core dumps. If it fails, dumps contain them.
    static_cast<void>(madvise(addresses, bytes, MADV_DONTDUMP));
#endif
    return static_cast<Word*>(addresses);
  }

  const std::size_t limit_;  // words
  Word* const words_;
  std::size_t size_ = 0;
};

}  // namespace carillon::detail
