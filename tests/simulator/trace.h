// What happens in a world, for whoever wants to see it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "simulator/clock.h"

namespace carillon::simulator {

// With CARILLON_TRACE in the environment all that happens is printed.
inline void trace(std::uint64_t client, std::string_view what, std::string_view of) {
  static const bool wanted = std::getenv("CARILLON_TRACE") != nullptr;
  if (!wanted) return;
  std::printf("%.6f client %llu %.*s %.*s\n",
              static_cast<double>(virtual_time().mono_ns) / 1'000'000,
              static_cast<unsigned long long>(client), static_cast<int>(what.size()), what.data(),
              static_cast<int>(std::min(of.find('\r'), of.size())), of.data());
}

}  // namespace carillon::simulator
