// CalendarTask: a task and the calendar that it goes by, in one callable. Calendar: the concept.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "carillon/timer/detail/durations.h"
#include "carillon/timer/timer_clock.h"
#include "carillon/timer/timer_task.h"

namespace carillon::detail {

// Makes sure that a calendar answers with times of the wall clock and not of another clock.
template <class Answer>
inline constexpr bool kIsOptionalWallTime = false;
template <class Duration>
inline constexpr bool kIsOptionalWallTime<
    std::optional<std::chrono::time_point<std::chrono::system_clock, Duration>>> = true;

// A callable that takes a WallTime and returns the first time of the calendar after it.
template <class F>
concept Calendar = std::invocable<F&, WallTime> &&
    kIsOptionalWallTime<std::remove_cvref_t<std::invoke_result_t<F&, WallTime>>>;

template <class NextTime, class F>
class CalendarTask : public GoesByCalendar {
 public:
  template <class N, class T>
  CalendarTask(N&& next_time, T&& task)
      : next_time_(std::forward<N>(next_time)), task_(std::forward<T>(task)) {
    refuse_if_empty(task_);
  }

  void operator()(TimerHandle self) { call_task(task_, self); }

  std::int64_t next_time(std::int64_t after) {
    const auto answer = next_time_(WallTime(std::chrono::nanoseconds(after)));
    if (!answer.has_value()) return kForever;
    const std::int64_t next = to_ns(answer->time_since_epoch());
    if (next > after) return next;
    // The task would run again and again, without a pause.
    throw std::logic_error("carillon: a calendar was asked for a time after " +
                           std::to_string(after) + " ns and answered " + std::to_string(next) +
                           " ns, which is not later");
  }

 private:
  [[no_unique_address]] NextTime next_time_;
  [[no_unique_address]] F task_;
};

}  // namespace carillon::detail
