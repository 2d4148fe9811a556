// A small process that kills this worker's commands when the worker dies, even by `kill -9`.
//
//   ProcessGuard guard;
//   ChildProcess child({"./send-mail"}, {}, job.body, {.guard = &guard});
//
// The kernel can send a signal to a child whose parent dies (PR_SET_PDEATHSIG), but not to that
// child's own children: `sh -c "..."` would die, and what it runs would go on. So the guard has the
// process groups of all running commands, and kills each of them. It waits for the end of a pipe
// whose other end only this process has. It is in a session of its own, so that what kills the
// worker at a terminal does not reach it.
//
// A command that leaves its process group (a daemon) is not killed.
#pragma once

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace carillon::cli {

class ProcessGuard {
 public:
  // Throws Failure. REQUIRES: this process has one thread.
  ProcessGuard();

  // Ends the guard. It kills the groups that it still watches.
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

  // From now on, the process group dies with this process. May be called from any thread, and
  // between fork() and exec: a command that runs is a command that is watched.
  void watch(pid_t group) const noexcept;

  // The process group may live on. REQUIRES: its leader was not reaped yet, or another group could
  // have its number.
  void forget(pid_t group) const noexcept;

 private:
  pid_t pid_ = -1;
  base::FileDescriptor to_guard_;
};

}  // namespace carillon::cli
