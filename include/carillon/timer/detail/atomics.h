// MachineAtomics: the atomics of the timer service's lock-free parts. They take them as a template
// parameter, so that tests/timer/interleaving can use a model instead and run every interleaving.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace carillon::detail {

struct MachineAtomics {
  template <class T>
  using Atomic = std::atomic<T>;

  // One wait for another thread, which has only a few instructions left to do. The other thread may
  // have been preempted, by the waiting thread even if that is a real-time thread: a yield lets
  // nothing of lower priority run. So the waiting thread soon sleeps.
  class Patience {
   public:
    void wait() noexcept {
      if (++waits_ <= kYields) return std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }

   private:
    static constexpr unsigned kYields = 16;
    unsigned waits_ = 0;
  };
};

}  // namespace carillon::detail
