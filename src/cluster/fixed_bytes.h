// Numbers as little-endian bytes, one after another.
//
//   put(bytes, epoch);
//   ...
//   FixedReader from(bytes);
//   from.get(epoch);
//   if (!from.good()) ...            // the bytes end too early
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace carillon::cluster {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

template <typename Plain>
void put(std::string& bytes, const Plain& number) {
  static_assert(std::has_unique_object_representations_v<Plain>);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Takes numbers from the front of `bytes`, and notes if they end too early.
class FixedReader {
 public:
  explicit FixedReader(std::string_view bytes) : bytes_(bytes) {}

  // Leaves `number` as it is if the bytes end too early.
  template <typename Plain>
  void get(Plain& number) {
    static_assert(std::has_unique_object_representations_v<Plain>);
    const std::string_view from = take(sizeof number);
    if (good_) std::memcpy(&number, from.data(), sizeof number);
  }
  std::string_view take(std::size_t size) {
    good_ = good_ && bytes_.size() >= size;
    if (!good_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace carillon::cluster
