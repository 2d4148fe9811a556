// A library for LD_PRELOAD that sets the wall clock of one process, as it sees it, so that a test
// can see what a real, unchanged program does then. tests/server/wrong_clock.py steers it.
//
// CARILLON_WRONG_CLOCK names a file with a Setting, which is mapped into memory. The process is not
// woken when the wall clock is set, as it is by the kernel: it notices when it reads the time.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// wrong_clock.py writes it.
struct Setting {
  std::atomic<std::int64_t> error_ns;  // is added to CLOCK_REALTIME
  std::array<char, 56> boot_id;        // the path of a file that is read instead of the kernel's
};
static_assert(sizeof(Setting) == 64);

const Setting* map_setting() {
  const char* const path = std::getenv("CARILLON_WRONG_CLOCK");
  if (path == nullptr) return nullptr;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) std::abort();
  void* const at = ::mmap(nullptr, sizeof(Setting), PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) std::abort();
  ::close(fd);
  return static_cast<const Setting*>(at);
}

const Setting* setting() {
  static const Setting* const mapped = map_setting();
  return mapped;
}

std::FILE* open_file(const char* path, const char* mode) {
  const bool boot_id = std::strcmp(path, "/proc/sys/kernel/random/boot_id") == 0;
  if (boot_id && setting() != nullptr) path = setting()->boot_id.data();
  const int flags = std::strchr(mode, 'w') != nullptr ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
  const int fd = ::open(path, flags | O_CLOEXEC, 0666);
  return fd < 0 ? nullptr : ::fdopen(fd, mode);
}

}  // namespace

// The C library's functions, as the server and the C++ library call them.
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result != 0 || clock != CLOCK_REALTIME || setting() == nullptr) return result;
  constexpr std::int64_t kNsInSecond = 1'000'000'000;
  const std::int64_t ns = time->tv_sec * kNsInSecond + time->tv_nsec + setting()->error_ns;
  time->tv_sec = ns / kNsInSecond;
  time->tv_nsec = ns % kNsInSecond;
  return 0;
}

// So that std::ifstream reads another boot id.
std::FILE* fopen(const char* path, const char* mode) {
  return open_file(path, mode);
}
std::FILE* fopen64(const char* path, const char* mode) {
  return open_file(path, mode);
}
}
