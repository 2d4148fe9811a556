// What fork() needs of the timer layer: services that find out that their threads are not in the
// child, and locks of the whole process that no thread of the parent holds there for ever.
//
//   forks_ = (watch_forks(), fork_count());          // before the service's threads are started
//   ...
//   if (fork_count() != forks_) throw TimersForked();
//
// Thread safety: any thread may call everything at any time.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace carillon::detail {

extern std::atomic<std::uint32_t> forks_seen;

// From the first call on, forks are counted.
void watch_forks() noexcept;

// How many forks lie between the process that called watch_forks() first and this one. One load.
inline std::uint32_t fork_count() noexcept {
  return forks_seen.load(std::memory_order_relaxed);
}

// While the process forks, the calling thread holds the mutex that `mutex()` returns, so that no
// other thread does. REQUIRES: the mutex is never destroyed.
template <auto mutex>
void hold_during_forks() noexcept {
  ::pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); }, [] { mutex().unlock(); });
}

}  // namespace carillon::detail
