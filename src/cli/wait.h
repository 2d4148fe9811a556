// Waits that a signal or another thread can end.
//
//   const StopSignals signals;                     // SIGTERM, SIGINT and SIGHUP, for this command
//   stream.interrupt_on(signals.fd());             // a wait of the stream ends with Interrupted
//   if (!wait_for(fd, POLLIN, 5s, signals.fd())) throw Failure("nothing came within 5 s");
//   if (signals.came()) throw Failure("interrupted");
//
// A command that has to tidy up before it ends needs this: a signal reaches a thread that waits in
// a read as a descriptor that is readable.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
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

// The time between two questions of a command that waits for a change in the server.
inline constexpr std::chrono::milliseconds kLook{200};

// Returns the wall clock: milliseconds since 1970, UTC.
std::uint64_t utc_now_ms();

inline std::chrono::milliseconds time_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               began);
}

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

// While the object exists, these signals are blocked in this thread and in the threads that it
// starts. Its destructor consumes those that have come: they do not end the process.
class StopSignals {
 public:
  // Throws Failure.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Waits for a signal and consumes it. Throws Interrupted (wait.h) once `interrupt_fd` is
  // readable.
  void wait(int interrupt_fd);

  // A descriptor that is readable while a signal has come and was not consumed.
  int fd() const { return fd_.get(); }
  bool came() const;

 private:
  void consume();

  sigset_t before_{};
  base::FileDescriptor fd_;
};

}  // namespace carillon::cli
