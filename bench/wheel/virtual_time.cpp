// The functions of the C library with which event loops read the clock and sleep, in virtual time.
// Shared libraries, too, call the functions here instead of those of the C library.
#include "virtual_time.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <cerrno>

using carillon::bench::VirtualTime;

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  time->tv_sec = static_cast<time_t>(VirtualTime::milliseconds / 1000);
  time->tv_nsec = static_cast<long>(VirtualTime::milliseconds % 1000 * 1'000'000);
  return 0;
}

int epoll_wait(int /*epoll*/, epoll_event* /*events*/, int /*room*/, int timeout) {
  if (timeout > 0) VirtualTime::milliseconds += static_cast<std::uint64_t>(timeout);
  return 0;
}

int epoll_pwait(int epoll, epoll_event* events, int room, int timeout, const sigset_t* /*mask*/) {
  return epoll_wait(epoll, events, room, timeout);
}

// epoll_wait() finds no events, so there is nothing to register.
int epoll_ctl(int /*epoll*/, int /*operation*/, int /*file*/, epoll_event* /*event*/) noexcept {
  return 0;
}

// Without a kernel timer, Asio sleeps by the timeout of epoll_wait(), as the others do.
int timerfd_create(int /*clock*/, int /*flags*/) noexcept {
  errno = ENOSYS;
  return -1;
}

}  // extern "C"
