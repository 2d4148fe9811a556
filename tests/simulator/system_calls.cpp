// The functions of the C library through which files are used. For what is on the simulated disk
// they call it; all else they pass on.
//
// This program's own definitions come before those of the C library, also for RocksDB and the C++
// library, which are shared libraries. Only the functions that these three call are here. A call of
// another function with a descriptor or a path of the disk fails with EBADF or ENOENT.

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "simulator/disk.h"
#include "simulator/next_function.h"
#include "simulator/threads.h"

namespace {

using carillon::simulator::Disk;
using carillon::simulator::may_switch;
using carillon::simulator::next;

Disk& disk() {
  return *Disk::mounted();
}

// Turns a result of the disk into one of the C library.
template <typename Number>
Number result(Number from_disk) {
  if (from_disk >= 0) return from_disk;
  errno = static_cast<int>(-from_disk);
  return -1;
}

// A directory that is being read.
struct Listing {
  int fd;
  std::vector<Disk::Entry> entries;
  std::size_t at = 0;
  dirent entry{};
};
std::set<const void*> listings;

DIR* begin_listing(int fd) {
  auto listing = std::make_unique<Listing>(Listing{.fd = fd, .entries = disk().list(fd)});
  listings.insert(listing.get());
  return reinterpret_cast<DIR*>(listing.release());
}

Listing* listing(DIR* of) {
  return listings.contains(of) ? reinterpret_cast<Listing*>(of) : nullptr;
}

bool on_disk(int at, const char* path) {
  return path[0] == '/' ? Disk::has(path) : Disk::has(at);
}

ssize_t read_cookie(void* cookie, char* to, std::size_t size) {
  return result(disk().read(static_cast<int>(reinterpret_cast<std::intptr_t>(cookie)), to, size));
}

int seek_cookie(void* cookie, off64_t* to, int from) {
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(cookie));
  const off_t at = result(disk().seek(fd, *to, from));
  *to = at;
  return at < 0 ? -1 : 0;
}

int close_cookie(void* cookie) {
  return result(disk().close(static_cast<int>(reinterpret_cast<std::intptr_t>(cookie))));
}

}  // namespace

extern "C" {

// --- Opening and closing.

int open(const char* path, int flags, ...) {
  if (Disk::has(path)) return result(disk().open(-1, path, flags));
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return next<"open">(::open)(path, flags, mode);
}

int openat(int at, const char* path, int flags, ...) {
  if (on_disk(at, path)) return result(disk().open(at, path, flags));
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return next<"openat">(::openat)(at, path, flags, mode);
}

int close(int fd) {
  if (Disk::has(fd)) return result(disk().close(fd));
  return next<"close">(::close)(fd);
}

int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!Disk::has(fd)) {
    return next<"fcntl">(::fcntl)(fd, command, argument);
  }
  switch (command) {
    case F_GETFL:
      return result(disk().get_flags(fd));
    case F_SETFL:
      return result(
          disk().set_flags(fd, static_cast<int>(reinterpret_cast<std::intptr_t>(argument))));
    case F_SETLK:
      return result(disk().lock(
          fd, static_cast<struct flock*>(argument)->l_type == F_UNLCK ? LOCK_UN : LOCK_EX));
    default:
      return 0;  // F_SETFD, and hints about the lifetime of data
  }
}

int flock(int fd, int operation) {
  if (Disk::has(fd)) return result(disk().lock(fd, operation));
  return next<"flock">(::flock)(fd, operation);
}

FILE* fdopen(int fd, const char* mode) {
  if (Disk::has(fd)) {
    const cookie_io_functions_t functions{
        .read = read_cookie, .write = nullptr, .seek = seek_cookie, .close = close_cookie};
    return ::fopencookie(reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)), mode, functions);
  }
  return next<"fdopen">(::fdopen)(fd, mode);
}

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (Disk::has(fd)) return result(-ENOTTY);
  return next<"ioctl">(::ioctl)(fd, request, argument);
}

// --- Bytes.

ssize_t read(int fd, void* to, std::size_t size) {
  if (Disk::has(fd)) return result(disk().read(fd, static_cast<char*>(to), size));
  return next<"read">(::read)(fd, to, size);
}

ssize_t pread(int fd, void* to, std::size_t size, off_t at) {
  if (Disk::has(fd)) return result(disk().pread(fd, static_cast<char*>(to), size, at));
  return next<"pread">(::pread)(fd, to, size, at);
}

// All that is on this disk is in memory, too.
ssize_t preadv2(int fd, const iovec* to, int parts, off_t at, int flags) {
  if (!Disk::has(fd)) return next<"preadv2">(::preadv2)(fd, to, parts, at, flags);
  if (parts != 1) return result(-EINVAL);
  return result(disk().pread(fd, static_cast<char*>(to->iov_base), to->iov_len, at));
}

ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (Disk::has(fd)) return result(disk().write(fd, static_cast<const char*>(bytes), size));
  return next<"write">(::write)(fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t at) {
  if (Disk::has(fd)) {
    may_switch();
    const ssize_t wrote = disk().pwrite(fd, static_cast<const char*>(bytes), size, at);
    may_switch();
    return result(wrote);
  }
  return next<"pwrite">(::pwrite)(fd, bytes, size, at);
}

int fsync(int fd) {
  if (Disk::has(fd)) return result(disk().sync(fd));
  return next<"fsync">(::fsync)(fd);
}

int fdatasync(int fd) {
  if (Disk::has(fd)) {
    may_switch();
    const int error = disk().sync(fd);
    may_switch();
    return result(error);
  }
  return next<"fdatasync">(::fdatasync)(fd);
}

// Begins to write, and makes nothing durable.
int sync_file_range(int fd, off64_t from, off64_t size, unsigned flags) {
  if (Disk::has(fd)) return 0;
  return next<"sync_file_range">(::sync_file_range)(fd, from, size, flags);
}

int ftruncate(int fd, off_t size) noexcept {
  if (Disk::has(fd)) return result(disk().resize(fd, size));
  return next<"ftruncate">(::ftruncate)(fd, size);
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  if (Disk::has(fd)) return mode == 0 ? result(disk().allocate(fd, at + size)) : 0;
  return next<"fallocate">(::fallocate)(fd, mode, at, size);
}

int posix_fadvise(int fd, off_t at, off_t size, int advice) noexcept {
  if (Disk::has(fd)) return 0;
  return next<"posix_fadvise">(::posix_fadvise)(fd, at, size, advice);
}

ssize_t readahead(int fd, off64_t at, std::size_t size) noexcept {
  if (Disk::has(fd)) return 0;
  return next<"readahead">(::readahead)(fd, at, size);
}

// --- What there is.

int stat(const char* path, struct stat* to) noexcept {
  if (Disk::has(path)) return result(disk().stat(-1, path, *to));
  return next<"stat">(::stat)(path, to);
}

int lstat(const char* path, struct stat* to) noexcept {
  if (Disk::has(path)) return result(disk().stat(-1, path, *to));
  return next<"lstat">(::lstat)(path, to);
}

int fstat(int fd, struct stat* to) noexcept {
  if (Disk::has(fd)) return result(disk().stat(fd, *to));
  return next<"fstat">(::fstat)(fd, to);
}

int fstatat(int at, const char* path, struct stat* to, int flags) noexcept {
  if (on_disk(at, path)) return result(disk().stat(at, path, *to));
  return next<"fstatat">(::fstatat)(at, path, to, flags);
}

int access(const char* path, int mode) noexcept {
  struct stat status {};
  if (Disk::has(path)) return result(disk().stat(-1, path, status));
  return next<"access">(::access)(path, mode);
}

int statvfs(const char* path, struct statvfs* to) noexcept {
  if (Disk::has(path)) {
    *to = {};
    to->f_bsize = to->f_frsize = Disk::kPage;
    to->f_bavail = to->f_bfree = disk().free_bytes() / Disk::kPage;
    return 0;
  }
  return next<"statvfs">(::statvfs)(path, to);
}

int fstatfs(int fd, struct statfs* to) noexcept {
  if (Disk::has(fd)) {
    *to = {};
    return 0;
  }
  return next<"fstatfs">(::fstatfs)(fd, to);
}

DIR* opendir(const char* path) {
  if (Disk::has(path)) {
    const int fd = result(disk().open(-1, path, O_RDONLY | O_DIRECTORY));
    return fd < 0 ? nullptr : begin_listing(fd);
  }
  return next<"opendir">(::opendir)(path);
}

DIR* fdopendir(int fd) {
  if (Disk::has(fd)) return begin_listing(fd);
  return next<"fdopendir">(::fdopendir)(fd);
}

dirent* readdir(DIR* of) {
  if (Listing* const from = listing(of)) {
    if (from->at == from->entries.size()) return nullptr;
    const Disk::Entry& entry = from->entries[from->at++];
    from->entry.d_ino = entry.inode;
    from->entry.d_type = entry.directory ? DT_DIR : DT_REG;
    from->entry.d_name[entry.name.copy(from->entry.d_name, sizeof from->entry.d_name - 1)] = '\0';
    return &from->entry;
  }
  return next<"readdir">(::readdir)(of);
}

int dirfd(DIR* of) noexcept {
  if (const Listing* const from = listing(of)) return from->fd;
  return next<"dirfd">(::dirfd)(of);
}

int closedir(DIR* of) {
  if (Listing* const from = listing(of)) {
    const std::unique_ptr<Listing> ended(from);
    listings.erase(of);
    return result(disk().close(from->fd));
  }
  return next<"closedir">(::closedir)(of);
}

// --- Names.

int mkdir(const char* path, mode_t mode) noexcept {
  if (Disk::has(path)) return result(disk().make_directory(path));
  return next<"mkdir">(::mkdir)(path, mode);
}

int link(const char* from, const char* to) noexcept {
  if (Disk::has(from)) return result(disk().link(from, to));
  return next<"link">(::link)(from, to);
}

int rename(const char* from, const char* to) noexcept {
  if (Disk::has(from)) return result(disk().rename(-1, from, -1, to));
  return next<"rename">(::rename)(from, to);
}

int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  if (on_disk(from_at, from)) return result(disk().rename(from_at, from, to_at, to));
  return next<"renameat">(::renameat)(from_at, from, to_at, to);
}

// The disk cannot tell whether there is a file of the new name.
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (on_disk(from_at, from)) {
    if (flags != 0) return result(-EINVAL);
    return result(disk().rename(from_at, from, to_at, to));
  }
  return next<"renameat2">(::renameat2)(from_at, from, to_at, to, flags);
}

int unlink(const char* path) noexcept {
  if (Disk::has(path)) return result(disk().unlink(-1, path));
  return next<"unlink">(::unlink)(path);
}

int unlinkat(int at, const char* path, int flags) noexcept {
  if (on_disk(at, path)) {
    return result((flags & AT_REMOVEDIR) != 0 ? disk().remove_directory(at, path)
                                              : disk().unlink(at, path));
  }
  return next<"unlinkat">(::unlinkat)(at, path, flags);
}

int rmdir(const char* path) noexcept {
  if (Disk::has(path)) return result(disk().remove_directory(-1, path));
  return next<"rmdir">(::rmdir)(path);
}

int remove(const char* path) noexcept {
  if (Disk::has(path)) {
    const int error = disk().unlink(-1, path);
    return result(error == -EISDIR ? disk().remove_directory(-1, path) : error);
  }
  return next<"remove">(::remove)(path);
}

char* realpath(const char* path, char* to) noexcept {
  if (Disk::has(path))
    return to == nullptr ? ::strdup(path) : std::strcpy(to, path);  // NOLINT: as realpath() does
  return next<"realpath">(::realpath)(path, to);
}
}
