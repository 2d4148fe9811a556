// Waits for a descriptor with a time limit and a second descriptor that ends the wait. This is how
// a signal reaches a thread that waits in a read.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>

#include "base/file_descriptor.h"

namespace carillon::cli {

// The longest time to wait. No value means for ever, and so does a hundred years or more.
using Patience = std::optional<std::chrono::milliseconds>;

// Thrown out of a wait when its `interrupt_fd` is readable.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// Returns true once `fd` is ready for `events` (POLLIN, POLLOUT) or has an error, false if
// `patience` passed first. Throws Interrupted once `interrupt_fd` is readable, also if `fd` is
// ready at the same time. A descriptor of -1 is never ready.
bool wait_for(int fd, short events, Patience patience, int interrupt_fd = -1);

// A one-time event that can end any number of waits in any threads. Thread-safe.
class Event {
 public:
  Event();

  // Further calls have no effect.
  void set();
  bool is_set() const;

  // A descriptor that is readable from set() on, for ever.
  int fd() const { return fd_.get(); }

 private:
  base::FileDescriptor fd_;
};

}  // namespace carillon::cli
