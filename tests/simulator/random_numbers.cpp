// Random numbers that are the same each time a world is run.
//
// The store gives each directory a random identity, and RocksDB each of its sessions. Their bytes
// are in files, so that what a power loss leaves of these would differ from run to run.

#include <sys/random.h>

#include <random>

#include "simulator/threads.h"

// Of the C++ library, which this replaces.
std::random_device::result_type std::random_device::_M_getval() {
  if (carillon::simulator::in_simulation()) return carillon::simulator::random_number();
  result_type number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}
