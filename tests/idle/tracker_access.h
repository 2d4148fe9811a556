// TrackerAccess: reaches into an IdleTracker, for tests of races that no caller can cause at will.
#pragma once

#include <cstdint>

#include "carillon/idle/idle_tracker.h"

namespace carillon::detail {

struct TrackerAccess {
  // Stores the stamp of a touch of `id` at `tick` whose thread read the old stamp before the
  // connection was removed, and was held up until now.
  template <class Tracker>
  static void store_late(Tracker& tracker, IdleId id, Tick tick) {
    tracker.core_.blocks_.stamp(id.index).store(Stamp::of(tick) | id.generation);
  }
};

}  // namespace carillon::detail
