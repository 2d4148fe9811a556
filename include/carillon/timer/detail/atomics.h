// What the lock-free parts of the timer service are made of, as a parameter of theirs: std::atomic,
// or in tests/timer/interleaving a model of it, under which every interleaving is run.
#pragma once

#include <atomic>
#include <thread>

namespace carillon::detail {

struct MachineAtomics {
  template <class T>
  using Atomic = std::atomic<T>;

  // Somebody else must go on first.
  static void yield() noexcept { std::this_thread::yield(); }
};

}  // namespace carillon::detail
