// The arithmetic of descriptors (descriptors.h).
#include "server/descriptors.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/start_error.h"
#include "carillon/queue/disk_store.h"
#include "server/push/push_options.h"

namespace carillon::server {
namespace {

// For standard input and output, the event loop, timers, signals and listening sockets, and for a
// connection that is about to be refused.
constexpr std::size_t kOwn = 48;
constexpr std::size_t kFewestConnections = 16;
constexpr std::size_t kFewestFiles = 32;

}  // namespace

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Pushes get an eighth, or less if they want less. The store gets what it wants if the rest is
// large enough, and otherwise a third of it.
DescriptorShares share_descriptors(std::size_t limit, std::size_t connections, bool on_disk) {
  const std::size_t other = kOwn + (on_disk ? queue::DiskStoreOptions::kOtherFiles : 0);
  const std::size_t fewest =
      other + push::kFewestSockets + kFewestConnections + (on_disk ? kFewestFiles : 0);
  if (limit < fewest) {
    throw base::StartError(
        fmt::format("the process may have {} descriptors, and needs at least {} (see ulimit -n)",
                    limit, fewest));
  }
  DescriptorShares shares;
  shares.pushes = std::clamp((limit - other) / 8, push::kFewestSockets, push::kMostSockets);
  const std::size_t left = limit - other - shares.pushes;
  if (on_disk) {
    const std::size_t spare = left - std::min(left, connections);
    shares.open_files = std::min(queue::DiskStoreOptions().max_open_files,
                                 std::max({kFewestFiles, left / 3, spare}));
  }
  shares.connections = std::min(connections, left - shares.open_files);
  return shares;
}

}  // namespace carillon::server
