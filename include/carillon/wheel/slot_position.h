// SlotPosition: where on a wheel a timer sits.
#pragma once

#include <cstddef>

namespace carillon {

// Level 0 is the one whose slots are one tick wide; slots are numbered from 0 on each level.
struct SlotPosition {
  unsigned level = 0;
  std::size_t slot = 0;

  friend bool operator==(const SlotPosition&, const SlotPosition&) = default;
};

}  // namespace carillon
