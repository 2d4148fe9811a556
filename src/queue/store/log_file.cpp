// The log file's system calls.

#include "queue/store/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_io.h"

namespace carillon::queue {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

// Returns 0 or an errno.
int write_zeros(int fd, std::uint64_t from, std::uint64_t to) {
  static constexpr char kZeros[65'536] = {};
  while (from < to) {
    const std::uint64_t size = std::min<std::uint64_t>(to - from, sizeof kZeros);
    if (const int error = base::write_at(fd, {kZeros, size}, from); error != 0) return error;
    from += size;
  }
  return 0;
}

}  // namespace

IOStatus write_failure(const std::string& path, const char* what, int error) {
  IOStatus status =
      IOStatus::IOError("cannot " + std::string(what) + " " + path, std::strerror(error));
  status.SetRetryable(true);
  status.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
  return status;
}

IOStatus LogFile::create(const std::string& path, std::uint64_t step, Current& current,
                         std::unique_ptr<LogFile>* file) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return write_failure(path, "create", errno);
  file->reset(new LogFile(path, fd, step, current));
  return IOStatus::OK();
}

LogFile::LogFile(std::string path, int fd, std::uint64_t step, Current& current)
    : path_(std::move(path)), step_(step), current_(current), fd_(fd) {}

LogFile::~LogFile() {
  LogFile* self = this;
  current_.compare_exchange_strong(self, nullptr);
  if (fd_ >= 0) Close({}, nullptr).PermitUncheckedError();
}

IOStatus LogFile::become_current(const std::string& path) {
  if (path != path_ && ::rename(path_.c_str(), path.c_str()) != 0)
    return write_failure(path, "create", errno);
  path_ = path;
  current_.store(this, std::memory_order_release);
  return IOStatus::OK();
}

IOStatus LogFile::reserve(std::uint64_t bytes) {
  const std::uint64_t needed = written_ + bytes;
  if (needed > size_) {
    int error = take_space(std::max(needed, size_ + step_));
    if (error != 0) error = take_space(needed);  // there may be room for this much
    if (error != 0) return write_failure(path_, "take space for", error);
  }
  return IOStatus::OK();
}

// Makes the file `size` bytes long. Returns 0 or an errno.
int LogFile::take_space(std::uint64_t size) {
  int error = 0;
  do {
    const auto more = static_cast<off_t>(size - size_);
    error = ::fallocate(fd_, 0, static_cast<off_t>(size_), more) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == EOPNOTSUPP || error == ENOSYS) error = write_zeros(fd_, size_, size);
  if (error == 0) size_ = size;
  return error;
}

IOStatus LogFile::Append(const Slice& data, const IOOptions&, IODebugContext*) {
  if (IOStatus status = reserve(data.size()); !status.ok()) {
    broken_ = true;
    return status;
  }
  if (const int error = base::write_at(fd_, {data.data(), data.size()}, written_); error != 0) {
    broken_ = true;
    return write_failure(path_, "write to", error);
  }
  written_ += data.size();
  return IOStatus::OK();
}

IOStatus LogFile::Flush(const IOOptions&, IODebugContext*) {
  return IOStatus::OK();
}

IOStatus LogFile::Sync(const IOOptions&, IODebugContext*) {
  const bool complete = current_.load(std::memory_order_acquire) != this;
  if (complete && ::ftruncate(fd_, static_cast<off_t>(written_)) != 0)
    return write_failure(path_, "cut", errno);
  while (::fdatasync(fd_) != 0) {
    if (errno != EINTR) return write_failure(path_, "sync", errno);
  }
  return IOStatus::OK();
}

IOStatus LogFile::Close(const IOOptions&, IODebugContext*) {
  if (fd_ < 0) return IOStatus::OK();
  const int cut = ::ftruncate(fd_, static_cast<off_t>(written_)) == 0 ? 0 : errno;
  const int closed = ::close(fd_) == 0 ? 0 : errno;
  fd_ = -1;
  if (cut != 0) return write_failure(path_, "cut", cut);
  if (closed != 0) return write_failure(path_, "close", closed);
  return IOStatus::OK();
}

}  // namespace carillon::queue
