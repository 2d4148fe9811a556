// The time as its owner reads it and hands it to the engine, which has no clock of its own.
#pragma once

#include <cstdint>

namespace carillon::queue {

// One reading of both clocks. Read the wall clock first: then the pair, put together later, never
// runs ahead of it.
struct Now {
  std::uint64_t utc_ns =
      0;  // since 1970-01-01T00:00:00Z; it may be set back or forward at any time
  std::uint64_t mono_ns = 0;  // since any fixed moment; never runs back
};

}  // namespace carillon::queue
