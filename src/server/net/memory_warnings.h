// Logs when jobs stay on disk because memory has no room for them, and when reserved jobs take as
// much memory as they may. The event loop asks it once a turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "carillon/queue/engine.h"

namespace carillon::server {

class MemoryWarnings {
 public:
  explicit MemoryWarnings(const queue::EngineOptions& limits) : limits_(limits) {}

  // Call it once a turn, at `mono_ns` (ns of the monotonic clock). It checks once a second.
  void observe(std::uint64_t mono_ns, const queue::Engine& engine);

 private:
  static void look(bool& full, bool now_full, std::size_t used, std::size_t most,
                   std::string_view line);

  queue::EngineOptions limits_;
  std::uint64_t looked_ns_ = 0;
  bool loaded_is_full_ = false;
  bool reserved_is_full_ = false;
};

}  // namespace carillon::server
