// The standard error of the commands of one slot: what they write is passed on to this process's
// standard error as it comes, and the last line is remembered, to be reported with a failure.
//
//   ErrorOutput errors;
//   errors.begin();
//   ChildProcess child({"./send-mail"}, {}, job.body, {.standard_error = errors.fd()});
//   child.wait(...);
//   errors.last_line() == "no such mailbox"
//
// It is a pipe that a thread empties. The pipe stays open for the next commands, so that a process
// that a command has left behind can still write. Such a line may be taken for one of the next
// command. Commands see a pipe, and no terminal.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/file_descriptor.h"
#include "cli/wait.h"

namespace carillon::cli {

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
  // kMost bytes; empty if there is none. What was written before the call is taken into account.
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
