// Numbers that are the same each time a world is run: random ones, and those of the process.
//
// The store gives each directory a random identity, and RocksDB each of its directories and of its
// sessions. Their bytes are in files; a warning of RocksDB names a session in decimal, so that its
// log is longer or shorter, and a power loss leaves something else of it. What RocksDB's cache
// forgets depends on a hash of the session. So RocksDB gets none of the kernel's UUIDs, and makes
// its own of the random device, the process, the thread and the host. The reply to `stats` has the
// number of the process and the time that it has used: with more digits the reply is longer.

#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <string_view>

#include "simulator/next_function.h"
#include "simulator/threads.h"

using carillon::simulator::in_simulation;
using carillon::simulator::next;

// Replaces the one of the C++ library.
std::random_device::result_type std::random_device::_M_getval() {
  if (in_simulation()) return carillon::simulator::random_number();
  result_type number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

extern "C" {

pid_t getpid() noexcept {
  constexpr pid_t kServer = 1'000;
  return in_simulation() ? kServer : next<"getpid">(::getpid)();
}

// RocksDB reads UUIDs by the C++ library, which calls this.
FILE* fopen64(const char* path, const char* mode) {
  if (!in_simulation() || std::string_view(path) != "/proc/sys/kernel/random/uuid")
    return next<"fopen64">(::fopen64)(path, mode);
  errno = ENOENT;
  return nullptr;
}

int gethostname(char* name, std::size_t size) noexcept {
  if (!in_simulation()) return next<"gethostname">(::gethostname)(name, size);
  constexpr std::string_view kName = "simulated";
  if (size <= kName.size()) {
    errno = ENAMETOOLONG;
    return -1;
  }
  name[kName.copy(name, size)] = '\0';
  return 0;
}

int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  if (!in_simulation()) return next<"getrusage">(::getrusage)(who, usage);
  *usage = {};
  return 0;
}
}
