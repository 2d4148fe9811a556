// StampTable: the stamps of a tracker's connections, one after the other. It grows where it is, so that a touch, on
// whatever thread, finds a stamp by its index alone.
//
// Beside the store itself, what a touch costs is the way to the stamp. So the table takes addresses for every index that
// there can be, 32 GiB, but memory only for those in use: the rest can be read, as zeros, and not written, and neither
// costs memory nor counts as committed (a limit on addresses, `ulimit -v`, must leave room for it).
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace carillon::detail {

// Thread safety: grow() from one thread at a time; the rest from any thread, also meanwhile.
class StampTable {
 public:
  using Word = std::atomic<std::uint64_t>;
  static_assert(sizeof(Word) == 8 && Word::is_always_lock_free, "zeros of the system are words of value 0");

  // Throws std::bad_alloc if there are no addresses left.
  StampTable() : words_(reserve()) {}
  StampTable(const StampTable&) = delete;
  StampTable& operator=(const StampTable&) = delete;
  ~StampTable() { munmap(words_, kAddresses); }

  // Indices below size() can be written, all others only read: 0.
  Word& operator[](std::uint32_t index) noexcept { return words_[index]; }
  const Word& operator[](std::uint32_t index) const noexcept { return words_[index]; }

  // `size` words, of which the new ones are 0. REQUIRES: size >= size(), a multiple of 16384. Throws std::bad_alloc with
  // nothing changed.
  void grow(std::size_t size) {
    Word* const fresh = words_ + size_;
    if (mprotect(fresh, (size - size_) * sizeof(Word), PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::uninitialized_value_construct_n(fresh, size - size_);
    size_ = size;
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(Word); }

 private:
  static constexpr std::size_t kAddresses = (std::size_t{1} << 32) * sizeof(Word);

  static Word* reserve() {
    void* const addresses = mmap(nullptr, kAddresses, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (addresses == MAP_FAILED) throw std::bad_alloc();
    return static_cast<Word*>(addresses);
  }

  Word* const words_;
  std::size_t size_ = 0;  // of the owner
};

}  // namespace carillon::detail
