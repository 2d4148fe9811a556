#include "carillon/timer/timer_service.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "timer/timer_core.h"

namespace carillon {

using detail::Repeat;
using detail::TimerBlock;
using detail::TimerKind;

void detail::check_period(std::int64_t period) {
  if (period > 0) return;
  throw std::invalid_argument("carillon: the period of a timer is " + std::to_string(period) +
                              " ns; it must be positive");
}

TimerService::TimerService(TimerOptions options)
    : core_(std::make_shared<detail::TimerCore>(std::move(options))) {}

TimerService::~TimerService() {
  core_->discard();
}

namespace {

void set_up(TimerBlock& block, TimerKind kind, std::int64_t deadline, Nanoseconds slack) noexcept {
  block.deadline.store(deadline, std::memory_order_relaxed);
  block.kind = kind;
  block.repeat = Repeat::kOnce;
  block.counted = false;
  block.slack = slack.count();
}

}  // namespace

TimerHandle TimerService::start_after(detail::NewTimer& timer, std::int64_t delay,
                                      Nanoseconds slack) {
  set_up(timer.block(), TimerKind::kSteady, detail::add_ns(core_->steady_now(), delay), slack);
  return core_->submit(timer);
}

TimerHandle TimerService::start_at(detail::NewTimer& timer, TimerKind kind, std::int64_t time,
                                   Nanoseconds slack) {
  set_up(timer.block(), kind, time, slack);
  return core_->submit(timer);
}

TimerHandle TimerService::start_periodic(detail::NewTimer& timer, std::int64_t first,
                                         std::int64_t period, Repeat repeat, Nanoseconds slack) {
  detail::check_period(period);
  TimerBlock& block = timer.block();
  set_up(block, TimerKind::kSteady, detail::add_ns(core_->steady_now(), first), slack);
  block.repeat = repeat;
  block.period = period;
  return core_->submit(timer);
}

TimerHandle TimerService::start_by_calendar(detail::NewTimer& timer, MissedRuns missed,
                                            Nanoseconds slack) {
  TimerBlock& block = timer.block();
  const std::int64_t first = block.ops->next_time(block.task, core_->wall_now());
  if (first == detail::kForever) return TimerHandle();
  set_up(block, TimerKind::kWall, first, slack);
  block.repeat = missed == MissedRuns::kBurst ? Repeat::kCalendarBurst : Repeat::kCalendarSkip;
  return core_->submit(timer);
}

std::vector<Unprocessed> TimerService::stop() {
  return core_->stop();
}

std::vector<Unprocessed> TimerService::drain() {
  return core_->drain(detail::kForever);
}

std::vector<Unprocessed> TimerService::drain_for(Nanoseconds at_most) {
  return core_->drain(std::max<std::int64_t>(at_most.count(), 0));
}

ExecutorId TimerService::add_executor(TimerExecutor executor) {
  return core_->add_executor(std::move(executor));
}

std::optional<std::chrono::nanoseconds> TimerService::remaining(TimerHandle timer) const noexcept {
  TimerHandle::Due due{};
  if (!timer.get_due(due)) return std::nullopt;
  const std::int64_t now = due.on_wall_clock ? core_->wall_now() : core_->steady_now();
  return std::chrono::nanoseconds(std::max<std::int64_t>(detail::sub_ns(due.time, now), 0));
}

TimerStats TimerService::stats() const {
  TimerStats sum;
  core_->add_to(sum);
  return sum;
}

std::uint64_t TimerService::pending() const noexcept {
  return core_->pending();
}

std::chrono::nanoseconds LatenessHistogram::percentile(double fraction) const noexcept {
  if (total_ == 0) return std::chrono::nanoseconds(0);
  const double wanted = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(total_);
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen > 0 && static_cast<double>(seen) >= wanted) {
      return std::chrono::nanoseconds(static_cast<std::int64_t>(last_of(bucket)));
    }
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(last_of(kBuckets - 1)));
}

}  // namespace carillon
