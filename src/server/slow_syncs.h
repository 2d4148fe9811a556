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
  // to `durable`. Returns how long the sync took that was timed, in ns, if it is done; or none.
  // Another one is timed from then on. Cheap.
  [[nodiscard]] std::optional<std::uint64_t> observe(std::uint64_t mono_ns,
                                                     queue::Sequence requested,
                                                     queue::Sequence durable);

 private:
  struct Pending {
    queue::Sequence sequence;
    std::uint64_t since_ns;
  };

  // One request that is not done. It stands for all: only one is timed at a time.
  std::optional<Pending> pending_;
  base::LogThrottle throttle_;
};

}  // namespace carillon::server
