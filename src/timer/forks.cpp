#include "timer/forks.h"

namespace carillon::detail {

constinit std::atomic<std::uint32_t> forks_seen{0};

void watch_forks() noexcept {
  static const int registered = ::pthread_atfork(
      nullptr, nullptr, [] { forks_seen.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
}

}  // namespace carillon::detail
