// The data directory: how much room its file system has, and which users may read it. The service
// asks before each put, so that puts are refused while there is still room for everything else.
//
//   DiskSpace space("/var/lib/carillon", 128 << 20);
//   if (space.low(now_ns)) ...          // refuse what adds jobs
//
// Why: when a file system is full to the last byte, nothing can be deleted either, because a delete
// is a write, too, and the database needs room to open. Refusing puts before that lets workers and
// the next start go on (RabbitMQ's disk_free_limit does the same). Puts are taken again only when
// an eighth more than the limit is free, so that the state does not flap.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace carillon::server {

class DiskSpace {
 public:
  // The file system is asked at most once in this time, because each question is a system call. In
  // 100 ms a fast disk takes some tens of MiB.
  static constexpr std::uint64_t kPeriodNs = 100'000'000;

  // A DiskSpace that is never low.
  DiskSpace() = default;
  // `least`: bytes that must be free. With 0, or without a directory, it is never low.
  DiskSpace(std::optional<std::string> directory, std::uint64_t least);

  // Returns true if fewer than `least` bytes are free at `mono_ns` (ns of the monotonic clock).
  // Logs each change. If the file system cannot be asked, the last answer stands.
  bool low(std::uint64_t mono_ns);
  // The last answer of low().
  bool was_low() const { return low_; }

 private:
  void look();

  std::optional<std::string> directory_;
  std::uint64_t least_ = 0;
  std::optional<std::uint64_t> looked_ns_;
  bool low_ = false;
};

// Returns why users other than the owner may read the jobs in the directory; empty if they may not,
// or if the system cannot tell.
std::string data_exposure(const std::string& directory);

}  // namespace carillon::server
