// How claims and windows are written in a shared log, and the chain over them.
//
//   entry := "CAR1" kind:u8 log:16 epoch:u64 owner:16 first:u64 end:u64 before:32 utc:u64 change*
//   change := size:u32 bytes
//
// Numbers are little-endian. A claim has no changes. A window has `end - first` of them; the first
// has the number `first`.
//
//   chain_after(chain, bytes) := SHA-256(chain bytes)
//
// Thread safety: functions only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/role.h"

namespace carillon::cluster {

// Adds a change to those of a window.
void add_change(std::string& changes, std::string_view change);

// The first changes among those that add_change() has made: at least one, and no more than `most`
// bytes otherwise. REQUIRES: there is one.
struct Front {
  std::size_t bytes = 0;
  std::size_t changes = 0;
};
Front first_changes(std::string_view changes, std::size_t most);

// Returns the bytes of the entry; `changes` is what add_change() has made.
std::string encode_entry(const Entry& entry, std::string_view changes);

struct Decoded {
  // Without position and after.
  Entry entry;
  std::vector<std::string_view> changes;  // views into the bytes
};

// Returns nothing if the bytes are no entry.
std::optional<Decoded> decode_entry(std::string_view bytes);

// Returns the chain after an entry with these bytes. O(bytes).
Chain chain_after(const Chain& before, std::string_view bytes);

// A chain as the 32 bytes that are hashed and stored, and back. REQUIRES: 32 bytes.
std::string bytes_of(const Chain& chain);
Chain chain_of(std::string_view bytes);

// 16 bytes: `high` and then `low`.
std::string bytes_of(const Owner& owner);
std::string bytes_of(const LogId& log);

}  // namespace carillon::cluster
