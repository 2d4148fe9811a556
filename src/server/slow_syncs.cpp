// SlowSyncs (slow_syncs.h).
#include "server/slow_syncs.h"

#include <spdlog/spdlog.h>

namespace carillon::server {
namespace {

constexpr std::uint64_t kSlowNs = 1'000'000'000;

}  // namespace

std::optional<std::uint64_t> SlowSyncs::observe(std::uint64_t mono_ns, queue::Sequence requested,
                                                queue::Sequence durable) {
  std::optional<std::uint64_t> took;
  if (pending_ && durable >= pending_->sequence) {
    took = mono_ns - pending_->since_ns;
    if (*took >= kSlowNs && throttle_.pass(mono_ns)) {
      spdlog::warn("the disk is slow: replies waited {:.1f} s for a sync",
                   static_cast<double>(*took) / 1e9);
    }
    pending_.reset();
  }
  if (!pending_ && requested > durable) pending_ = {requested, mono_ns};
  return took;
}

}  // namespace carillon::server
