// Forks the guard, and tells it of process groups: a positive number to watch one, the negative one
// to forget it.

#include "cli/process_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <set>

#include "cli/error_text.h"
#include "cli/exit_status.h"

namespace carillon::cli {
namespace {

// Keeps nothing of the worker open, so that whoever waits for the end of its output does not wait
// for the guard.
void let_go_of_all(int but) {
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  ::dup2(but, STDERR_FILENO + 1);
  ::close_range(STDERR_FILENO + 2, ~0U, 0);
  if (::chdir("/") != 0) return;  // else the worker's directory could not be unmounted
}

[[noreturn]] void stand_guard(int from_worker) {
  ::setsid();
  ::prctl(PR_SET_NAME, "carillon-guard");
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) std::signal(number, SIG_IGN);
  let_go_of_all(from_worker);
  std::set<pid_t> groups;
  pid_t told = 0;
  while (true) {
    const ssize_t count = ::recv(STDERR_FILENO + 1, &told, sizeof told, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof told) break;
    if (told > 0) groups.insert(told);
    if (told < 0) groups.erase(-told);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

// If the guard is gone, the commands do without.
void tell(int fd, pid_t what) {
  while (::send(fd, &what, sizeof what, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace

ProcessGuard::ProcessGuard() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Failure(fmt::format("cannot guard commands: {}", error_text(errno)));
  const base::FileDescriptor guards(ends[0]);
  to_guard_ = base::FileDescriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) stand_guard(guards.get());
  if (pid_ < 0) throw Failure(fmt::format("cannot guard commands: {}", error_text(errno)));
}

ProcessGuard::~ProcessGuard() {
  to_guard_ = base::FileDescriptor();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ProcessGuard::watch(pid_t group) const noexcept {
  tell(to_guard_.get(), group);
}

void ProcessGuard::forget(pid_t group) const noexcept {
  tell(to_guard_.get(), -group);
}

}  // namespace carillon::cli
