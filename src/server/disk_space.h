// Notices when the file system of the data directory is nearly full, so that puts are refused while
// there is room for the rest.
//
//   DiskSpace space("/var/lib/carillon", 128 << 20);
//   if (space.low(now_ns)) ...          // refuse what adds jobs
//
// Why: on a file system that is full to the last byte nothing can be deleted either, since to
// delete is to write that down, and the database needs room to open. So puts are refused before
// that, and workers and the next start go on (RabbitMQ's disk_free_limit is the same). Puts come
// again when there is an eighth more than that, so that they do not come and go.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace carillon::server {

class DiskSpace {
 public:
  // Looks at most so often, since each look is a system call: 100 ms, in which a fast disk takes
  // some tens of MiB.
  static constexpr std::uint64_t kPeriodNs = 100'000'000;

  // It is never low.
  DiskSpace() = default;
  // `least`: bytes that must be free. 0, or no directory: it is never low.
  DiskSpace(std::optional<std::string> directory, std::uint64_t least);

  // Whether less is free, at `mono_ns` by the monotonic clock. Logs when it begins and when it
  // ends. A file system that cannot be asked stays what it was.
  bool low(std::uint64_t mono_ns);

 private:
  void look();

  std::optional<std::string> directory_;
  std::uint64_t least_ = 0;
  std::optional<std::uint64_t> looked_ns_;
  bool low_ = false;
};

}  // namespace carillon::server
