// pread() and preadv2(), replaced (flipped_reads.h).

#include "queue/flipped_reads.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CARILLON_FLIPS 1
#endif

namespace carillon::queue {
namespace {

std::atomic<int> to_skip = 0;
std::atomic<int> to_flip = 0;
// Not changed while reads are flipped.
std::string of_files;
std::optional<std::uint64_t> bit_of_read;

#if CARILLON_FLIPS
bool is_meant(int fd) {
  if (of_files.empty()) return true;
  std::error_code unknown;
  const auto file = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), unknown);
  return file.string().ends_with(of_files);
}

ssize_t flipped(int fd, void* bytes, ssize_t got) {
  if (got <= 0 || to_flip.load() == 0 || !is_meant(fd) || to_skip.fetch_sub(1) > 0) return got;
  to_flip.fetch_sub(1);
  const auto size = static_cast<std::uint64_t>(got);
  const std::uint64_t bit = bit_of_read.value_or(size / 2 * 8) % (size * 8);
  char& byte = static_cast<char*>(bytes)[bit / 8];
  byte = static_cast<char>(byte ^ (1 << bit % 8));
  return got;
}
#endif

}  // namespace

FlippedReads::FlippedReads(int skip, int count, const std::string& ending,
                           std::optional<std::uint64_t> bit) {
  of_files = ending;
  bit_of_read = bit;
  to_skip.store(skip);
  to_flip.store(count);
}

FlippedReads::~FlippedReads() {
  to_flip.store(0);
  of_files.clear();
  bit_of_read.reset();
}

bool FlippedReads::can_flip() {
#if CARILLON_FLIPS
  return true;
#else
  return false;
#endif
}

int FlippedReads::left() const {
  return to_flip.load();
}

}  // namespace carillon::queue

#if CARILLON_FLIPS
extern "C" {

ssize_t pread(int fd, void* bytes, std::size_t size, off_t at) {
  return carillon::queue::flipped(fd, bytes, ::syscall(SYS_pread64, fd, bytes, size, at));
}

ssize_t preadv2(int fd, const iovec* parts, int count, off_t at, int flags) {
  const ssize_t got = ::syscall(SYS_preadv2, fd, parts, count, at, 0, flags);
  return carillon::queue::flipped(fd, parts[0].iov_base, got);
}

}  // extern "C"
#endif
