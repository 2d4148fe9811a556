// The memory and CPU time that this process uses, and how many descriptors it may have.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace gateway {

using Clock = std::chrono::steady_clock;

std::size_t resident_kib();
double cpu_seconds();

inline double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Raises the soft limit of open descriptors to the hard one. Returns how many sockets there is room
// for.
std::size_t raise_descriptor_limit();

// The advice to print when the hard limit is too low: how to raise it.
std::string how_to_raise_the_limit();

}  // namespace gateway
