// The memory of the process: how it is shared out, between jobs, the store, connections and the
// rest, so that no client can make the kernel end the process; and a reserve for the moment in
// which the system gives no more. What exceeds its share waits or is refused (docs/operations.md).
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

// --- Memory that is set aside for the moment in which the system gives no more, so that the
// command that is under way can be carried out to its end, and later ones can be refused.
//
//   MemoryReserve reserve;                       // one for the process
//   ...                                          // an allocation fails: the reserve is given up,
//                                                // and the allocation succeeds
//   if (reserve.is_used()) ...                   // refuse what fills the queue
//   reserve.renew();                             // once a turn: sets it aside again if it can
//
// Why: std::bad_alloc in the middle of a command could leave the engine's memory different from its
// store, and would end the process. A command and what it sets in motion take far less than the
// reserve, also when the engine's tables grow: they grow in small steps. If the reserve is used up
// too, the process ends; what was acknowledged is on disk.
//
// An allocation fails only under a limit of the address space (`ulimit -v`, LimitAS), or on a
// system that never promises more than it has (vm.overcommit_memory=2). Elsewhere the kernel ends a
// process that takes too much.

// Thread safety: an allocation may fail in any thread. The methods belong to one thread.
class MemoryReserve {
 public:
  static constexpr std::size_t kBytes = 16 << 20;

  // Sets the reserve aside, and installs the handler of failed allocations (std::set_new_handler).
  MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;
  ~MemoryReserve();

  // Returns true if the reserve was given up and is not set aside again.
  bool is_used() const;

  // Sets it aside again if it was given up, and the system has enough memory. One system call then;
  // otherwise no system call.
  void renew();
};

}  // namespace carillon::server
