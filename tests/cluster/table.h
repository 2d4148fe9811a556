// Gives each different value a number, in the order in which they come, so that a world of the
// explorer is a few small numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace carillon::cluster::explorer {

// T is Role, Mark or Sent (world.h).
template <class T>
class Table {
 public:
  // Returns the index of `value`, a new one if it is new.
  std::size_t index(const T& value);
  const T& operator[](std::size_t index) const { return values_[index]; }
  std::size_t size() const { return values_.size(); }

 private:
  std::vector<T> values_;
  std::unordered_multimap<std::uint64_t, std::size_t> found_;  // by the hash of the value
};

}  // namespace carillon::cluster::explorer
