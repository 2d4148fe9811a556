// Times syncs, and logs when one keeps clients waiting for a second or more. The event loop asks it
// once a turn, and once more before it requests a sync.
#pragma once

#include <cstdint>
#include <optional>

#include "base/log_throttle.h"
#include "carillon/queue/store.h"

namespace carillon::server {

class SlowSyncs {
 public:
  // At `mono_ns` (ns of the monotonic clock) syncs are requested up to `requested`, and are done up
  // to `durable`. If the sync that is being timed is done, returns how long it took, in ns, and
  // times another one from then on; otherwise returns none. Cheap.
  [[nodiscard]] std::optional<std::uint64_t> observe(std::uint64_t mono_ns,
                                                     queue::Sequence requested,
                                                     queue::Sequence durable);

 private:
  struct Pending {
    queue::Sequence sequence;
    std::uint64_t since_ns;
  };

  // One request that is not done. Only one is timed at a time; it stands for all.
  std::optional<Pending> pending_;
  base::LogThrottle throttle_;
};

}  // namespace carillon::server
