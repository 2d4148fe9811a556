// The time, as the engine's owner reads it and hands it to the engine. The engine has no clock of
// its own, so tests can run on a virtual one.
//
//   const auto utc = std::chrono::system_clock::now();    // the wall clock first: see Now
//   const auto mono = std::chrono::steady_clock::now();
#pragma once

#include <cstdint>

namespace carillon::queue {

// One reading of both clocks. Read the wall clock first. If the thread is held up between the two
// readings, the engine's UTC is then late. The other way round it could run ahead of the wall
// clock, and a job would be handed out early.
struct Now {
  // Nanoseconds since 1970-01-01T00:00:00Z. May be set back or forward at any time.
  std::uint64_t utc_ns = 0;
  // Nanoseconds since any fixed moment. Never runs back.
  std::uint64_t mono_ns = 0;
};

}  // namespace carillon::queue
