// A child process that runs a command for a job, with the job's body as its standard input.
//
//   ChildProcess child({"./send-mail", "-v"}, {"CARILLON_JOB_ID=7"}, job.body);
//   while (!child.wait(5s, interrupt_fd)) client.touch(job.id);
//   child.exit_code() == 0
//
// The body is a file in memory, not a pipe: the worker is not blocked by a command that reads it
// late or never, and the command can seek in it. The command is in a process group of its own, so
// Ctrl-C at a terminal reaches the worker, but not the commands, which the worker lets finish.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/wait.h"

namespace carillon::cli {

// Returns the path of the program `name`, searched as execvp() does: in PATH, unless the name has a
// slash. Returns an empty string if there is no such executable file.
std::string find_program(const std::string& name);

// Not thread-safe; different threads may use different objects.
class ChildProcess {
 public:
  // Starts `command`. Its environment is that of this process, with `extra_environment`
  // ("NAME=value") added or replaced; its signals have their default actions and none is blocked.
  // It shares standard output and error with this process. Throws Failure if it cannot be started.
  // REQUIRES: `command` is not empty.
  ChildProcess(const std::vector<std::string>& command,
               const std::vector<std::string>& extra_environment, std::string_view body);

  // Calls kill() if the command still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns true once the command has ended, false if `limit` passed first. Throws Interrupted as
  // soon as `interrupt_fd` is readable.
  bool wait(Patience limit, int interrupt_fd);

  // Sends SIGKILL to the command's whole process group, and waits until the command has ended.
  void kill();

  // Returns true if the exit code was 0.
  // REQUIRES: wait() has returned true, or kill() was called.
  bool succeeded() const { return signal_ == 0 && exit_code_ == 0; }

  // Returns "exit 3" or "signal 9 (killed)". REQUIRES: as succeeded().
  std::string describe_end() const;

 private:
  void reap();

  pid_t pid_ = -1;
  base::FileDescriptor pid_fd_;  // becomes readable when the process ends
  bool running_ = true;
  int exit_code_ = 0;
  int signal_ = 0;  // the signal that ended it; 0: it exited
};

}  // namespace carillon::cli
