// Occupancy: one bit per slot, and one bit per word of those. They find the first non-empty slot
// without visiting the empty ones.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "carillon/require.h"

namespace carillon::detail {

// A bit is set if its slot is not empty. Every operation is O(1) for up to 4096 slots, and
// O(slots / 4096) beyond.
template <std::size_t kSlots>
class Occupancy {
 public:
  bool test(std::size_t slot) const noexcept { return (words_[slot / 64] >> (slot % 64) & 1) != 0; }

  void set(std::size_t slot) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    count_ += (words_[slot / 64] & bit) == 0;
    words_[slot / 64] |= bit;
    summary_[slot / 4096] |= std::uint64_t{1} << (slot / 64 % 64);
  }

  void clear(std::size_t slot) noexcept {
    if (!test(slot)) return;
    --count_;
    words_[slot / 64] ^= std::uint64_t{1} << (slot % 64);
    if (words_[slot / 64] == 0) summary_[slot / 4096] ^= std::uint64_t{1} << (slot / 64 % 64);
  }

  bool none() const noexcept { return count_ == 0; }
  std::size_t count() const noexcept { return count_; }  // non-empty slots

  // The first non-empty slot. REQUIRES: !none().
  std::size_t first() const noexcept {
    CARILLON_REQUIRE_DEBUG(!none());
    std::size_t block = 0;
    while (summary_[block] == 0) ++block;
    const std::size_t word = block * 64 + lowest_bit(summary_[block]);
    return word * 64 + lowest_bit(words_[word]);
  }

  // The first non-empty slot at or after `from`; kSlots if all of these are empty.
  std::size_t next(std::size_t from) const noexcept {
    if (from >= kSlots) return kSlots;
    const std::size_t word = from / 64;
    const std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (from % 64));
    if (bits != 0) return word * 64 + lowest_bit(bits);
    std::size_t block = (word + 1) / 64;
    if (block == summary_.size()) return kSlots;
    std::uint64_t words = summary_[block] & (~std::uint64_t{0} << ((word + 1) % 64));
    while (words == 0) {
      if (++block == summary_.size()) return kSlots;
      words = summary_[block];
    }
    const std::size_t found = block * 64 + lowest_bit(words);
    return found * 64 + lowest_bit(words_[found]);
  }

 private:
  static constexpr std::size_t kWords = (kSlots + 63) / 64;

  static std::size_t lowest_bit(std::uint64_t word) noexcept {
    return static_cast<std::size_t>(std::countr_zero(word));
  }

  std::array<std::uint64_t, (kWords + 63) / 64> summary_{};  // which words are not zero
  std::array<std::uint64_t, kWords> words_{};
  std::size_t count_ = 0;
};

}  // namespace carillon::detail
