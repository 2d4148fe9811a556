// A world: a disk, and one server after another that uses it, each until it stops or dies.
//
//   const WorldResult result = run_world(seed, 100'000, Depth::kDisk);      // throws Violation
//
// There are two depths, with the same clients and the same model. Depth::kEngine has a store in
// memory, which loses nothing, in the place of the store on disk: so the engine does several times
// as much in the same time, and what fails is not the disk's fault.
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

enum class Depth : std::uint8_t { kDisk, kEngine };

// `at`, if it is not null, always has the number of steps so far.
WorldResult run_world(std::uint64_t seed, std::uint64_t steps, Depth depth,
                      std::uint64_t* at = nullptr);

}  // namespace carillon::simulator
