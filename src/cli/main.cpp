// The main function of the `carillon` program. Before all else it makes sure that descriptors 0, 1
// and 2 are open (`carillon put x >&-`, or a daemon that closed them). Without that, the next file
// or socket that is opened would get the free number, and output for the user would go there: the
// body of a job would reach the server as commands, or log lines a file of the store.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/output.h"

namespace {

bool is_closed(int fd) {
  return ::fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

// Opens /dev/null at each closed descriptor of 0, 1 and 2, in the wrong direction: 0 for writing, 1
// and 2 for reading. So reading from 0 and writing to 1 and 2 still fail with EBADF, and no command
// mistakes a missing input for an empty one, or deletes a job whose body was not printed. Returns
// false if one stays closed because /dev/null cannot be opened.
bool occupy_standard_descriptors() {
  // In this order: open() returns the lowest free number, so each closed descriptor gets its own.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (is_closed(fd) && ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!occupy_standard_descriptors()) {
    carillon::cli::remark(
        "carillon: a standard descriptor is closed, and /dev/null cannot be opened in its place");
    return carillon::cli::kFailure;
  }
  return carillon::cli::run_command_line(argc, argv);
}
