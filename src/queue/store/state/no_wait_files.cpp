// A file that is read with preadv2() and RWF_NOWAIT (no_wait_files.h).

#include "queue/store/state/no_wait_files.h"

#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace carillon::queue {

namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

thread_local bool no_wait = false;
thread_local bool fresh = false;
struct LastRead {
  std::string path;
  std::uint64_t offset = 0;
  std::size_t size = 0;
};
thread_local LastRead last_fresh;
thread_local const std::function<bool(std::size_t)>* pace = nullptr;

IOStatus would_wait() {
  return IOStatus::TimedOut("the disk would have to be waited for");
}

class File final : public rocksdb::FSRandomAccessFile {
 public:
  File(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~File() override { ::close(fd_); }

  // If the page cache holds only the beginning of what is asked for, the read is refused: RocksDB
  // would take a short read for the end of the file. Linux 5.9 and 5.10 may say 0 for a page that
  // is not in memory (preadv2(2)), so without waiting nothing tells the end of the file.
  IOStatus Read(std::uint64_t offset, std::size_t size, const IOOptions&, Slice* result,
                char* scratch, IODebugContext*) const override {
    if (pace != nullptr && !(*pace)(size)) return IOStatus::Aborted("the reader must end");
    if (fresh) {
      forget(offset, size);
      last_fresh = {path_, offset, size};
    }
    std::size_t done = 0;
    while (done < size) {
      const ssize_t got = read(offset + done, size - done, scratch + done);
      if (got == 0 && !no_wait) break;
      if (got > 0) {
        done += static_cast<std::size_t>(got);
      } else if (no_wait) {
        return would_wait();
      } else if (errno != EINTR) {
        return IOStatus::IOError("While pread offset " + std::to_string(offset + done) + " len " +
                                     std::to_string(size - done) + ": " + path_,
                                 std::strerror(errno));
      }
    }
    *result = Slice(scratch, done);
    return IOStatus::OK();
  }

  IOStatus Prefetch(std::uint64_t offset, std::size_t size, const IOOptions&,
                    IODebugContext*) override {
    if (no_wait) return would_wait();
    ::readahead(fd_, static_cast<off64_t>(offset), size);
    return IOStatus::OK();
  }

  void Hint(AccessPattern pattern) override {
    if (pattern == kRandom) ::posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);
  }

 private:
  ssize_t read(std::uint64_t offset, std::size_t size, char* to) const {
    const auto at = static_cast<off_t>(offset);
    if (!no_wait) return ::pread(fd_, to, size, at);
    const iovec part{.iov_base = to, .iov_len = size};
    return ::preadv2(fd_, &part, 1, at, RWF_NOWAIT);
  }

  // The system drops whole pages only.
  void forget(std::uint64_t offset, std::size_t size) const {
    constexpr std::uint64_t kPage = 64 << 10;  // the largest there is
    const std::uint64_t begin = offset / kPage * kPage;
    const std::uint64_t end = (offset + size + kPage - 1) / kPage * kPage;
    ::posix_fadvise(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                    POSIX_FADV_DONTNEED);
  }

  const std::string path_;
  const int fd_;
};

class NoWaitFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit NoWaitFileSystem(const std::shared_ptr<rocksdb::FileSystem>& below)
      : FileSystemWrapper(below) {}
  // RocksDB asks for this name. NOLINTNEXTLINE(readability-identifier-naming)
  static const char* kClassName() { return "carillon"; }
  const char* Name() const override { return kClassName(); }

  // The file system below reports an error of opening it.
  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    if (no_wait) return would_wait();
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return target()->NewRandomAccessFile(path, options, file, debug);
    *file = std::make_unique<File>(path, fd);
    return IOStatus::OK();
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> no_wait_files(
    const std::shared_ptr<rocksdb::FileSystem>& below) {
  return std::make_shared<NoWaitFileSystem>(below);
}

NoWait::NoWait() noexcept {
  no_wait = true;
}

NoWait::~NoWait() {
  no_wait = false;
}

FreshRead::FreshRead() noexcept {
  fresh = true;
  last_fresh = {};
}

std::string FreshRead::last() const {
  const LastRead& read = last_fresh;
  if (read.path.empty()) return {};
  return read.path.substr(read.path.rfind('/') + 1) + " offset " + std::to_string(read.offset) +
         " size " + std::to_string(read.size);
}

FreshRead::~FreshRead() {
  fresh = false;
}

PacedRead::PacedRead(std::function<bool(std::size_t)> go_on) : go_on_(std::move(go_on)) {
  pace = &go_on_;
}

PacedRead::~PacedRead() {
  pace = nullptr;
}

}  // namespace carillon::queue
