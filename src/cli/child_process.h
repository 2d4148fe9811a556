// A child process that runs a command for a job, with the job's body as its standard input.
//
//   ChildProcess child({"./send-mail", "-v"}, {"CARILLON_JOB_ID=7"}, job.body);
//   while (!child.wait(5s, interrupt_fd)) client.touch(job.id);
//   child.exit_code() == 0
//
// The body is a file in memory, not a pipe: the worker is not blocked by a command that reads it
// late or never, and the command can seek in it. The command is in a process group of its own, so
// Ctrl-C at a terminal reaches the worker, but not the commands, which the worker lets finish.
//
// The command does not outlive its worker: the kernel kills it when the thread that started it ends
// (PR_SET_PDEATHSIG), and a ProcessGuard what it has started itself.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/wait.h"

namespace carillon::cli {

class ProcessGuard;

struct ChildSettings {
  int standard_error = -1;              // a descriptor for it; -1: that of this process
  const ProcessGuard* guard = nullptr;  // must outlive the child
};

// Returns the path of the program `name`, searched as execvp() does: in PATH, unless the name has a
// slash. Returns an empty string if there is no such executable file.
std::string find_program(const std::string& name);

// Raises this process's limit of descriptors (`ulimit -n`) as far as allowed. The commands that it
// runs have the limit that it had. REQUIRES: no other thread runs a command.
void raise_descriptor_limit();

// Not thread-safe; different threads may use different objects.
class ChildProcess {
 public:
  // Starts `command`. Its environment is that of this process, with `extra_environment`
  // ("NAME=value") added or replaced; its signals have their default actions and none is blocked.
  // It shares standard output with this process. Throws Failure if it cannot be started.
  // REQUIRES: `command` is not empty. The thread that calls this outlives the object.
  ChildProcess(const std::vector<std::string>& command,
               const std::vector<std::string>& extra_environment, std::string_view body,
               const ChildSettings& settings = {});

  // Calls kill() if the command still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns true once the command has ended, false if `limit` passed first. Throws Interrupted as
  // soon as `interrupt_fd` is readable.
  bool wait(Patience limit, int interrupt_fd);

  // Asks the command's whole process group to end: sends SIGTERM.
  void terminate();

  // Sends SIGKILL to the command's whole process group, and waits until the command has ended.
  void kill();

  // Returns true if the exit code was 0.
  // REQUIRES: wait() has returned true, or kill() was called.
  bool succeeded() const { return signal_ == 0 && exit_code_ == 0; }

  // Returns "exit status 3" or "killed by signal 9 (SIGKILL)". REQUIRES: as succeeded().
  std::string describe_end() const;

 private:
  void reap();

  const ProcessGuard* guard_;
  pid_t pid_ = -1;
  base::FileDescriptor pid_fd_;  // becomes readable when the process ends
  bool running_ = true;
  int exit_code_ = 0;
  int signal_ = 0;  // the signal that ended it; 0: it exited
};

}  // namespace carillon::cli
