// How Changes are written in the log: as the entries of a sorted store that they put and erase. The
// same bytes are applied to the state, at once and, after a crash, again.
//
//   std::string bytes;
//   encode_changes(changes, bytes);
//   for_each_entry(bytes, [](const Entry& entry) { ... });
//
//   change := version:u8 field*, each field bytes with the tag (tagged_fields.h)
//     2 * family + 1    a put: varint(size of the key) key value
//     2 * family + 2    an erasure: key
//
// A tag that is not known is refused: it stands for a change that only a newer version can make,
// and without it the changes behind it would make another state. Within a value, fields that are
// not known are kept. record_keys.h says which keys there are, record_values.h how their values
// are written.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/store.h"
#include "queue/store/state/state_options.h"

namespace carillon::queue {

// A put, or, without a value, an erasure.
struct Entry {
  Family family = kMeta;
  std::string_view key;
  std::optional<std::string_view> value = {};
};

// Writes `changes` in place of what `bytes` held.
void encode_changes(const Changes& changes, std::string& bytes);

// Writes a change without entries in place of what `bytes` held, and adds one to a change.
void begin_change(std::string& bytes);
void append_entry(std::string& bytes, const Entry& entry);

// Calls `each` for the entries in their order; they are views into `bytes`. Throws StoreDamage at
// the first bytes that are not as written above; by then it has called `each` for the entries
// before.
void for_each_entry(std::string_view bytes, const std::function<void(const Entry&)>& each);

}  // namespace carillon::queue
