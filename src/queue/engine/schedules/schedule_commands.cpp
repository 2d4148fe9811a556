// The commands for schedules: set, remove, pause, resume, trigger, and the look-ups.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why);
}

void check_text(const char* what, const std::string& text, bool may_be_empty) {
  if (text.size() > kMaxScheduleText || (text.empty() && !may_be_empty))
    refuse(std::string(what) + ": " + std::to_string(text.size()) + " bytes; " +
           (may_be_empty ? "at most " : "1 to ") + std::to_string(kMaxScheduleText));
}

void check_span(const char* what, Millis span) {
  if (span > kMaxScheduleSpan)
    refuse(std::string(what) + ": " + std::to_string(span) + " ms; at most " +
           std::to_string(kMaxScheduleSpan) + " (ten years)");
}

void check_all(std::string_view name, const Schedule& asked) {
  check_text("name", std::string(name), false);
  check_text("tube", asked.tube, false);
  check_text("cron", asked.cron, true);
  check_text("zone", asked.zone, asked.cron.empty());
  check_span("every", asked.every);
  check_span("catch-up", asked.catch_up_window);
  check_span("spread", asked.spread);
  check_span("expires-in", asked.expires_in);
  if (asked.group.size() > kMaxGroup)
    refuse("group: " + std::to_string(asked.group.size()) + " bytes; at most " +
           std::to_string(kMaxGroup));
  if (asked.body.size() > kMaxScheduleBody)
    refuse("body: " + std::to_string(asked.body.size()) + " bytes; at most " +
           std::to_string(kMaxScheduleBody));
  if (asked.cron.empty() == (asked.every == 0))
    refuse("a schedule has a cron expression, or a time after which it occurs every time");
  if (asked.cron.empty() && asked.every < kMinEvery)
    refuse("every: " + std::to_string(asked.every) + " ms; at least " + std::to_string(kMinEvery));
  if (asked.start > kLastDue) refuse("start: " + std::to_string(*asked.start) + " is too late");
  if (asked.start && asked.every == 0) refuse("start: needs every");
}

}  // namespace

void Schedules::read_times(LoadedSchedule& schedule) const {
  const Schedule& asked = schedule.record.schedule;
  if (!asked.cron.empty()) {
    if (!options_.calendar) refuse("cron: this queue has no calendar");
    schedule.timetable = options_.calendar(asked.cron, asked.zone);
    return;
  }
  schedule.timetable = [start = asked.start.value_or(0), every = std::max(asked.every, kMinEvery)](
                           UtcMs after) -> std::optional<Occurrence> {
    if (after < start) return Occurrence{.at = start};
    return Occurrence{.at = start + ((after - start) / every + 1) * every};
  };
}

std::size_t Schedules::bytes_of(const ScheduleRecord& record) const {
  constexpr std::size_t kOwn = 1 << 10;
  const Schedule& schedule = record.schedule;
  return kOwn + record.name.size() + schedule.tube.size() + schedule.group.size() +
         schedule.cron.size() + schedule.zone.size() + schedule.attributes.size() +
         schedule.body.size();
}

LoadedSchedule* Schedules::find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.get();
}

Tube& Schedules::lane_of(const Schedule& schedule) {
  Tube& tube = tubes_.named(schedule.tube);
  try {
    return tubes_.lane_named(tube, schedule.group);
  } catch (...) {
    tubes_.forget_if_unreferenced(tube);
    throw;
  }
}

Sequence Schedules::set(std::string_view name, const Schedule& asked, bool paused) {
  check_all(name, asked);
  Endings::check(asked.retry);
  Puts::check_attributes(asked.attributes);
  LoadedSchedule* const old = find(name);
  const UtcMs now = clock_.utc();
  auto made = std::make_unique<LoadedSchedule>();
  ScheduleRecord& record = made->record;
  if (old != nullptr) record = old->record;
  const Schedule before = std::exchange(record.schedule, asked);
  Schedule& schedule = record.schedule;
  schedule.ttr = std::clamp(schedule.ttr, kMinTtr, kMaxTtr);
  if (schedule.every != 0 && !schedule.start)
    schedule.start = before.every == schedule.every ? before.start : now;
  if (old == nullptr) {
    record.name = name;
    record.created = now;
  }
  if (old == nullptr || !before.occurs_as(schedule)) {
    record.decided = now;
    record.since = clock_.uptime();
    record.spans.clear();
  }
  record.paused = record.paused || paused;
  read_times(*made);

  const std::size_t freed = old == nullptr ? 0 : bytes_of(old->record);
  if (bytes_ - freed + bytes_of(record) > options_.max_schedule_bytes)
    throw OverLimit("schedules take all that they may");
  Tube& lane = lane_of(schedule);
  ++lane.schedules;
  made->lane = &lane;
  try {
    auto& place = by_name_.try_emplace(record.name).first->second;
    appender_.changes.schedules.push_back({record.name, record});
    appender_.append();
    bytes_ += bytes_of(record) - freed;
    if (place) wheel_.cancel(*place);
    std::swap(place, made);
  } catch (...) {
    if (old == nullptr) by_name_.erase(record.name);
    --lane.schedules;
    tubes_.forget_if_unreferenced(lane);
    throw;
  }
  if (made) {
    awaited_.erase(made->record.last_job);
    --made->lane->schedules;
    tubes_.forget_if_unreferenced(*made->lane);
  }
  arm(*find(name));
  return appender_.last_sequence();
}

Sequence Schedules::remove(LoadedSchedule& schedule) {
  appender_.changes.schedules.push_back({schedule.record.name, std::nullopt});
  const Sequence sequence = appender_.append();
  Tube& lane = *schedule.lane;
  bytes_ -= bytes_of(schedule.record);
  awaited_.erase(schedule.record.last_job);
  wheel_.cancel(schedule);
  by_name_.erase(by_name_.find(schedule.record.name));
  --lane.schedules;
  tubes_.forget_if_unreferenced(lane);
  return sequence;
}

Sequence Schedules::pause(LoadedSchedule& schedule) {
  ScheduleRecord after = schedule.record;
  after.paused = true;
  untold_.clear();
  const Sequence sequence = store(schedule, std::move(after));
  arm(schedule);
  return sequence;
}

Sequence Schedules::resume(LoadedSchedule& schedule) {
  if (!schedule.record.paused) return appender_.last_sequence();
  ScheduleRecord after = schedule.record;
  after.paused = false;
  after.decided = clock_.utc();
  after.since = clock_.uptime();
  untold_.clear();
  const UtcMs before = schedule.record.decided;
  if (schedule.broken.empty()) {
    const std::uint64_t count = schedule.count(before, after.decided);
    if (count > 0) skip(ScheduleEvent::What::kPaused, schedule.next(before)->at, count, after);
  }
  const Sequence sequence = store(schedule, std::move(after));
  arm(schedule);
  return sequence;
}

BatchOutcome Schedules::trigger(LoadedSchedule& schedule, BatchToken token,
                                const BatchOrder& order) {
  ScheduleRecord after = schedule.record;
  after.last_occurrence = 0;
  untold_.clear();
  const PlannedPut planned = plan_put(schedule, std::nullopt);
  BatchOutcome outcome{.jobs = {planned.outcome}};
  const Schedule& asked = schedule.record.schedule;
  if (order.tells_job) outcome.job = planned.job(asked.tube, asked.group);
  if (!order.once.empty()) keys_.add_token(std::move(token), order, outcome);
  outcome.durable_at = append_put(schedule, std::move(after), planned);
  outcome.jobs.front().durable_at = outcome.durable_at;
  arm(schedule);
  return outcome;
}

ScheduleView Schedules::view(const LoadedSchedule& schedule, std::size_t times) const {
  ScheduleView view{.record = schedule.record, .next = {}, .broken = schedule.broken};
  if (schedule.record.paused || !schedule.broken.empty()) return view;
  // The clocks may skip every occurrence until the year 9999.
  constexpr std::size_t kLooksForEach = 20;
  UtcMs after = schedule.record.decided;
  for (std::size_t looks = kLooksForEach * times; looks > 0 && view.next.size() < times; --looks) {
    const auto next = schedule.next(after);
    if (!next) break;
    after = next->at;
    if (!schedule.is_in_gap(*next)) view.next.push_back(after);
  }
  return view;
}

std::vector<std::string> Schedules::names(std::string_view name, std::size_t limit) const {
  std::vector<std::string> names;
  for (auto at = by_name_.upper_bound(name); at != by_name_.end() && names.size() < limit; ++at)
    names.push_back(at->first);
  return names;
}

// --- The engine's commands.

Outcome EngineSchedules::set_schedule(Now now, std::string_view name, const Schedule& schedule,
                                      bool paused) {
  state_.advance(now);
  return {.done = true, .durable_at = state_.schedules.set(name, schedule, paused)};
}

Outcome EngineSchedules::remove_schedule(Now now, std::string_view name) {
  EngineState& s = state_;
  s.advance(now);
  LoadedSchedule* const found = s.schedules.find(name);
  if (found == nullptr) return {.done = false, .durable_at = s.appender.last_sequence()};
  return {.done = true, .durable_at = s.schedules.remove(*found)};
}

Outcome EngineSchedules::pause_schedule(Now now, std::string_view name) {
  EngineState& s = state_;
  s.advance(now);
  LoadedSchedule* const found = s.schedules.find(name);
  if (found == nullptr) return {.done = false, .durable_at = s.appender.last_sequence()};
  return {.done = true, .durable_at = s.schedules.pause(*found)};
}

Outcome EngineSchedules::resume_schedule(Now now, std::string_view name) {
  EngineState& s = state_;
  s.advance(now);
  LoadedSchedule* const found = s.schedules.find(name);
  if (found == nullptr) return {.done = false, .durable_at = s.appender.last_sequence()};
  return {.done = true, .durable_at = s.schedules.resume(*found)};
}

std::optional<BatchOutcome> EngineSchedules::trigger_schedule(Now now, std::string_view name,
                                                              const BatchOrder& order) {
  EngineState& s = state_;
  s.advance(now);
  BatchToken token = s.keys.token_of(order);
  if (auto answer = s.keys.answer_of(token, order)) return answer;
  LoadedSchedule* const found = s.schedules.find(name);
  if (found == nullptr) return std::nullopt;
  return s.schedules.trigger(*found, std::move(token), order);
}

std::optional<ScheduleView> EngineSchedules::schedule(Now now, std::string_view name,
                                                      std::size_t times) {
  EngineState& s = state_;
  s.advance(now);
  const LoadedSchedule* const found = s.schedules.find(name);
  if (found == nullptr) return std::nullopt;
  return s.schedules.view(*found, times);
}

std::vector<std::string> EngineSchedules::schedules(std::string_view name,
                                                    std::size_t limit) const {
  return state_.schedules.names(name, limit);
}

std::vector<ScheduleEvent> EngineSchedules::take_schedule_events() {
  return state_.schedules.take_events();
}

}  // namespace carillon::queue
