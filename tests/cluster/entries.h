// What all models of a shared log do with the entries that are sent to them.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/role.h"

namespace carillon::cluster {

// Returns a hash of `value` and of what `seed` is the hash of.
inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15U;
  x ^= x >> 32;
  return x * 0xd6e8feb86659fd93U ^ x >> 29;
}

inline bool is_claim(const Entry& entry) {
  return entry.kind == Entry::Kind::kClaim;
}

// Returns the chain after `entry`. `content` is a hash of the entry's changes.
Chain chain_after(const Chain& before, const Entry& entry, std::uint64_t content);

// Returns what a reader whose chain is `chain` finds at `position`, if the log has stored what was
// `sent` there. A window has one change.
Entry found_at(Position position, const Chain& chain, const Entry& sent, std::uint64_t content);

// "Conditional" or "Unconditional"
std::string name_of(Writes writes);

}  // namespace carillon::cluster
