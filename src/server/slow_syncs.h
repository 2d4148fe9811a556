// Notices syncs that keep clients waiting for seconds, and says so in the log.
#pragma once

#include <cstdint>
#include <optional>

#include "carillon/queue/store.h"
#include "server/log_throttle.h"

namespace carillon::server {

class SlowSyncs {
 public:
  // To be called once a turn: up to `requested` syncs were asked for, and all up to `durable` is
  // done. Cheap.
  void observe(std::uint64_t mono_ns, queue::Sequence requested, queue::Sequence durable);

 private:
  struct Pending {
    queue::Sequence sequence;
    std::uint64_t since_ns;
  };

  std::optional<Pending> pending_;  // one request that is not done, to stand for all
  LogThrottle throttle_;
};

}  // namespace carillon::server
