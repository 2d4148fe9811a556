// The command that `carillon work` runs for a job: the child process, a guard that ends it together
// with the worker, and its standard error.
//
//   ProcessGuard guard;                              // one for the worker
//   ErrorOutput errors;                              // one for each slot
//   errors.begin();
//   ChildProcess child({"./send-mail", "-v"}, {"CARILLON_JOB_ID=7"}, job.body,
//                      {.standard_error = errors.fd(), .guard = &guard});
//   while (!child.wait(5s, interrupt_fd)) client.touch(job.id);
//   if (!child.succeeded()) client.fail(job.id, errors.last_line());   // "no such mailbox"
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/wait.h"

namespace carillon::cli {

// A small process that kills this worker's commands when the worker dies, even by `kill -9`.
//
// The kernel can send a signal to a child whose parent dies (PR_SET_PDEATHSIG), but not to that
// child's own children: `sh -c "..."` would die, and what it runs would go on. So the guard has the
// process groups of all running commands, and kills each of them. It waits for the end of a socket
// whose other end only this process has. It is in a session of its own, so that what kills the
// worker at a terminal does not reach it.
//
// A command that leaves its process group (a daemon) is not killed.
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

// A child process that runs a command, with the job's body as its standard input.
//
// The body is a file in memory, not a pipe: the worker is not blocked by a command that reads it
// late or never, and the command can seek in it. The command is in a process group of its own, so
// Ctrl-C at a terminal reaches the worker, but not the commands, which the worker lets finish.
//
// The command does not outlive its worker: the kernel kills it when the thread that started it ends
// (PR_SET_PDEATHSIG), and the guard kills what it has started itself.
//
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

// The standard error of the commands of one slot: what they write is passed on to this process's
// standard error as it comes, and the last line is remembered, for the story of a job that fails.
//
// It is a pipe that a thread empties. The pipe stays open for the next commands, so that a process
// that a command has left behind can still write. Such a line may be taken for one of the next
// command. Commands see a pipe, and no terminal.
//
// Thread-safe.
class ErrorOutput {
 public:
  // Throws Failure.
  ErrorOutput();
  ~ErrorOutput();
  ErrorOutput(const ErrorOutput&) = delete;
  ErrorOutput& operator=(const ErrorOutput&) = delete;

  // The end of the pipe that commands write to.
  int fd() const { return written_.get(); }

  // A command begins: forgets all lines.
  void begin();

  // Returns the last line since begin() that is not blank, without its line end and of at most
  // kMost bytes, or an empty text. What was written before the call is taken into account.
  std::string last_line();

  static constexpr std::size_t kMost = 900;

 private:
  void pass_on();
  void empty_the_pipe();
  void remember(std::string_view bytes);

  base::FileDescriptor read_;
  base::FileDescriptor written_;
  Event stop_;
  std::mutex mutex_;  // protects all below
  std::string line_;  // that has not ended
  std::string last_;
  std::thread thread_;
};

}  // namespace carillon::cli
