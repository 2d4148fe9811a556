#include "carillon/timer/interval.h"

#include "carillon/timer/detail/durations.h"
#include "timer/timer_core.h"

namespace carillon {

Interval::Interval(TimerService& timers, const Every& every)
    : timers_(&timers),
      every_(every),
      due_(detail::add_ns(now(), every.first.value_or(every.period).count())) {
  detail::check_period(every.period.count());
}

void Interval::reset() noexcept {
  due_ = detail::add_ns(now(), every_.period.count());
  was_given_ = false;
}

std::int64_t Interval::now() const noexcept {
  return timers_->core_->steady_now();
}

detail::SleepTime Interval::next() noexcept {
  const std::int64_t time = now();
  if (was_given_ && due_ <= time) {
    due_ = detail::next_period(TimerService::repeat_of(every_.missed), every_.period.count(), due_,
                               time);
  }
  was_given_ = true;
  return {timers_, detail::TimerKind::kSteady, false, due_, every_.slack.count()};
}

}  // namespace carillon
