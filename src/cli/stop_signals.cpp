// Blocks the signals and reads them from a signalfd.

#include "cli/stop_signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "cli/error_text.h"
#include "cli/exit_status.h"
#include "cli/wait.h"

namespace carillon::cli {

StopSignals::StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = base::FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw Failure(fmt::format("cannot wait for signals: {}", error_text(errno)));
}

StopSignals::~StopSignals() {
  while (came()) consume();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::wait(int interrupt_fd) {
  wait_for(fd_.get(), POLLIN, std::nullopt, interrupt_fd);
  consume();
}

void StopSignals::consume() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) < 0 && errno == EINTR) {
  }
}

bool StopSignals::came() const {
  pollfd one{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace carillon::cli
