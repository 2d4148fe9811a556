// Opens /dev/null at closed standard descriptors.

#include "cli/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace carillon::cli {
namespace {

bool is_closed(int fd) {
  return ::fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

}  // namespace

bool occupy_standard_descriptors() {
  // In this order: open() returns the lowest free number, so each closed descriptor gets its own.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (is_closed(fd) && ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      return false;
  }
  return true;
}

}  // namespace carillon::cli
