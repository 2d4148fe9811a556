// A library for LD_PRELOAD that makes chosen system calls on files fail, or take long, so that a
// test can see what a real, unchanged program does then. tests/server/failing_io.py steers it, at
// any time.
//
// CARILLON_FAULTS names a file with an array of Rules, which is mapped into memory. Each call asks
// the rules in their order until one lets it fail: it then does nothing and returns the rule's
// error.
//
// Only calls of this process through the C library's functions are seen. Not seen: what fread()
// reads, because it calls the system without them.

#include <fcntl.h>
#include <fnmatch.h>
#include <linux/limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

// The bits of Rule::calls. failing_io.py has the same.
enum Call : std::uint32_t {
  kOpen = 1,        // open of a file that must be there
  kRead = 2,        // read, pread
  kWrite = 4,       // write, pwrite
  kSync = 8,        // fsync, fdatasync
  kTruncate = 16,   // ftruncate
  kRename = 32,     // rename, asked with the new path
  kCreate = 64,     // open with O_CREAT
  kAllocate = 128,  // new[] in C++, asked with "memory:" and the number of bytes; any error will do
};

// failing_io.py writes it, but for `seen` and `failed`.
struct Rule {
  std::atomic<std::uint32_t> calls;  // 0: the rule is off
  std::int32_t error;                // an errno
  std::uint64_t after;               // this many calls pass before the first that fails
  std::uint64_t times;               // this many fail, and later ones pass
  std::atomic<std::uint64_t> seen;   // calls that it fitted
  std::atomic<std::uint64_t> failed;
  std::atomic<std::uint32_t> holds;  // not 0: a call that will fail waits until it is 0
  std::uint32_t takes_ms;            // and then this much longer
  std::array<char, 208> pattern;     // of paths, as of fnmatch(3); '*' is for slashes too
};
static_assert(sizeof(Rule) == 256);
using Rules = std::array<Rule, 16>;

Rules* map_rules() {
  const char* const path = std::getenv("CARILLON_FAULTS");
  if (path == nullptr) return nullptr;
  const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  if (fd < 0) std::abort();
  void* const at = ::mmap(nullptr, sizeof(Rules), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) std::abort();
  ::close(fd);
  return static_cast<Rules*>(at);
}

Rules* rules() {
  static Rules* const mapped = map_rules();
  return mapped;
}

// Returns the errno with which the call must fail, or 0.
int apply(Rule& rule) {
  const std::uint64_t before = rule.seen.fetch_add(1);
  if (before < rule.after || before - rule.after >= rule.times) return 0;
  while (rule.holds != 0) ::usleep(1'000);
  if (rule.takes_ms != 0) ::usleep(rule.takes_ms * 1'000);
  ++rule.failed;
  return rule.error;
}

// Calls `path` for the file's name only if a rule has this kind of call.
template <typename Path>
bool fails(Call call, Path path) {
  if (rules() == nullptr) return false;
  const int before = errno;
  const char* name = nullptr;
  for (Rule& rule : *rules()) {
    if ((rule.calls & call) == 0) continue;
    if (name == nullptr) name = path();
    if (::fnmatch(rule.pattern.data(), name, 0) != 0) continue;
    const int error = apply(rule);
    if (error == 0) continue;
    errno = error;
    return true;
  }
  errno = before;
  return false;
}

using Name = std::array<char, PATH_MAX + NAME_MAX + 2>;

const char* name_of(int fd, Name& name) {
  std::array<char, 32> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link.data(), name.data(), PATH_MAX);
  name[static_cast<std::size_t>(std::max<ssize_t>(size, 0))] = '\0';
  return name.data();
}

bool fails(Call call, int fd) {
  Name name;  // without a first value: each call would pay for it
  return fails(call, [&] { return name_of(fd, name); });
}

// Whether there is a rule for the call, without asking it.
bool has_rule(Call call, int fd) {
  if (rules() == nullptr) return false;
  Name name;
  return std::any_of(rules()->begin(), rules()->end(), [&](const Rule& rule) {
    return (rule.calls & call) != 0 && ::fnmatch(rule.pattern.data(), name_of(fd, name), 0) == 0;
  });
}

// RocksDB reaches the files of a directory through its descriptor: /proc/self/fd/7/LOCK.
const char* resolve(const char* path, Name& name) {
  int fd = -1;
  int used = 0;
  if (std::sscanf(path, "/proc/self/fd/%d%n", &fd, &used) != 1) return path;
  name_of(fd, name);
  std::snprintf(name.data() + std::strlen(name.data()), NAME_MAX, "%s", path + used);
  return name.data();
}

int open_file(const char* path, int flags, mode_t mode) {
  Name name;
  if (fails((flags & O_CREAT) != 0 ? kCreate : kOpen, [&] { return resolve(path, name); }))
    return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // namespace

// The C library's functions, as RocksDB and the server call them.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, unsigned));  // garbage without a mode
  va_end(rest);
  return open_file(path, flags, (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, unsigned));
  va_end(rest);
  return open_file(path, flags, (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0);
}

int openat(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, unsigned));
  va_end(rest);
  const bool makes = (flags & (O_CREAT | O_TMPFILE)) != 0;
  Name name;
  const auto whole = [&] {
    if (path[0] == '/' || at == AT_FDCWD) return resolve(path, name);
    name_of(at, name);
    std::snprintf(name.data() + std::strlen(name.data()), NAME_MAX, "/%s", path);
    return static_cast<const char*>(name.data());
  };
  if (fails((flags & O_CREAT) != 0 ? kCreate : kOpen, whole)) return -1;
  return static_cast<int>(::syscall(SYS_openat, at, path, flags, makes ? mode : 0));
}

ssize_t read(int fd, void* to, std::size_t size) {
  return fails(kRead, fd) ? -1 : ::syscall(SYS_read, fd, to, size);
}

ssize_t pread(int fd, void* to, std::size_t size, off_t at) {
  return fails(kRead, fd) ? -1 : ::syscall(SYS_pread64, fd, to, size, at);
}

ssize_t pread64(int fd, void* to, std::size_t size, off64_t at) {
  return fails(kRead, fd) ? -1 : ::syscall(SYS_pread64, fd, to, size, at);
}

// Nothing is in memory while a rule has the reads of the file. Linux 5.9 and 5.10 say that by 0 at
// times, in the place of EAGAIN: preadv2(2).
ssize_t preadv2(int fd, const iovec* to, int parts, off_t at, int flags) {
  static std::atomic<unsigned> calls = 0;
  if ((flags & RWF_NOWAIT) != 0 && has_rule(kRead, fd)) {
    if (calls++ % 2 == 0) return 0;
    errno = EAGAIN;
    return -1;
  }
  return ::syscall(SYS_preadv2, fd, to, parts, at, 0, flags);
}

ssize_t write(int fd, const void* bytes, std::size_t size) {
  return fails(kWrite, fd) ? -1 : ::syscall(SYS_write, fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t at) {
  return fails(kWrite, fd) ? -1 : ::syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void* bytes, std::size_t size, off64_t at) {
  return fails(kWrite, fd) ? -1 : ::syscall(SYS_pwrite64, fd, bytes, size, at);
}

int fsync(int fd) {
  return fails(kSync, fd) ? -1 : static_cast<int>(::syscall(SYS_fsync, fd));
}

int fdatasync(int fd) {
  return fails(kSync, fd) ? -1 : static_cast<int>(::syscall(SYS_fdatasync, fd));
}

int ftruncate(int fd, off_t size) noexcept {
  return fails(kTruncate, fd) ? -1 : static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}

int rename(const char* from, const char* to) noexcept {
  Name name;
  if (fails(kRename, [&] { return resolve(to, name); })) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

void* operator new[](std::size_t size) {
  std::array<char, 32> name;
  const bool failed = fails(kAllocate, [&] {
    std::snprintf(name.data(), name.size(), "memory:%zu", size);
    return name.data();
  });
  void* const bytes = failed ? nullptr : std::malloc(size);
  if (bytes == nullptr) throw std::bad_alloc();
  return bytes;
}

void operator delete[](void* bytes) noexcept {
  std::free(bytes);
}

void operator delete[](void* bytes, std::size_t) noexcept {
  std::free(bytes);
}
