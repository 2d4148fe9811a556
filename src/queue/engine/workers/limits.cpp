// Here the limits of tubes hold: how many jobs run at once, and how fast they go out.
//
// A group has limits of its own beside those of its tube. It is not asked when a job is to go out:
// while its limits let none go out it *rests*, out of the line of those that take turns (groups.h).
// So whatever changes what its limits say looks at them at once.
//
// A tube may bound how fast clients put jobs, too. A put takes its token when it is appended: so
// one that fails, or adds nothing, takes none.
//
// All is kept, not counted: the jobs of a tube that run (Tube::running), and the tokens of its
// bucket (limiter.h). Nobody looks at a tube that may not hand out a job: what ends a reservation
// serves it, or the timer of its next token, which is armed when somebody asks in vain.

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
                                std::to_string(rate.max_running) + "; it has none");
}

// The bucket begins full: the rate guards the server, and no producer is to wait after a start.
void Tube::follow_put_rate(std::uint64_t now) noexcept {
  const Limits& rate = record.settings->put_rate;
  if (rate == Limits()) return puts.reset();
  if (!puts) puts = std::make_unique<Limiter>(Limits(), now);
  puts->set(rate, now);
}

PutOutcome EngineState::too_fast(Tube& tube, std::uint64_t wanted) {
  const std::uint64_t now = clock.mono();
  ++tube.puts_too_fast;
  ++totals.puts_too_fast;
  return {.result = PutOutcome::Result::kTooFast, .wait = tube.puts->next_start(now, wanted) - now};
}

std::optional<PutRate> EngineTubes::put_rate(Now now, std::string_view name) {
  EngineState& s = state_;
  s.advance(now);
  const Tube* const tube = s.tubes.find(name);
  if (tube == nullptr || !tube->puts) return std::nullopt;
  const std::uint64_t mono = s.clock.mono();
  PutRate rate{.limits = tube->record.settings->put_rate, .tokens = tube->puts->tokens(mono)};
  if (rate.tokens < tube->puts->most_tokens())
    rate.next = tube->puts->next_start(mono, rate.tokens + 1) - mono;
  return rate;
}

void EngineState::follow_limits(Tube& tube) noexcept {
  const Limits& limits = tube.record.settings->limits;
  if (tube.limits) pauses.cancel(tube.limits->wake);
  if (limits == Limits()) {
    tube.limits.reset();
    if (tube.is_lane()) tube.head().groups->let_rest(tube, false);
    return;
  }
  if (!tube.limits) tube.limits = std::make_unique<TubeLimits>(tube, Limits(), clock.mono());
  tube.limits->limiter.set(limits, clock.mono());
  if (tube.is_lane()) may_start(tube);
}

bool EngineState::limits_let_start(Tube& tube) {
  const std::uint64_t now = clock.mono();
  TubeLimits& limits = *tube.limits;
  const bool may = limits.limiter.may_start(tube.running(), now);
  const std::uint64_t next = limits.limiter.next_start(now);
  if (!may && next > now && !limits.wake.armed()) pauses.schedule(limits.wake, Moment{next});
  if (tube.is_lane()) tube.head().groups->let_rest(tube, !may);
  return may;
}

}  // namespace carillon::queue
