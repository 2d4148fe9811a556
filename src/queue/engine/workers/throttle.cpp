#include "queue/engine/workers/throttle.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

void check(const Limits& limits) {
  const auto refuse = [](const std::string& what, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
    if (value >= least && value <= most) return;
    throw std::invalid_argument("queue engine: " + what + " is " + std::to_string(value) +
                                "; it is " + std::to_string(least) + " to " + std::to_string(most));
  };
  const bool has_rate = limits.rate > 0;
  const std::uint64_t least = has_rate ? 1 : 0;
  refuse("the rate", limits.rate, 0, kMostTokens);
  refuse("the period of the rate (ms)", limits.period, least, has_rate ? kLongestPeriod : 0);
  refuse("the burst of the rate", limits.burst, least, has_rate ? kMostTokens : 0);
}

void check_put_rate(const Limits& rate) {
  check(rate);
  if (rate.max_running > 0)
    throw std::invalid_argument("queue engine: the rate of puts has a max_running, " +
                                std::to_string(rate.max_running) + "; it must have no max_running");
}

// The bucket begins full: the rate guards the server, and no producer should wait after a start.
void Tube::follow_put_rate(std::uint64_t now) noexcept {
  const Limits& rate = record.settings->put_rate;
  if (rate == Limits()) return puts.reset();
  if (!puts) puts = std::make_unique<Limiter>(Limits(), now);
  puts->set(rate, now);
}

PutOutcome Throttle::too_fast(Tube& tube, std::uint64_t wanted) {
  const std::uint64_t now = clock_.mono();
  ++tube.puts_too_fast;
  ++counts_.totals.puts_too_fast;
  return {.result = PutOutcome::Result::kTooFast, .wait = tube.puts->next_start(now, wanted) - now};
}

void Throttle::take_over(Tube& tube) {
  const Limits& limits = tube.record.settings->limits;
  if (limits == Limits()) return;
  tube.limits = std::make_unique<TubeLimits>(tube, limits, clock_.mono());
  if (tube.is_lane()) may_start(tube);
}

void Throttle::follow_limits(Tube& tube) noexcept {
  const Limits& limits = tube.record.settings->limits;
  if (tube.limits) wheel_.cancel(tube.limits->wake);
  if (limits == Limits()) {
    tube.limits.reset();
    if (tube.is_lane()) tube.head().groups->let_rest(tube, false);
    return;
  }
  if (!tube.limits) tube.limits = std::make_unique<TubeLimits>(tube, Limits(), clock_.mono());
  tube.limits->limiter.set(limits, clock_.mono());
  if (tube.is_lane()) may_start(tube);
}

bool Throttle::limits_let_start(Tube& tube) {
  const std::uint64_t now = clock_.mono();
  TubeLimits& limits = *tube.limits;
  const bool may = limits.limiter.may_start(tube.running(), now);
  const std::uint64_t next = limits.limiter.next_start(now);
  if (!may && next > now && !limits.wake.armed()) wheel_.schedule(limits.wake, Moment{next});
  if (tube.is_lane()) tube.head().groups->let_rest(tube, !may);
  return may;
}

void Throttle::start(LoadedJob& job) {
  const auto& limits = job.tube->head().limits;
  job.took_token = limits && limits->limiter.start(clock_.mono());
  if (!job.tube->is_lane()) return;
  const auto& own = job.tube->limits;
  job.took_own_token = own && own->limiter.start(clock_.mono());
  may_start(*job.tube);
}

void Throttle::undo_start(LoadedJob& job) {
  Tube& tube = *job.tube;
  if (job.took_token && tube.head().limits) tube.head().limits->limiter.undo_start(clock_.mono());
  if (job.took_own_token && tube.limits) tube.limits->limiter.undo_start(clock_.mono());
}

void Throttle::pause(Tube& tube, Millis duration) {
  ++tube.pauses;
  tube.pause = duration;
  wheel_.cancel(tube.pause_end);
  const std::uint64_t from = clock_.mono_from();
  if (duration > 0)
    wheel_.schedule(tube.pause_end,
                    Moment{duration < UINT64_MAX - from ? from + duration : UINT64_MAX});
}

void Throttle::forget(Tube& tube) noexcept {
  wheel_.cancel(tube.pause_end);
  if (tube.limits) wheel_.cancel(tube.limits->wake);
}

void Throttle::advance(std::vector<Tube*>& served, std::size_t budget) {
  wheel_.advance(
      clock_.mono(),
      [this, &served](TimerNode& node) {
        Tube& tube = *static_cast<TubeTimer&>(node).tube;
        if (tube.is_lane()) may_start(tube);
        served.push_back(&tube);
      },
      budget);
}

}  // namespace carillon::queue
