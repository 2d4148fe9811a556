// The key-value writes (puts and erasures), as bytes, of changes that RocksDB does not have yet.
//
//   std::string bytes;
//   append_put(bytes, kJobs, key, value);
//   append_erase(bytes, kIndex, other_key);
//   for_each_entry(bytes, [](const Entry& entry) { ... });
//
//   entry := value_size:u32 key_size:u16 family:u8 is_put:u8 key value
//            (numbers in the byte order of this machine)
//
// RocksDB's own batches would do, but take twice as long to append to. An entry with a key of less
// than 128 bytes is never smaller here than there, so room in the database's log can be taken by
// the size of these.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "carillon/queue/store.h"
#include "queue/store/rocks_options.h"

namespace carillon::queue {

struct Entry {
  Family family;
  bool is_put;
  std::string_view key;
  std::string_view value;  // of a put
};

struct EntryHead {
  std::uint32_t value_size = 0;
  std::uint16_t key_size = 0;
  std::uint8_t family = 0;
  std::uint8_t is_put = 0;
};
static_assert(sizeof(EntryHead) == 8);

inline void append_entry(std::string& bytes, const Entry& entry) {
  const EntryHead head{.value_size = static_cast<std::uint32_t>(entry.value.size()),
                       .key_size = static_cast<std::uint16_t>(entry.key.size()),
                       .family = static_cast<std::uint8_t>(entry.family),
                       .is_put = entry.is_put};
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head)
      .append(entry.key)
      .append(entry.value);
}
// REQUIRES: a key of less than 64 KiB, a value of less than 4 GiB.
inline void append_put(std::string& bytes, Family family, std::string_view key,
                       std::string_view value) {
  append_entry(bytes, {family, true, key, value});
}
inline void append_erase(std::string& bytes, Family family, std::string_view key) {
  append_entry(bytes, {family, false, key, {}});
}

// In their order. Throws StoreError when it is not entries, and has called `each` for those before.
template <typename Each>
void for_each_entry(std::string_view bytes, Each&& each) {
  while (!bytes.empty()) {
    EntryHead head;
    if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
    const std::size_t size = sizeof head + head.key_size + head.value_size;
    if (bytes.size() < size || head.family >= kFamilies)
      throw StoreError("there are bytes that are no change");
    each(Entry{.family = static_cast<Family>(head.family),
               .is_put = head.is_put != 0,
               .key = bytes.substr(sizeof head, head.key_size),
               .value = bytes.substr(sizeof head + head.key_size, head.value_size)});
    bytes.remove_prefix(size);
  }
}

}  // namespace carillon::queue
