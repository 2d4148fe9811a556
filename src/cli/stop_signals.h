// SIGTERM, SIGINT and SIGHUP through a descriptor, for commands that have to tidy up before they
// end.
//
//   StopSignals signals;
//   stream.interrupt_on(signals.fd());             // a wait ends with Interrupted
//   if (signals.came()) throw Failure("interrupted");
#pragma once

#include <csignal>

#include "base/file_descriptor.h"

namespace carillon::cli {

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
