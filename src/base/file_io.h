// Reads and writes of a file that are never cut short, and a sync of a directory. The queue's store
// uses them for its files. Each function returns 0 or an errno, and is safe to call in any thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/file_descriptor.h"

namespace carillon::base {

// The errors of a write that may pass by themselves: there is no space, descriptor or memory now.
inline constexpr std::array<int, 6> kShortages = {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM};

// Writes all of `bytes` at offset `at`.
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

// Reads `size` bytes from offset `at` on. If the file ends before, sets `size` to the number of
// bytes read.
inline int read_at(int fd, char* to, std::size_t& size, std::uint64_t at) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd, to + done, size - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  size = done;
  return 0;
}

// Makes the names of the files in a directory durable.
inline int sync_directory(const char* path) {
  const FileDescriptor directory(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory && ::fsync(directory.get()) == 0 ? 0 : errno;
}

}  // namespace carillon::base
