// A world: a disk, and one server after another that uses it, each until it stops or dies.
//
//   const WorldResult result = run_world(seed, 100'000);      // throws Violation
//
// The same seed gives the same world, as long as the program is the same, and the world is the
// first one of its process (threads and memory are as they were left).
#pragma once

#include <cstdint>
#include <string>

namespace carillon::simulator {

struct WorldResult {
  std::uint64_t steps = 0;
  std::uint64_t starts = 0;
  std::uint64_t power_losses = 0;
  std::uint64_t kills = 0;
  std::uint64_t stops = 0;
  std::uint64_t failures = 0;      // failures of the store, after which the server stopped
  std::uint64_t losses = 0;        // starts after which changes that nobody knew of were missing
  std::uint64_t failed_calls = 0;  // calls of the disk that have failed
  std::uint64_t reads = 0;         // reads of the disk
  std::uint64_t changes = 0;       // changes of the disk
  std::uint64_t syncs = 0;
  std::uint64_t longest_wait_ns =
      0;  // the longest wait of a client for its turn, while the server worked
  std::uint64_t virtual_ms = 0;
  std::uint64_t digest = 0;  // digest of all replies, in their order

  friend bool operator==(const WorldResult&, const WorldResult&) = default;
};

// `at`, if it is not null, always has the number of steps so far.
WorldResult run_world(std::uint64_t seed, std::uint64_t steps, std::uint64_t* at = nullptr);

}  // namespace carillon::simulator
