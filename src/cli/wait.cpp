// Waits with poll(), and reads signals from a signalfd.

#include "cli/wait.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "cli/exit_status.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the time until `deadline` for poll(): milliseconds, rounded up so that the caller does
// not spin in the last one; -1 means for ever.
int poll_timeout(std::optional<Clock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

}  // namespace

bool wait_for(int fd, short events, Patience patience, int interrupt_fd) {
  std::optional<Clock::time_point> deadline;
  // A longer wait could overflow the clock, whose range is 292 years.
  if (patience && *patience < std::chrono::years(100)) deadline = Clock::now() + *patience;

  std::array<pollfd, 2> fds{{{.fd = fd, .events = events, .revents = 0},
                             {.fd = interrupt_fd, .events = POLLIN, .revents = 0}}};
  while (true) {
    const int ready = ::poll(fds.data(), fds.size(), poll_timeout(deadline));
    if (ready < 0 && errno != EINTR)
      throw Failure(fmt::format("cannot wait: {}", error_text(errno)));
    if (ready > 0 && fds[1].revents != 0) throw Interrupted();
    if (ready > 0) return true;
    if (ready == 0 && deadline && Clock::now() >= *deadline) return false;
  }
}

std::uint64_t utc_now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(now).count());
}

Event::Event() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw Failure(fmt::format("cannot create an event: {}", error_text(errno)));
}

void Event::set() {
  ::eventfd_write(fd_.get(), 1);
}

bool Event::is_set() const {
  pollfd one{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

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
