// SlotPosition: the level and the slot in which a timer sits on a wheel.
#pragma once

#include <cstddef>

namespace carillon {

// Level 0 is the one whose slots are one tick wide. On each level, slots are numbered from 0.
struct SlotPosition {
  unsigned level = 0;
  std::size_t slot = 0;

  friend bool operator==(const SlotPosition&, const SlotPosition&) = default;
};

}  // namespace carillon
