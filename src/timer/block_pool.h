// Which threads keep the timer blocks that they free, for the next timer: those that have taken a
// block, and the service's own. All others give each block to the depot of the process, which takes
// a mutex.
//
// A thread that keeps blocks gives them back when it ends. A thread that only frees some must not
// begin to keep them: it may be within dlclose(), in a static destructor that cancels a timer or
// stops a service, and the function that would give them back is about to go.
#pragma once

namespace carillon::detail {

// While it lives, the calling thread keeps blocks; its destructor gives them back, and the thread
// keeps none after that. The service's own threads have one on their stack: a thread_local object
// would take the lock of dlclose(), which may be waiting for this thread.
class KeepsBlocks {
 public:
  KeepsBlocks() noexcept;
  KeepsBlocks(const KeepsBlocks&) = delete;
  KeepsBlocks& operator=(const KeepsBlocks&) = delete;
  ~KeepsBlocks();
};

// While it lives, the calling thread does not begin to keep blocks if it takes some.
class KeepsNoBlocks {
 public:
  KeepsNoBlocks() noexcept;
  KeepsNoBlocks(const KeepsNoBlocks&) = delete;
  KeepsNoBlocks& operator=(const KeepsNoBlocks&) = delete;
  ~KeepsNoBlocks();

 private:
  const bool changed_;
};

}  // namespace carillon::detail
