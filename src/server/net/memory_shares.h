// How the memory that the process may use is shared out, between jobs, the store, connections and
// the rest, so that no client can make the kernel end the process. What exceeds its share waits or
// is refused (docs/operations.md).
//
//   const MemoryShares shares = share_memory(memory_limit() / 2, true);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace carillon::server {

// The least that share_memory() shares out (bytes).
inline constexpr std::uint64_t kLeastMemory = 128 << 20;

struct MemoryShares {
  std::size_t recent = 0;       // bytes; DiskStoreOptions::recent
  std::size_t read_cache = 0;   // bytes; DiskStoreOptions::read_cache
  std::size_t stored = 0;       // bytes of all jobs of a store in memory
  std::size_t loaded = 0;       // jobs; EngineOptions::max_loaded
  std::size_t reserved = 0;     // jobs; EngineOptions::max_reserved
  std::size_t tubes = 0;        // EngineOptions::max_tubes
  std::size_t schedules = 0;    // bytes; EngineOptions::max_schedule_bytes
  std::size_t connections = 0;  // bytes; ServiceOptions::memory
};

// Returns the memory that this process can have, in bytes: that of the machine, or what one of its
// control groups (cgroups, of version 1 or 2) allows if that is less. `root` is for tests: where
// /proc and /sys are.
std::uint64_t memory_limit(const std::string& root = "");

// Shares out `bytes`; if that is less than kLeastMemory, kLeastMemory.
MemoryShares share_memory(std::uint64_t bytes, bool on_disk);

}  // namespace carillon::server
