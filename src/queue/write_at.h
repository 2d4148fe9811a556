#pragma once
// A write at a place in a file, whole.

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

namespace carillon::queue {

// Writes all of `bytes` at `at`. Returns 0 or an errno.
inline int write_at(int fd, std::string_view bytes, std::uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    at += static_cast<std::uint64_t>(wrote);
  }
  return 0;
}

}  // namespace carillon::queue
