// Here the commands are handled that are about attempts: fail, story, and the settings of a tube.

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "queue/engine/jobs/retention.h"

namespace carillon::queue {

void Engine::name_client(ClientId id, std::string_view name) {
  state_->client(id).name = base::beginning(name, kMaxWorkerName);
}

const std::string& Engine::name_of(ClientId id) const {
  return state_->client(id).name;
}

FailOutcome EngineWorkers::fail(ClientId id, Now now, JobId job_id, const Failure& failure) {
  using Result = FailOutcome::Result;
  EngineState& s = state_;
  s.advance(now);
  if (failure.delay && !s.clock.fits(*failure.delay, std::nullopt))
    throw std::out_of_range("fail: a delay of " + std::to_string(*failure.delay) +
                            " ms ends after the year 9999");
  Client& client = s.client(id);
  LoadedJob* const job = s.held_by(client, job_id);
  if (job == nullptr) return {.result = Result::kNone, .durable_at = s.last_sequence};
  Tube& tube = *job->tube;
  const PlannedEnd end =
      s.plan_end(*job,
                 {.at = s.clock.utc(),
                  .ending = Ending::kFailed,
                  .worker = client.name,
                  .error = std::string(base::beginning(failure.error, kMaxError))},
                 failure);
  FailOutcome outcome{.result = Result::kCancelled, .durable_at = s.append()};
  if (end.after) {
    outcome.result = end.after->buried() ? Result::kDead : Result::kAgain;
    outcome.attempts = end.after->extras->attempts;
    outcome.delay = end.after->buried() ? 0 : end.after->delay;
  }
  ++s.totals.failed;
  s.finish_end(end);
  s.serve(tube);
  s.forget_if_unreferenced(tube);
  return outcome;
}

bool EngineWorkers::holds(ClientId id, JobId job_id) const {
  return state_.held_by(state_.client(id), job_id) != nullptr;
}

bool EngineWorkers::cancel_asked(ClientId id, JobId job_id) const {
  const LoadedJob* const job = state_.held_by(state_.client(id), job_id);
  return job != nullptr && job->record.extras->cancel_asked;
}

std::optional<std::vector<Attempt>> EngineReports::story(Now now, JobId id) {
  EngineState& s = state_;
  s.advance(now);
  std::vector<Attempt> story = s.store.story(id);
  if (story.empty() && !s.record_of(id)) return std::nullopt;  // a job takes its story with it
  return story;
}

Sequence EngineTubes::set_tube(Now now, std::string_view name, const TubeSettings& settings) {
  EngineState& s = state_;
  EngineState::check(settings.retry);
  check(settings.limits);
  check_put_rate(settings.put_rate);
  if (settings.retention > kLongestRetention)
    throw std::invalid_argument("queue engine: the retention is " +
                                std::to_string(settings.retention) + " ms; the most is " +
                                std::to_string(kLongestRetention));
  s.advance(now);
  Tube& tube = s.tube_named(name);
  try {
    s.changed_tube(tube.record.number).settings = detail::Rare(settings);
    s.append();
  } catch (...) {
    s.forget_if_unreferenced(tube);
    throw;
  }
  const Sequence sequence = s.last_sequence;
  s.follow_limits(tube);
  tube.follow_put_rate(s.clock.mono());
  Retention::follow(s, tube);
  s.serve(tube);
  s.forget_if_unreferenced(tube);
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
  Tube& tube = s.tube_named(name);
  const std::uint32_t number = tube.record.number;
  try {
    Tube& lane = s.lane_named(tube, group);
    TubeSettings changed = *lane.record.settings;
    changed.weight = settings.weight;
    changed.limits = settings.limits;
    s.changed_tube(lane.record.number).settings = detail::Rare(changed);
    const Sequence sequence = s.append();
    s.follow_limits(lane);
    s.serve(tube);
    s.forget_lane(tube, group);
    s.forget_if_unreferenced(number);
    return sequence;
  } catch (...) {
    s.forget_lane(tube, group);
    s.forget_if_unreferenced(number);
    throw;
  }
}

TubeSettings EngineTubes::tube_settings(std::string_view name) const {
  const Tube* const tube = state_.tubes.find(name);
  return tube == nullptr ? TubeSettings() : *tube->record.settings;
}

}  // namespace carillon::queue
