// TimerService: calls tasks at their time. Any number of them; any thread schedules and cancels.
//
//   carillon::TimerService timers;
//   auto timeout = timers.schedule_after(30s, [call] { call->fail("timed out"); });
//   ...
//   if (timeout.cancel()) call->succeed(reply);  // true: the task will never run
//
//   timers.schedule_every(10s, [](carillon::TimerHandle self) {
//     if (!report()) self.cancel();  // after this run
//   });
//   timers.schedule_at(midnight, [] { rotate_logs(); });  // system_clock: follows the wall clock
//   timers.schedule_cron("0 9 * * MON-FRI", "Europe/Berlin", [] { say_good_morning(); });
//   for (carillon::Unprocessed& rest : timers.stop()) save(rest.due);
//
// Why this one: scheduling and cancelling take no lock, never wait, and touch little that another
// thread touches. Timers are never early. An idle service sleeps until its next timer, however far
// away that is. cancel() destroys the task at once (that of a periodic timer that is running: after
// that run). Every timer ends in exactly one way: it fires, is cancelled, or is returned by stop().
//
// How it works
// ------------
// Threads are spread over shards. A shard is a timing wheel with a door (detail/door.h), which lets
// in one thread at a time. A thread that schedules or cancels enters if nobody is inside, and works
// on the wheel itself; otherwise it leaves a note, which the thread inside reads before it leaves.
// One timer thread sleeps until the next deadline of all shards, collects the timers that are due,
// and hands them to the executor.
//
// Contracts
// ---------
//  - Never early: a task starts at or after its deadline, on the clock of the deadline. The
//    deadline of schedule_after() is the time of the call plus the delay. Deadlines are kept in
//    nanoseconds.
//  - Late by up to one tick (TimerOptions::tick) plus the timer's slack, and by what the machine
//    and the executor add: stats().lateness.
//  - A deadline in the past is due at once. One beyond the range of 64-bit nanoseconds (292 years)
//    becomes the end of that range.
//  - Slack: a task with `slack` may start up to that much after its deadline, at a time that it can
//    share with others.
//  - Delays are on the steady clock, which stops while the machine is suspended and does not change
//    when the wall clock is set. Times of the system_clock are on the wall clock: the timer fires
//    when that clock shows the time, also after it was set or the machine was suspended.
//  - A task is destroyed after its run, by the thread that ran it; or within cancel(), by the
//    thread that cancels. No lock is held then, so the destructor may use the service.
//  - An exception that a task throws goes to TimerOptions::on_error. The timer counts as fired, and
//    a periodic timer goes on.
//  - A periodic timer never runs twice at the same time.
//  - The timer thread starts with the first timer.
//  - Memory: 128 bytes per pending timer, and 8 to 24 in the wheel. A task of more than 48 bytes is
//    on the heap. The 128 bytes are kept for later timers of any service in the process, and are
//    not given back to the system.
//
// Thread safety: any thread may call anything at any time, also from inside tasks. Only the
// destructor must be the last call; it, too, may be called from inside a task.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
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
#include "carillon/timer/timer_clock.h"
#include "carillon/timer/timer_errors.h"
#include "carillon/timer/timer_handle.h"
#include "carillon/timer/timer_options.h"
#include "carillon/timer/timer_stats.h"
#include "carillon/timer/timer_task.h"

namespace carillon {

// A timer that stop() or drain() returns: one that did not run, or a periodic one.
struct Unprocessed {
  TimerHandle handle;  // equal to the handle that scheduling returned; the timer is over
  TimerTask task;
  std::chrono::nanoseconds due;        // since the epoch of its clock
  bool on_wall_clock = false;          // true for the system_clock, false for the steady_clock
  std::chrono::nanoseconds period{0};  // 0 for a one-shot timer, and for one by a calendar
  bool by_calendar = false;            // true if it came from schedule_cron() or schedule_by()
};

// A timer at a fixed rate.
struct Every {
  Nanoseconds period;
  std::optional<Nanoseconds> first = std::nullopt;  // from now; empty: one period
  Nanoseconds slack = {};                           // each run may start that much later
  MissedRuns missed = MissedRuns::kSkip;
};

class TimerService {
 public:
  // Throws std::invalid_argument if the tick is less than 1 ns, and std::bad_alloc. Starts no
  // thread and opens no file: the first timer does.
  explicit TimerService(TimerOptions options = {});
  TimerService(const TimerService&) = delete;
  TimerService& operator=(const TimerService&) = delete;
  // As stop(); the tasks that stop() would return are destroyed. If a task has called stop(), the
  // destructor waits for that task, too, unless it is called inside of it.
  ~TimerService();

  // Adds an executor for single timers (on_executor()): TimerExecutor::by() or timer_thread(). It
  // lives as long as the service. Throws std::invalid_argument for a pool, and std::bad_alloc.
  ExecutorId add_executor(TimerExecutor executor);

  // --- one-shot
  //
  // Each schedules `task` and returns the timer's handle. The task is called without arguments, or,
  // if it takes one, with the same handle: [](carillon::TimerHandle self) { ... }. O(1).
  // They throw TimersStopped, TooManyTimers, TimersForked, std::bad_alloc, std::system_error if the
  // timer thread cannot be started, std::invalid_argument if the task is an empty std::function or
  // function pointer, and what moving the task throws; then nothing was scheduled. A negative slack
  // counts as 0.
  template <class Rep, class Period, class F>
  TimerHandle schedule_after(std::chrono::duration<Rep, Period> delay, F&& task,
                             Nanoseconds slack = {}) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_after(timer, detail::to_ns(delay), slack);
  }
  template <class Duration, class F>
  TimerHandle schedule_at(std::chrono::time_point<std::chrono::steady_clock, Duration> time,
                          F&& task, Nanoseconds slack = {}) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_at(timer, detail::TimerKind::kSteady, detail::to_ns(time.time_since_epoch()),
                    slack);
  }
  template <class Duration, class F>
  TimerHandle schedule_at(std::chrono::time_point<std::chrono::system_clock, Duration> time,
                          F&& task, Nanoseconds slack = {}) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_at(timer, detail::TimerKind::kWall, detail::to_ns(time.time_since_epoch()), slack);
  }

  // --- periodic, on the steady clock
  //
  // As above; they also throw std::invalid_argument if the period is not positive.

  // At a fixed rate: first one period from now, then at whole periods from there, however long the
  // runs take: no drift.
  template <class Rep, class Period, class F>
  TimerHandle schedule_every(std::chrono::duration<Rep, Period> period, F&& task,
                             MissedRuns missed = MissedRuns::kSkip) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_periodic(timer, detail::to_ns(period), detail::to_ns(period), repeat_of(missed));
  }
  // The same with more to say: timers.schedule_every({.period = 10s, .first = 0s, .slack = 1s}, f).
  template <class F>
  TimerHandle schedule_every(const Every& every, F&& task) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_periodic(timer, every.first.value_or(every.period).count(), every.period.count(),
                          repeat_of(every.missed), every.slack);
  }

  // With a fixed delay before the first run, and between the end of each run and the start of the
  // next.
  template <class Rep, class Period, class F>
  TimerHandle schedule_with_fixed_delay(std::chrono::duration<Rep, Period> delay, F&& task,
                                        Nanoseconds slack = {}) {
    detail::NewTimer timer(std::in_place, std::forward<F>(task));
    return start_periodic(timer, detail::to_ns(delay), detail::to_ns(delay),
                          detail::Repeat::kAfterRun, slack);
  }

  // --- by a calendar, on the wall clock
  //
  // These are periodic timers: never two runs at the same time; cancelled, moved and returned like
  // the others. A run with slack may start that much after its time.
  //  - If the machine was suspended, or the wall clock set forward, beyond the next time, the task
  //    runs at once. Times that have passed by the end of a run are skipped, or, with
  //    MissedRuns::kBurst, have one run each. (kDelay is the same as kSkip here.)
  //  - If the wall clock is set back by up to 3 hours, no time comes twice: the timer waits until
  //    the clock has caught up. If it is set back by more, it had been wrong: the timer goes on
  //    from the new time.

  // By a cron expression in a time zone: "0 9 * * MON-FRI", "Europe/Berlin". The syntax, and what
  // happens when the clocks of the zone change, is in carillon/timer/cron_schedule.h. Link
  // carillon::cron for it. Throws as above, CronError for a wrong expression, and
  // std::invalid_argument for an unknown zone.
  template <class F>
  TimerHandle schedule_cron(std::string_view expression, std::string_view zone, F&& task,
                            MissedRuns missed = MissedRuns::kSkip, Nanoseconds slack = {}) {
    return schedule_cron(CronSchedule(expression, zone), std::forward<F>(task), missed, slack);
  }
  // By a schedule that exists already: O(1), and many timers can share it.
  template <class F>
  TimerHandle schedule_cron(CronSchedule schedule, F&& task, MissedRuns missed = MissedRuns::kSkip,
                            Nanoseconds slack = {}) {
    return schedule_by(
        [schedule = std::move(schedule)](WallTime after) { return schedule.next(after); },
        std::forward<F>(task), missed, slack);
  }

  // By a calendar of your own: `next_time(WallTime after)` returns the first system_clock time
  // after `after`, as std::optional; nothing if there is no further time. It is called here, and
  // after each run on the thread that ran the task, never by two threads at once. When it returns
  // nothing, the timer is over; if it does so here, the handle is empty. An exception from
  // next_time() is thrown on if it comes from the call here; a later one goes to on_error and ends
  // the timer. An answer that is not after `after` is such an exception, std::logic_error.
  template <class NextTime, class F>
  requires(detail::Calendar<std::decay_t<NextTime>>) TimerHandle
      schedule_by(NextTime&& next_time, F&& task, MissedRuns missed = MissedRuns::kSkip,
                  Nanoseconds slack = {}) {
    if constexpr (detail::kHasExecutor<std::decay_t<F>>) {
      using CalendarTask = detail::CalendarTask<std::decay_t<NextTime>, decltype(task.task)>;
      const ExecutorId executor = task.executor;
      detail::NewTimer timer(std::in_place,
                             on_executor(executor, CalendarTask(std::forward<NextTime>(next_time),
                                                                std::forward<F>(task).task)));
      return start_by_calendar(timer, missed, slack);
    } else {
      using CalendarTask = detail::CalendarTask<std::decay_t<NextTime>, std::decay_t<F>>;
      detail::NewTimer timer(
          std::in_place, CalendarTask(std::forward<NextTime>(next_time), std::forward<F>(task)));
      return start_by_calendar(timer, missed, slack);
    }
  }

  // --- coroutines (sleep.h; and with_timeout.h)
  //
  // co_await timers.sleep_for(10ms) returns when the time has come, and throws TimersStopped if the
  // service is stopped before. With a stop token it returns a bool: false if that was asked to stop
  // before. The coroutine resumes on the executor.
  template <class Rep, class Period>
  TimerSleep sleep_for(std::chrono::duration<Rep, Period> delay) noexcept {
    return TimerSleep({this, detail::TimerKind::kSteady, true, detail::to_ns(delay)});
  }
  template <class Rep, class Period>
  StoppableSleep sleep_for(std::chrono::duration<Rep, Period> delay,
                           std::stop_token stop) noexcept {
    return StoppableSleep({this, detail::TimerKind::kSteady, true, detail::to_ns(delay)},
                          std::move(stop));
  }
  template <class Clock, class Duration>
  TimerSleep sleep_until(std::chrono::time_point<Clock, Duration> time) noexcept {
    return TimerSleep({this, kind_of<Clock>(), false, detail::to_ns(time.time_since_epoch())});
  }
  template <class Clock, class Duration>
  StoppableSleep sleep_until(std::chrono::time_point<Clock, Duration> time,
                             std::stop_token stop) noexcept {
    return StoppableSleep({this, kind_of<Clock>(), false, detail::to_ns(time.time_since_epoch())},
                          std::move(stop));
  }

  // --- the end

  // Ends the service: refuses new timers, waits until the tasks that are running have ended (but
  // not for the task that calls stop()), ends the service's threads, and returns all timers that
  // have not run, and all periodic ones, in order of their deadlines. From when it has returned no
  // task begins, on an executor of your own either: a DueTask that has not begun does nothing any
  // more. A timer that another thread is scheduling meanwhile is either refused or returned. If it
  // is called again, or by two threads, one call returns the timers, and the others return nothing,
  // when the service has ended; inside a task they return at once. Throws std::bad_alloc if there
  // is no memory for the list: the service has ended then, and the next call returns the timers.
  // A caller that needs none of them may destroy the service instead.
  [[nodiscard]] std::vector<Unprocessed> stop();

  // Refuses new timers, waits until all one-shot timers have run or been cancelled, and then does
  // as stop(), which returns the periodic ones. These go on while it waits. REQUIRES: not called
  // from inside a task (std::logic_error).
  std::vector<Unprocessed> drain();

  // As drain(), but waits no longer than `at_most`, in real time; returns one-shot timers, too,
  // that have not run by then.
  [[nodiscard]] std::vector<Unprocessed> drain_for(Nanoseconds at_most);

  TimerStats stats() const;

  // Returns how long it is until the timer's deadline, on the deadline's clock. Returns 0 if that
  // has passed and the timer has not begun to run, and nothing if the timer is running or over.
  // REQUIRES: this service has scheduled the timer.
  std::optional<std::chrono::nanoseconds> remaining(TimerHandle timer) const noexcept;

  // The same as stats().pending, and cheaper.
  std::uint64_t pending() const noexcept;

 private:
  friend class detail::Sleeper;
  friend class Interval;

  template <class Clock>
  static constexpr detail::TimerKind kind_of() noexcept {
    constexpr bool kSteady = std::is_same_v<Clock, std::chrono::steady_clock>;
    static_assert(kSteady || std::is_same_v<Clock, std::chrono::system_clock>,
                  "times are of one of these two clocks");
    return kSteady ? detail::TimerKind::kSteady : detail::TimerKind::kWall;
  }

  static constexpr detail::Repeat repeat_of(MissedRuns missed) noexcept {
    return missed == MissedRuns::kSkip    ? detail::Repeat::kSkip
           : missed == MissedRuns::kBurst ? detail::Repeat::kBurst
                                          : detail::Repeat::kDelay;
  }

  TimerHandle start_after(detail::NewTimer& timer, std::int64_t delay, Nanoseconds slack);
  TimerHandle start_at(detail::NewTimer& timer, detail::TimerKind kind, std::int64_t time,
                       Nanoseconds slack);
  TimerHandle start_periodic(detail::NewTimer& timer, std::int64_t first, std::int64_t period,
                             detail::Repeat repeat, Nanoseconds slack = {});
  TimerHandle start_by_calendar(detail::NewTimer& timer, MissedRuns missed, Nanoseconds slack);

  std::shared_ptr<detail::TimerCore> core_;
};

}  // namespace carillon
