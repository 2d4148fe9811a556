// FullShares (full_shares.h).
#include "server/full_shares.h"

#include <spdlog/spdlog.h>

namespace carillon::server {

void FullShares::observe(std::uint64_t mono_ns, const queue::Engine& engine) {
  constexpr std::uint64_t kPeriodNs = 1'000'000'000;
  if (mono_ns - looked_ns_ < kPeriodNs) return;
  looked_ns_ = mono_ns;
  const queue::JobCounts jobs = engine.stats().jobs;
  look(loaded_is_full_, jobs.loaded - jobs.reserved, limits_.max_loaded,
       "ready and delayed jobs are in memory, of {} at most (see --memory): others wait on disk");
  look(reserved_is_full_, jobs.reserved, limits_.max_reserved,
       "jobs are reserved, of {} at most (see --memory): clients that have many wait for more");
}

// A tube alone may have half of what there is in memory. So half is full. There is a line again
// only when a quarter was left meanwhile.
void FullShares::look(bool& full, std::size_t used, std::size_t most, std::string_view line) {
  if (full) {
    full = used > most / 4;
  } else if (used >= most / 2 - most / 20) {
    full = true;
    spdlog::warn(fmt::runtime("{} " + std::string(line)), used, most);
  }
}

}  // namespace carillon::server
