// IdleId: the name of a connection in an IdleTracker (idle_tracker.h).
#pragma once

#include <cstdint>

namespace carillon {

// The name of one connection of one tracker: a value, harmless once its connection is gone.
// IdleId{} names none.
struct IdleId {
  std::uint32_t index = 0;  // the place in the tracker
  std::uint32_t generation =
      0;  // odd: twice the number of connections that this place has held, less one

  friend bool operator==(const IdleId&, const IdleId&) = default;
};

}  // namespace carillon
