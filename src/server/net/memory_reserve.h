// Memory that is set aside for the moment in which the system gives no more, so that the command
// that is under way can be carried out to its end, and later ones can be refused.
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
// process that takes too much: see memory_shares.h.
#pragma once

#include <cstddef>

namespace carillon::server {

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
