// A file descriptor that is closed when its owner is destroyed. The queue and the server use it for
// files, the command line for sockets and pipes.
//
//   const FileDescriptor file(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!file) return errno;
//
// Thread safety: as for an int.
#pragma once

#include <unistd.h>

#include <utility>

namespace carillon::base {

// Holds a descriptor, or none (-1). Can be moved, but not copied.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  // Returns the descriptor, or -1 if this object holds none.
  int get() const { return fd_; }
  // The same, and from now on the caller has to close it.
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace carillon::base
