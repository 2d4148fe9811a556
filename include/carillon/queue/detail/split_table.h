// A hash table that never stops its user for long: it consists of 256 small ones.
//
//   SplitTable<std::unordered_map<JobId, Job>> jobs;
//   Job& job = jobs.try_emplace(7);
//   jobs.find(7) == &job;
//
// A usual hash table moves all its elements at once when it grows: with a million jobs, clients
// would wait for 20 to 70 ms, and the new table would take tens of MiB. Here the hash of an element
// names one of the small tables, the *parts*, and each part grows by itself, in a 256th of the time
// and the memory. The parts do not grow together, either: while ids are added in their order, one
// part is filled after the other, 256 ids each time.
//
// `Table` is any hash map with `try_emplace`. A reference to a value is valid for as long as one
// into `Table` would be.
//
// O(1). Memory: about 14 KiB if it is empty. Thread safety: as for the containers of the standard
// library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "carillon/require.h"

namespace carillon::queue::detail {

template <class Table>
class SplitTable {
 public:
  using Key = typename Table::key_type;
  using Value = typename Table::mapped_type;

  std::size_t size() const { return size_; }

  // These return nullptr if there is no such key.
  Value* find(const Key& key) {
    Table& part = parts_[part_of(key)];
    const auto found = part.find(key);
    return found == part.end() ? nullptr : &found->second;
  }
  const Value* find(const Key& key) const {
    const Table& part = parts_[part_of(key)];
    const auto found = part.find(key);
    return found == part.end() ? nullptr : &found->second;
  }

  // Returns the value of the key. If the key has no value yet, makes it from `args`. When it
  // throws, nothing has changed.
  template <class... Args>
  Value& try_emplace(const Key& key, Args&&... args) {
    const auto [at, is_new] = parts_[part_of(key)].try_emplace(key, std::forward<Args>(args)...);
    if (is_new) ++size_;
    return at->second;
  }

  // Returns false if there is no such key. Takes a copy, because the key may be a part of the
  // element.
  bool erase(Key key) {
    const bool erased = parts_[part_of(key)].erase(key) > 0;
    if (erased) --size_;
    return erased;
  }

  // Calls `call(key, value)` for each element, in any order. REQUIRES: `call` neither adds nor
  // erases.
  template <class Call>
  void for_each(Call call) const {
    const std::size_t before = size_;
    for (const Table& part : parts_) {
      for (const auto& [key, value] : part) call(key, value);
    }
    CARILLON_REQUIRE(size_ == before, size_, before);
  }

 private:
  // 256 consecutive numbers are in one part, because the hash of a number is the number itself.
  // Commands often use neighbours one after the other: another part each time would take several
  // times as long, because it would not be in the processor's caches. The multiplication spreads
  // the other bits over its upper ones, which name the part.
  static std::size_t part_of(const Key& key) {
    return (std::uint64_t{typename Table::hasher()(key) >> 8} * 0x9E37'79B9'7F4A'7C15) >> 56;
  }

  std::array<Table, 256> parts_;
  std::size_t size_ = 0;
};

}  // namespace carillon::queue::detail
