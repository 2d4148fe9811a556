// TimerService: calls tasks at their time, any number of them, scheduled and cancelled from any
// thread.
//
//   carillon::TimerService timers;
//   carillon::TimerHandle timeout = timers.schedule_after(30s, [call] { call->fail("timed out"); });
//   ...
//   if (timeout.cancel()) call->succeed(reply);     // true: the task will never run. Exactly one of the two wins
//
//   timers.schedule_every(10s, [] { report(); });
//   timers.schedule_at(midnight, [] { rotate_logs(); });             // a system_clock time follows the wall clock
//   timers.schedule_cron("0 9 * * MON-FRI", "Europe/Berlin", [] { say_good_morning(); });
//   for (carillon::Unprocessed& rest : timers.stop()) save(rest.due);
//
// Why this one: scheduling and cancelling take no lock, never wait, and touch little that another
// thread touches; timers are never early; an idle service sleeps until its next timer, however far;
// what a cancelled timer held is freed at once; and every timer ends as exactly one of fired,
// cancelled, returned.
//
// How it works
// ------------
// Threads are spread over shards, each a timing wheel with a door (detail/door.h). Who schedules or
// cancels goes in, if nobody is inside, and works on the wheel itself; otherwise it leaves a note
// for whoever is inside. One timer thread sleeps until the next deadline of all shards, collects
// what is due, and hands it to the executor.
//
// Contracts
// ---------
//  - Never early: a task starts at or after its deadline, on the clock that the deadline is on. The
//    deadline of schedule_after() is now, at the call, and the delay; deadlines are kept in
//    nanoseconds.
//  - Late by up to one tick (TimerOptions::tick) and its slack, and by what the machine and the
//    executor add: stats().lateness.
//  - Deadlines in the past are due at once; those beyond the range of 64-bit nanoseconds (292
//    years) become its end.
//  - Slack: with `slack`, the task may start anywhere up to so much after its deadline: at a time
//    that it can share with others.
//  - Delays are on the steady clock, which stops while the machine is suspended and does not notice
//    when the wall clock is set. Times of the system_clock are on the wall clock: if that is set,
//    or the machine was suspended, the timer fires when it shows the time.
//  - A task is destroyed on the thread that ran it, after it ran, or by who cancels the timer,
//    within cancel(). No lock is held then: it may do what it likes, such as schedule and cancel
//    timers.
//  - What a task throws goes to TimerOptions::on_error; the timer counts as fired, and a periodic
//    one goes on.
//  - A periodic timer never runs twice at the same time.
//  - The timer thread starts with the first timer.
//  - Memory: 128 bytes per timer that is pending, and 8 to 24 in the wheel; tasks of more than 48
//    bytes are on the heap beside. The memory is kept for other timers, of any service of the
//    process, and not given back to the system.
//
// Thread safety: any thread may call anything at any time, also from inside tasks, except that the
// destructor must be the last call. It may be called from inside a task.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "carillon/timer/cron_schedule.h"
#include "carillon/timer/detail/calendar_task.h"
#include "carillon/timer/detail/durations.h"
#include "carillon/timer/detail/timer_block.h"
#include "carillon/timer/sleep.h"
#include "carillon/timer/task.h"
#include "carillon/timer/timer_errors.h"
#include "carillon/timer/timer_handle.h"
#include "carillon/timer/timer_options.h"
#include "carillon/timer/timer_stats.h"

namespace carillon {

// A timer that stop() or drain() returned: it did not run, or was periodic.
struct Unprocessed {
  TimerHandle handle;  // over; equal to the one that scheduling it returned
  Task task;
  std::chrono::nanoseconds due;        // since the epoch of its clock
  bool on_wall_clock = false;          // system_clock; else steady_clock
  std::chrono::nanoseconds period{0};  // 0: one-shot, or by a calendar
  bool by_calendar = false;            // of schedule_cron() or schedule_by()
};

class TimerService {
 public:
  // Throws std::invalid_argument if the tick is less than 1 ns.
  explicit TimerService(TimerOptions options = {});
  TimerService(const TimerService&) = delete;
  TimerService& operator=(const TimerService&) = delete;
  // As stop(); the tasks it returns are destroyed.
  ~TimerService();

  // --- one-shot
  //
  // Each schedules `task`, called without arguments, and returns its handle. O(1). They throw
  // TimersStopped, TooManyTimers, std::bad_alloc, std::system_error if the timer thread cannot be
  // started, and what moving the task throws; nothing was scheduled then. A negative slack counts
  // as none.
  template <class Rep, class Period, class F>
  TimerHandle schedule_after(std::chrono::duration<Rep, Period> delay, F&& task,
                             std::chrono::nanoseconds slack = {}) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_after(timer, detail::to_ns(delay), slack);
  }
  template <class Duration, class F>
  TimerHandle schedule_at(std::chrono::time_point<std::chrono::steady_clock, Duration> time,
                          F&& task, std::chrono::nanoseconds slack = {}) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_at(timer, detail::TimerKind::kSteady, detail::to_ns(time.time_since_epoch()),
                    slack);
  }
  template <class Duration, class F>
  TimerHandle schedule_at(std::chrono::time_point<std::chrono::system_clock, Duration> time,
                          F&& task, std::chrono::nanoseconds slack = {}) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_at(timer, detail::TimerKind::kWall, detail::to_ns(time.time_since_epoch()), slack);
  }

  // --- periodic, on the steady clock
  //
  // As above; they also throw std::invalid_argument if the period is not positive.

  // At a fixed rate: for the first time one period from now, and then at whole periods from there,
  // whatever each run takes: no drift.
  template <class Rep, class Period, class F>
  TimerHandle schedule_every(std::chrono::duration<Rep, Period> period, F&& task,
                             Missed missed = Missed::kSkip) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_periodic(timer, detail::to_ns(period), repeat_of(missed));
  }

  // With a fixed delay between the end of each run and the start of the next, and before the first.
  template <class Rep, class Period, class F>
  TimerHandle schedule_with_fixed_delay(std::chrono::duration<Rep, Period> delay, F&& task) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_periodic(timer, detail::to_ns(delay), detail::Repeat::kAfterRun);
  }

  // --- by a calendar, on the wall clock
  //
  // Periodic timers in all else: never two runs at the same time; cancelled, moved and returned as
  // those are.
  //  - Machine suspended, or wall clock set forward, beyond the next time: it runs at once. Further
  //    times that have passed by the end of a run are left out, or with Missed::kBurst have one run
  //    each. (kDelay is as kSkip here.)
  //  - Wall clock set back by up to 3 hours: no time comes twice; the timer waits until the clock
  //    has caught up. By more, the clock had been wrong: the timer goes on from the new time.

  // By a cron expression in a time zone: "0 9 * * MON-FRI", "Europe/Berlin". What can be said, and
  // what happens when the clocks of the zone change: carillon/timer/cron_schedule.h. To link:
  // carillon::cron. Throws as above, CronError for the expression, std::invalid_argument for the
  // zone.
  template <class F>
  TimerHandle schedule_cron(std::string_view expression, std::string_view zone, F&& task,
                            Missed missed = Missed::kSkip) {
    return schedule_cron(CronSchedule(expression, zone), std::forward<F>(task), missed);
  }
  // By one that is there already: O(1), and many timers share it.
  template <class F>
  TimerHandle schedule_cron(CronSchedule schedule, F&& task, Missed missed = Missed::kSkip) {
    return schedule_by(
        [schedule = std::move(schedule)](WallTime after) { return schedule.next(after); },
        std::forward<F>(task), missed);
  }

  // By a calendar of your own: `next_time(WallTime after)` returns, as std::optional, the first
  // system_clock time after that one, or nothing if there is none. It is called here, and then
  // after each run by who ran the task, never by two threads at once. Without a next time the timer
  // is over, and the handle empty if there was none at all. What next_time() throws here is thrown
  // on; later it goes to on_error, and ends the timer. So does the std::logic_error that an answer
  // not later than the question makes.
  template <class NextTime, class F>
  requires(detail::Calendar<std::decay_t<NextTime>>) TimerHandle
      schedule_by(NextTime&& next_time, F&& task, Missed missed = Missed::kSkip) {
    using CalendarTask = detail::CalendarTask<std::decay_t<NextTime>, std::decay_t<F>>;
    detail::NewTimer timer(std::in_place,
                           CalendarTask(std::forward<NextTime>(next_time), std::forward<F>(task)));
    return start_by_calendar(timer, missed);
  }

  // --- coroutines (sleep.h; and with_timeout.h)
  //
  // co_await timers.sleep_for(10ms). With a stop token the result is true if the time has come, and
  // false if the token was asked to stop before. The coroutine resumes on the executor; it gets
  // TimersStopped if the service is stopped.
  template <class Rep, class Period>
  Sleep sleep_for(std::chrono::duration<Rep, Period> delay) noexcept {
    return Sleep({this, detail::TimerKind::kSteady, true, detail::to_ns(delay)});
  }
  template <class Rep, class Period>
  StoppableSleep sleep_for(std::chrono::duration<Rep, Period> delay,
                           std::stop_token stop) noexcept {
    return {{this, detail::TimerKind::kSteady, true, detail::to_ns(delay)}, std::move(stop)};
  }
  template <class Clock, class Duration>
  Sleep sleep_until(std::chrono::time_point<Clock, Duration> time) noexcept {
    return Sleep({this, kind_of<Clock>(), false, detail::to_ns(time.time_since_epoch())});
  }
  template <class Clock, class Duration>
  StoppableSleep sleep_until(std::chrono::time_point<Clock, Duration> time,
                             std::stop_token stop) noexcept {
    return {{this, kind_of<Clock>(), false, detail::to_ns(time.time_since_epoch())},
            std::move(stop)};
  }

  // --- the end

  // Ends the service: refuses timers from now on, waits until the tasks that are running have ended
  // (but not for the one it is called from, nor for an executor of your own), ends its threads, and
  // returns all timers that have not run, and periodic ones, by deadline. A timer that is being
  // scheduled meanwhile is either refused or returned. When called again, or by two threads, one
  // gets the timers, and the others at once nothing. Throws std::bad_alloc if there is no memory to
  // return them in: the service has ended then, and the next call returns them.
  std::vector<Unprocessed> stop();

  // Refuses timers from now on, waits until all that were scheduled for once have run or been
  // cancelled, and then does as stop(): what it returns is periodic. Periodic timers go on
  // meanwhile. REQUIRES: not called from inside a task (std::logic_error).
  std::vector<Unprocessed> drain();

  // As drain(), but waits no longer than that, in real time, and returns what was left.
  std::vector<Unprocessed> drain_for(std::chrono::nanoseconds at_most);

  TimerStats stats() const;

  // stats().pending, for less.
  std::uint64_t pending() const noexcept;

 private:
  friend class detail::Sleeper;

  template <class Clock>
  static constexpr detail::TimerKind kind_of() noexcept {
    constexpr bool kSteady = std::is_same_v<Clock, std::chrono::steady_clock>;
    static_assert(kSteady || std::is_same_v<Clock, std::chrono::system_clock>,
                  "times are of one of these two clocks");
    return kSteady ? detail::TimerKind::kSteady : detail::TimerKind::kWall;
  }

  static constexpr detail::Repeat repeat_of(Missed missed) noexcept {
    return missed == Missed::kSkip    ? detail::Repeat::kSkip
           : missed == Missed::kBurst ? detail::Repeat::kBurst
                                      : detail::Repeat::kDelay;
  }

  TimerHandle start_after(detail::NewTimer& timer, std::int64_t delay,
                          std::chrono::nanoseconds slack);
  TimerHandle start_at(detail::NewTimer& timer, detail::TimerKind kind, std::int64_t time,
                       std::chrono::nanoseconds slack);
  TimerHandle start_periodic(detail::NewTimer& timer, std::int64_t period, detail::Repeat repeat);
  TimerHandle start_by_calendar(detail::NewTimer& timer, Missed missed);

  std::shared_ptr<detail::TimerCore> core_;
};

}  // namespace carillon
