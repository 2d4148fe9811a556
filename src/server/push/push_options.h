// How jobs may be pushed to endpoints, as the command line and the machine say (pusher.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/push/address_guard.h"

namespace carillon::server::push {

// The most for all endpoints together: jobs that are being pushed (twice as many if each endpoint
// has one of its own), connections that are kept open, trials, and sockets for all of these.
inline constexpr std::size_t kMostInFlight = 256;
inline constexpr std::size_t kMostKept = 128;
inline constexpr std::size_t kMostTrials = 4;
inline constexpr std::size_t kMostSockets = 2 * kMostInFlight + kMostKept + kMostTrials;
inline constexpr std::size_t kFewestSockets = 8;

struct PushOptions {
  // Networks to which jobs may be pushed, though they are not public.
  std::vector<Network> allowed = {};
  // A file of certificates (PEM) that are trusted; empty: those of the system.
  std::string ca_file = {};
  // How many sockets there may be, kFewestSockets or more.
  std::size_t sockets = kMostSockets;
};

}  // namespace carillon::server::push
