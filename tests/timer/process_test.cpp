// Where a timer service meets its process: fork(), signals, and a process that is stopped.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "carillon/timer/scoped_timer.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

// Runs `body` in a child, which ends with what it returns.
template <class Body>
pid_t in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int exit_code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// They shared one event, and took each other's wake-ups.
TEST(Fork, AServiceThatIsUsedInTheChildrenAloneWorksInEach) {
  TimerService timers;
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(in_child([&timers] {
      for (int round = 0; round < 20; ++round) {
        std::latch fired(1);
        timers.schedule_after(1ms, [&fired] { fired.count_down(); });
        const auto give_up = std::chrono::steady_clock::now() + 20s;
        while (!fired.try_wait()) {
          if (std::chrono::steady_clock::now() > give_up) return 1;
          std::this_thread::sleep_for(100us);
        }
      }
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_code_of(child), 0);
}

TEST(Fork, AServiceThatWasUsedBeforeSaysSoInTheChildAndANewOneWorksThere) {
  TimerService timers;
  TimerHandle handle = timers.schedule_after(1h, [] {});
  std::latch runs(1);
  timers.schedule_after(1ms, [&runs] { runs.count_down(); });
  runs.wait();
  const auto says_so = [](auto&& call) {
    try {
      call();
    } catch (const TimersForked& error) {
      return std::string_view(error.what()).find("before fork()") != std::string_view::npos;
    }
    return false;
  };
  const pid_t child = in_child([&] {
    if (!says_so([&] { timers.schedule_after(1ms, [] {}); })) return 1;
    if (!says_so([&] { static_cast<void>(timers.stop()); })) return 2;
    if (!says_so([&] { timers.drain(); })) return 3;
    if (!handle.cancel()) return 4;
      // The thread sanitizer allows no threads in a child of a process that had some; the address
      // sanitizer has locks there that a thread of the parent may have held.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    TimerService own;
    std::latch fired(1);
    own.schedule_after(1ms, [&fired] { fired.count_down(); });
    fired.wait();
#endif
    timers.~TimerService();  // waits for nobody
    return 0;
  });
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(timers.pending(), 1U);
  std::latch fired(1);
  timers.schedule_after(1ms, [&fired] { fired.count_down(); });
  fired.wait();
}

TEST(Fork, AServiceThatWasNeverUsedIsDestroyedInTheChild) {
  TimerService().schedule_after(1h, [] {});  // forks are counted from here on
  TimerService unused;
  EXPECT_EQ(exit_code_of(in_child([&] {
              static_cast<void>(unused.stop());
              return 0;
            })),
            0);
}

TEST(Fork, AScopedTimerWhoseTaskTheParentIsRunningDoesNotWaitInTheChild) {
  TimerService timers;
  std::latch runs(1);
  std::latch go_on(1);
  ScopedTimer timer(timers.schedule_after(0s, [&] {
    runs.count_down();
    go_on.wait();
  }));
  runs.wait();
  const pid_t child = in_child([&] {
    ::alarm(20);  // ends a child that waits for ever
    if (timer->reschedule_after(1s)) return 1;
    return timer.reset() ? 2 : 0;
  });
  EXPECT_EQ(exit_code_of(child), 0);
  go_on.count_down();
}

// SIGSTOP, a debugger and `docker pause` stop a process; its time goes on. The timer fired by what
// was left of its delay after the process went on.
TEST(Stopped, ATimerThatHasBecomeDueMeanwhileFiresWhenTheProcessGoesOn) {
  using Clock = std::chrono::steady_clock;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // ends a child that waits for ever
    TimerService timers;
    std::latch fired(1);
    timers.schedule_after(2s, [&] {
      const std::int64_t at = Clock::now().time_since_epoch().count();
      if (::write(ends[1], &at, sizeof at) == sizeof at) fired.count_down();
    });
    std::this_thread::sleep_for(100ms);  // so that the timer thread sleeps by now
    const std::int64_t scheduled = 0;
    if (::write(ends[1], &scheduled, sizeof scheduled) != sizeof scheduled) ::_exit(1);
    fired.wait();
    ::_exit(0);
  }
  ::close(ends[1]);  // so that the reads end if the child does
  std::int64_t from_child = 1;
  ASSERT_EQ(::read(ends[0], &from_child, sizeof from_child), ssize_t{sizeof from_child});
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  std::this_thread::sleep_for(2100ms);
  const std::int64_t goes_on = Clock::now().time_since_epoch().count();
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::read(ends[0], &from_child, sizeof from_child), ssize_t{sizeof from_child});
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_LT(std::chrono::nanoseconds(from_child - goes_on), 1s);
  ::close(ends[0]);
}

TEST(Signals, TasksGetThoseThatTheyCauseThemselvesAndPROF) {
  for (const TimerExecutor& executor : {TimerExecutor::timer_thread(), TimerExecutor::pool(1)}) {
    TimerService timers({.executor = executor});
    sigset_t blocked;
    std::latch seen(1);
    timers.schedule_after(0s, [&] {
      ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      seen.count_down();
    });
    seen.wait();
    for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF})
      EXPECT_EQ(::sigismember(&blocked, open), 0) << open;
    for (const int closed : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM})
      EXPECT_EQ(::sigismember(&blocked, closed), 1) << closed;
  }
}

}  // namespace
}  // namespace carillon::testing
