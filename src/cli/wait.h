// Waiting for a descriptor, with a limit, and so that another one can end the wait: how a signal
// reaches a thread that is in the middle of a read.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>

#include "base/file_descriptor.h"

namespace carillon::cli {

/// How long to wait while nothing happens; none: for ever. More than a hundred years count as for
/// ever.
using Patience = std::optional<std::chrono::milliseconds>;

/// The descriptor that was to end a wait became readable.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

/// Returns true once `fd` is ready for `events` (POLLIN, POLLOUT), or has an error, false after
/// `patience`. Throws Interrupted once `interrupt_fd` is readable, which comes first if both are.
/// Either may be -1: never ready.
bool wait_for(int fd, short events, Patience patience, int interrupt_fd = -1);

/// Something that happens once, and that any number of waits in any threads can be ended by.
class Event {
 public:
  Event();

  /// Safe to call from any thread, and again.
  void set();
  bool is_set() const;

  /// Readable from set() on, for ever.
  int fd() const { return fd_.get(); }

 private:
  base::FileDescriptor fd_;
};

}  // namespace carillon::cli
