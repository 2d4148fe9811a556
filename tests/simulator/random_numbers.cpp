// Numbers that are the same each time a world is run: random ones, and those of the process.
//
// The store gives each directory a random identity, and RocksDB each of its sessions. Their bytes
// are in files, so that what a power loss leaves of these would differ from run to run. The reply
// to `stats` has the number of the process and the time that it has used: with more digits the
// reply is longer.

#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <random>

#include "simulator/next_function.h"
#include "simulator/threads.h"

using carillon::simulator::in_simulation;
using carillon::simulator::next;

// Of the C++ library, which this replaces.
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

int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  if (!in_simulation()) return next<"getrusage">(::getrusage)(who, usage);
  *usage = {};
  return 0;
}
}
