// CalendarTask: a task and the calendar it goes by, in one callable.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "carillon/timer/detail/durations.h"
#include "carillon/timer/task.h"
#include "carillon/timer/timer_clock.h"

namespace carillon::detail {

template <class NextTime, class F>
class CalendarTask : public GoesByCalendar {
 public:
  template <class N, class T>
  CalendarTask(N&& next_time, T&& task) : next_time_(std::forward<N>(next_time)), task_(std::forward<T>(task)) {}

  void operator()() { static_cast<void>(task_()); }

  std::int64_t next_time(std::int64_t after) {
    const auto next = next_time_(WallTime(std::chrono::nanoseconds(after)));
    return next.has_value() ? to_ns(next->time_since_epoch()) : kForever;
  }

 private:
  [[no_unique_address]] NextTime next_time_;
  [[no_unique_address]] F task_;
};

}  // namespace carillon::detail
