// How those behave that the server has no power over: its clients, and who sets the wall clock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/disk.h"
#include "simulator/talker.h"

namespace carillon::simulator {

// How a client treats its connection.
struct Manners {
  Role role = Role::kAnybody;
  std::uint64_t ahead = 1;        // commands that it sends before it has read the replies
  std::size_t piece = SIZE_MAX;   // bytes that arrive at once, at most
  bool reads = true;              // if not, replies pile up
  std::uint64_t leaves_in = 500;  // in one of this many turns it hangs up, perhaps in mid-command
};

Manners random_manners(Random& random);

// How far the wall clock is ahead of the right time after it was set, in ns: by little or much,
// behind if negative, often 0.
std::int64_t random_error(Random& random);

}  // namespace carillon::simulator
