// MachineAtomics: the atomics of the timer service's lock-free parts. They take them as a template
// parameter, so that tests/timer/interleaving can use a model instead and run every interleaving.
#pragma once

#include <atomic>
#include <thread>

namespace carillon::detail {

struct MachineAtomics {
  template <class T>
  using Atomic = std::atomic<T>;

  // Lets another thread go on, which must do so first.
  static void yield() noexcept { std::this_thread::yield(); }
};

}  // namespace carillon::detail
