// What the system says of its memory, and the arithmetic of the shares (memory_shares.h).
#include "server/net/memory_shares.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace carillon::server {
namespace {

// What each takes in memory, in bytes, about, with all that belongs to it.
constexpr std::uint64_t kLoadedJob = 300;
constexpr std::uint64_t kTube = 1'000;

constexpr std::uint64_t kMost = UINT64_MAX;

// Returns the number with which a file begins; kMost if it begins with no number ("max"), or is not
// there.
std::uint64_t number_in(const std::string& file) {
  std::uint64_t number = 0;
  std::ifstream in(file);
  return in >> number ? number : kMost;
}

std::uint64_t memory_of_machine(const std::string& root) {
  std::ifstream in(root + "/proc/meminfo");
  for (std::string name; in >> name;) {
    std::uint64_t kib = 0;
    if (name == "MemTotal:" && in >> kib) return kib << 10;
  }
  return kMost;
}

// Returns the least number in `file` of the group `path` and of the groups that contain it. In a
// container, only the host may see the path; then the groups above it count.
std::uint64_t least_in(const std::string& mount, std::string path, const char* file) {
  std::uint64_t least = kMost;
  while (true) {
    least = std::min(least, number_in(mount + path + "/" + file));
    const std::size_t parent = path.rfind('/');
    if (parent == std::string::npos) return least;
    path.resize(parent);
  }
}

}  // namespace

// A line of the file is "4:memory:/a/b" for version 1, and "0::/a/b" for version 2.
std::uint64_t memory_limit(const std::string& root) {
  std::uint64_t least = memory_of_machine(root);
  const std::string groups = root + "/sys/fs/cgroup";
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t kind = line.find(':');
    const std::size_t path = line.find(':', kind + 1);
    if (kind == std::string::npos || path == std::string::npos) continue;
    const std::string_view kinds = std::string_view(line).substr(kind + 1, path - kind - 1);
    if (kinds.empty()) {
      least = std::min(least, least_in(groups, line.substr(path + 1), "memory.max"));
    } else if (kinds == "memory") {
      least = std::min(
          least, least_in(groups + "/memory", line.substr(path + 1), "memory.limit_in_bytes"));
    }
  }
  return least;
}

// An eighth is left for the rest; an eighth of that is for schedules. A store on disk may hold up
// to three times `recent` in memory.
MemoryShares share_memory(std::uint64_t bytes, bool on_disk) {
  constexpr std::uint64_t kMostOfStore = 64 << 20;
  constexpr std::uint64_t kMostOfSchedules = 100 << 20;
  const std::uint64_t eighth = std::max(bytes, kLeastMemory) / 8;
  MemoryShares shares;
  if (on_disk) {
    shares.recent = std::min(eighth / 2, kMostOfStore);
    shares.read_cache = std::min(eighth / 2, kMostOfStore);
  } else {
    shares.stored = 2 * eighth;
  }
  shares.loaded = eighth * 3 / 2 / kLoadedJob;
  shares.reserved = eighth / 2 / kLoadedJob;
  shares.tubes = eighth / 2 / kTube;
  shares.schedules = std::min(eighth / 8, kMostOfSchedules);
  shares.connections = eighth * 5 / 2;
  return shares;
}

}  // namespace carillon::server
