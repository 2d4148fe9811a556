// MemoryWarnings (memory_warnings.h).
#include "server/net/memory_warnings.h"

#include <spdlog/spdlog.h>

namespace carillon::server {

void MemoryWarnings::observe(std::uint64_t mono_ns, const queue::Engine& engine) {
  constexpr std::uint64_t kPeriodNs = 1'000'000'000;
  if (mono_ns - looked_ns_ < kPeriodNs) return;
  looked_ns_ = mono_ns;
  const queue::EngineStats stats = engine.stats();
  const std::size_t loaded = stats.jobs.loaded - stats.jobs.reserved;
  look(loaded_is_full_, stats.tubes_without_room > 0, loaded, limits_.max_loaded,
       "ready and delayed jobs are in memory, of {} at most (see --memory): tubes that have more "
       "keep them on disk until there is room");
  // A client may reserve as many jobs as are free, so one client alone can have half of them. So
  // half counts as full.
  const std::size_t reserved = stats.jobs.reserved;
  const std::size_t most = limits_.max_reserved;
  look(reserved_is_full_, reserved >= most / 2 - most / 20, reserved, most,
       "jobs are reserved, of {} at most (see --memory): clients that have many wait for more");
}

// Logs again only after three quarters were free meanwhile.
void MemoryWarnings::look(bool& full, bool now_full, std::size_t used, std::size_t most,
                          std::string_view line) {
  if (full) {
    full = now_full || used > most / 4;
  } else if (now_full) {
    full = true;
    spdlog::warn(fmt::runtime("{} " + std::string(line)), used, most);
  }
}

}  // namespace carillon::server
