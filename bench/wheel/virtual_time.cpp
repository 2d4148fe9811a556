// The functions of the C library by which event loops read the clock and sleep, in virtual time.
// Those of this program come before those of the C library for every shared library, too.
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

// Nothing that is registered is ever waited for.
int epoll_ctl(int /*epoll*/, int /*operation*/, int /*file*/, epoll_event* /*event*/) noexcept {
  return 0;
}

// Asio sleeps in a timer of the kernel's if it can get one, else by epoll_wait's timeout, as the
// others do.
int timerfd_create(int /*clock*/, int /*flags*/) noexcept {
  errno = ENOSYS;
  return -1;
}

}  // extern "C"
