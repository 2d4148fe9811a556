// Occupancy: one bit per slot and one per level, to find the next non-empty slot without looking at the empty ones.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace carillon::detail {

template <unsigned kLevels, std::size_t kSlots>
class Occupancy {
 public:
  void set(std::size_t level, std::size_t slot) noexcept {
    if (test(level, slot)) return;
    ++count_;
    words_[level][slot / 64] |= bit(slot);
    levels_ |= 1U << level;
  }

  void clear(std::size_t level, std::size_t slot) noexcept {
    if (!test(level, slot)) return;
    --count_;
    words_[level][slot / 64] &= ~bit(slot);
    for (const std::uint64_t word : words_[level]) {
      if (word != 0) return;
    }
    levels_ &= ~(1U << level);
  }

  bool test(std::size_t level, std::size_t slot) const noexcept { return (words_[level][slot / 64] & bit(slot)) != 0; }

  std::size_t count() const noexcept { return count_; }  // non-empty slots

  bool none() const noexcept { return levels_ == 0; }

  // The lowest level with a non-empty slot. REQUIRES: !none().
  unsigned lowest_level() const noexcept { return static_cast<unsigned>(std::countr_zero(levels_)); }

  bool any(std::size_t level) const noexcept { return (levels_ >> level & 1U) != 0; }

  // The first non-empty slot of `level` at or after `from`, or kSlots.
  std::size_t first(std::size_t level, std::size_t from = 0) const noexcept {
    if (from >= kSlots) return kSlots;
    std::size_t index = from / 64;
    std::uint64_t word = words_[level][index] & (~std::uint64_t{0} << (from % 64));
    while (word == 0) {
      if (++index == kWords) return kSlots;
      word = words_[level][index];
    }
    return index * 64 + static_cast<std::size_t>(std::countr_zero(word));
  }

 private:
  static_assert(kLevels <= 32);
  static constexpr std::size_t kWords = (kSlots + 63) / 64;

  static constexpr std::uint64_t bit(std::size_t slot) noexcept { return std::uint64_t{1} << (slot % 64); }

  std::array<std::array<std::uint64_t, kWords>, kLevels> words_{};
  std::uint32_t levels_ = 0;
  std::size_t count_ = 0;
};

}  // namespace carillon::detail
