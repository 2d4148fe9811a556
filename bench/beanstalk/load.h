// What the load program (load.cpp) is asked to do; the command line sets it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace carillon::bench {

struct Load {
  std::string phase;
  bool redis = false;
  bool http = false;
  bool batches = false;  // puts that are sent together are one request of HTTP
  std::string host = "127.0.0.1";
  std::uint16_t port = 11'300;
  std::size_t connections = 1;
  std::size_t pipeline = 1;
  std::size_t jobs = 20'000;
  std::size_t count = 1'000;      // how many of the jobs to cancel
  double seconds = 1e9;           // for the phase, at most
  std::uint64_t least_delay = 0;  // of puts, in seconds
  std::uint64_t most_delay = 0;
  double rate = 20'000;      // puts per second of steady load
  std::size_t workers = 64;  // connections that reserve and delete, at steady load
};

// Returns the time in UTC, in microseconds.
inline std::uint64_t utc_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace carillon::bench
