// A command that runs for a job: started with the job's body as its standard input, waited for, or
// killed.
//
//   ChildProcess child({"./send-mail", "-v"}, {"CARILLON_JOB_ID=7"}, job.body);
//   while (!child.wait(5s, interrupt_fd)) client.touch(job.id);
//   child.exit_code() == 0
//
// The body is a file in memory, not a pipe: a command that never reads it, or reads it late, blocks
// nobody, and one that seeks can. The command is in a process group of its own, so that Ctrl-C at a
// terminal reaches the worker and not the commands it wants to let finish.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/wait.h"

namespace carillon::cli {

/// Where the program `name` is found as execvp() looks for it, in PATH unless it has a slash;
/// empty: nowhere, or it is not executable.
std::string find_program(const std::string& name);

/// Not thread-safe, but any number may be used by one thread each.
class ChildProcess {
 public:
  /// Starts `command` with `extra_environment` ("NAME=value") added to this process's, and its
  /// signals as they are by default. Standard output and error are this process's. Throws Failure.
  /// REQUIRES: `command` is not empty.
  ChildProcess(const std::vector<std::string>& command,
               const std::vector<std::string>& extra_environment, std::string_view body);

  /// If it still runs, kills it as kill() does.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns true once it has ended, false after `limit`. Throws Interrupted as soon as
  /// `interrupt_fd` is readable.
  bool wait(Patience limit, int interrupt_fd);

  /// SIGKILL to its whole process group, and waits for its end.
  void kill();

  /// How it ended. REQUIRES: wait() has returned true, or kill() was called.
  bool succeeded() const { return signal_ == 0 && exit_code_ == 0; }
  std::string describe_end() const;  // "exit 3", "signal 9 (killed)"

 private:
  void reap();

  pid_t pid_ = -1;
  base::FileDescriptor pid_fd_;  // becomes readable when the process ends
  bool running_ = true;
  int exit_code_ = 0;
  int signal_ = 0;  // 0: it was no signal that ended it
};

}  // namespace carillon::cli
