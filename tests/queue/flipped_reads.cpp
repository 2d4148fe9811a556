// pread() and preadv2(), replaced (flipped_reads.h).

#include "queue/flipped_reads.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CARILLON_FLIPS 1
#endif

namespace carillon::queue {
namespace {

std::atomic<int> to_skip = 0;
std::atomic<int> to_flip = 0;

#if CARILLON_FLIPS
ssize_t flipped(void* bytes, ssize_t got) {
  if (got <= 0 || to_flip.load() == 0 || to_skip.fetch_sub(1) > 0) return got;
  to_flip.fetch_sub(1);
  static_cast<char*>(bytes)[got / 2] ^= 1;
  return got;
}
#endif

}  // namespace

FlippedReads::FlippedReads(int skip, int count) {
  to_skip.store(skip);
  to_flip.store(count);
}

FlippedReads::~FlippedReads() {
  to_flip.store(0);
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
  return carillon::queue::flipped(bytes, ::syscall(SYS_pread64, fd, bytes, size, at));
}

ssize_t preadv2(int fd, const iovec* parts, int count, off_t at, int flags) {
  const ssize_t got = ::syscall(SYS_preadv2, fd, parts, count, at, 0, flags);
  return carillon::queue::flipped(parts[0].iov_base, got);
}

}  // extern "C"
#endif
