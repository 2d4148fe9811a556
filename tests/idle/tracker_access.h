// TrackerAccess: the inside of an IdleTracker, for tests of what no caller can bring about at will.
#pragma once

#include <cstdint>

#include "carillon/idle/idle_tracker.h"

namespace carillon::detail {

struct TrackerAccess {
  // Stores what a touch of `id` at `tick` stores that looked at the stamp before the connection was
  // removed, and only now goes on.
  template <class Tracker>
  static void store_late(Tracker& tracker, IdleId id, Tick tick) {
    tracker.core_.blocks_.stamp(id.index).store(Stamp::of(tick) | id.generation);
  }
};

}  // namespace carillon::detail
