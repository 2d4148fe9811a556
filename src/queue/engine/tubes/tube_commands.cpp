// Here the commands for tubes and groups are handled: pause, settings, rates and lists.

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

bool EngineTubes::pause(Now now, std::string_view name, Millis duration) {
  EngineState& s = state_;
  s.advance(now);
  Tube* tube = s.tubes.find(name);
  if (tube == nullptr) return false;
  s.throttle.pause(*tube, duration);
  s.clients.serve(*tube);
  return true;
}

Sequence EngineTubes::set_tube(Now now, std::string_view name, const TubeSettings& settings) {
  EngineState& s = state_;
  Endings::check(settings.retry);
  check(settings.limits);
  check_put_rate(settings.put_rate);
  if (settings.retention > kLongestRetention)
    throw std::invalid_argument("queue engine: the retention is " +
                                std::to_string(settings.retention) + " ms; the most is " +
                                std::to_string(kLongestRetention));
  s.advance(now);
  Tube& tube = s.tubes.named(name);
  try {
    s.appender.changed_tube(tube.record.number).settings = detail::Rare(settings);
    s.appender.append();
  } catch (...) {
    s.tubes.forget_if_unreferenced(tube);
    throw;
  }
  const Sequence sequence = s.appender.last_sequence();
  s.throttle.follow_limits(tube);
  tube.follow_put_rate(s.clock.mono());
  s.retention.follow(tube);
  s.clients.serve(tube);
  s.tubes.forget_if_unreferenced(tube);
  return sequence;
}

Sequence EngineTubes::set_group(Now now, std::string_view name, std::string_view group,
                                const GroupSettings& settings) {
  EngineState& s = state_;
  if (settings.weight == 0 || settings.weight > kMostWeight)
    throw std::invalid_argument("queue engine: the weight is " + std::to_string(settings.weight) +
                                "; it is 1 to " + std::to_string(kMostWeight));
  check(settings.limits);
  s.advance(now);
  Tube& tube = s.tubes.named(name);
  const std::uint32_t number = tube.record.number;
  try {
    Tube& lane = s.tubes.lane_named(tube, group);
    TubeSettings changed = *lane.record.settings;
    changed.weight = settings.weight;
    changed.limits = settings.limits;
    s.appender.changed_tube(lane.record.number).settings = detail::Rare(changed);
    const Sequence sequence = s.appender.append();
    s.throttle.follow_limits(lane);
    s.clients.serve(tube);
    s.tubes.forget_lane(tube, group);
    s.tubes.forget_if_unreferenced(number);
    return sequence;
  } catch (...) {
    s.tubes.forget_lane(tube, group);
    s.tubes.forget_if_unreferenced(number);
    throw;
  }
}

TubeSettings EngineTubes::tube_settings(std::string_view name) const {
  const Tube* const tube = state_.tubes.find(name);
  return tube == nullptr ? TubeSettings() : *tube->record.settings;
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

std::vector<std::string> EngineTubes::tubes() const {
  std::vector<std::string> names;
  for (const Tube* tube : state_.tubes.in_order()) names.push_back(tube->record.name);
  return names;
}

TubeListSize EngineTubes::list_tubes(ClientId id) {
  return state_.tubes.begin_list(state_.clients.client(id).listing);
}

std::optional<std::vector<std::string>> EngineTubes::next_tubes(ClientId id) {
  CARILLON_REQUIRE(state_.clients.client(id).listing.has_value(), id);
  return state_.tubes.next_of(state_.clients.client(id).listing);
}

void EngineTubes::end_tube_list(ClientId id) {
  state_.tubes.end_list(state_.clients.client(id).listing);
}

}  // namespace carillon::queue
