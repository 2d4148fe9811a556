// Fires schedules (schedules.h).

#include "queue/engine/schedules/schedules.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

using What = ScheduleEvent::What;

// How long a schedule waits when its job cannot be put, in ms.
constexpr Millis kRetry = 1'000;

// The stored time is at most about so far behind (appender.cpp).
constexpr Millis kStoredTimeLag = 2'000;

// How much later than its occurrence a job is due.
Millis spread_of(const ScheduleRecord& record, UtcMs occurrence) {
  if (record.schedule.spread == 0) return 0;
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const char c : record.name) mix(static_cast<std::uint8_t>(c));
  for (; occurrence > 0; occurrence >>= 8) mix(static_cast<std::uint8_t>(occurrence));
  hash ^= hash >> 32;
  return hash % record.schedule.spread;
}

// Notes that an occurrence has fired. It is joined with those right before and after it.
void add_fired(ScheduleRecord& record, const Timetable& timetable, UtcMs occurrence) {
  std::vector<FiredSpan>& spans = record.spans;
  const auto comes_next = [&timetable](const FiredSpan& span, UtcMs moment) {
    const auto next = timetable(span.last);
    return next && next->at == moment;
  };
  auto at = std::find_if(spans.begin(), spans.end(),
                         [occurrence](const FiredSpan& span) { return span.first > occurrence; });
  if (at != spans.begin() && comes_next(*std::prev(at), occurrence)) {
    --at;
    at->last = occurrence;
  } else {
    at = spans.insert(at, {occurrence, occurrence});
  }
  const auto behind = std::next(at);
  if (behind != spans.end() && comes_next(*at, behind->first)) {
    at->last = behind->last;
    spans.erase(behind);
  }
  if (spans.size() <= ScheduleRecord::kMostSpans) return;
  spans[1].first = spans[0].first;
  spans.erase(spans.begin());
}

}  // namespace

// --- When a schedule occurs.

std::optional<Occurrence> LoadedSchedule::next(UtcMs after) const {
  CARILLON_REQUIRE(broken.empty(), record.name, broken);
  std::optional<Occurrence> found = timetable(after);
  for (const FiredSpan& span : record.spans) {
    if (found && span.first <= found->at && found->at <= span.last) found = timetable(span.last);
  }
  return found && found->at <= kLastDue ? found : std::nullopt;
}

Occurrence LoadedSchedule::last(UtcMs after, UtcMs until) const {
  // The next one after `after` comes by `until`; the next one after `until` does not. The two
  // approach each other.
  for (UtcMs end = until; after + 1 < end;) {
    const UtcMs middle = after + (end - after) / 2;
    const auto found = next(middle);
    (found && found->at <= until ? after : end) = middle;
  }
  const std::optional<Occurrence> last = next(after);
  CARILLON_REQUIRE(last && last->at <= until, record.name, after, until);
  return *last;
}

std::uint64_t LoadedSchedule::count(UtcMs after, UtcMs until) const {
  std::uint64_t count = 0;
  for (; count < ScheduleEvent::kMostCounted; ++count) {
    const auto found = next(after);
    if (!found || found->at > until) break;
    after = found->at;
  }
  return count;
}

// --- The life of a schedule.

Schedules::Schedules(Store& store, const EngineOptions& options, const EngineClock& clock,
                     Appender& appender, Tubes& tubes, LoadedJobs& jobs, Puts& puts, Keys& keys)
    : store_(store),
      options_(options),
      clock_(clock),
      appender_(appender),
      tubes_(tubes),
      jobs_(jobs),
      puts_(puts),
      keys_(keys),
      wheel_(clock.tick()) {}

Schedules::~Schedules() {
  for (const auto& [name, schedule] : by_name_) wheel_.cancel(*schedule);
}

void Schedules::take_over(ScheduleRecord record, UtcMs last_known) {
  auto made = std::make_unique<LoadedSchedule>();
  LoadedSchedule& schedule = *made;
  // The wall clock may have been set back before the restart, or while the server was down.
  if (record.decided > std::min(last_known, clock_.utc()) + kStoredTimeLag) {
    record.decided = std::min(record.decided, last_known);
    if (const UtcMs since = clock_.wrong_since(); since != 0) turn_back(record, since);
  }
  record.decided = std::min(record.decided, clock_.utc());
  schedule.record = std::move(record);
  const Schedule& asked = schedule.record.schedule;
  schedule.lane = &tubes_.made_lane(tubes_.made(asked.tube), asked.group);
  ++schedule.lane->schedules;
  bytes_ += bytes_of(schedule.record);
  by_name_.emplace(schedule.record.name, std::move(made));
  try {
    read_times(schedule);
  } catch (const std::invalid_argument& error) {
    schedule.broken = error.what();
    tell({.what = What::kBroken, .name = schedule.record.name, .why = schedule.broken});
  }
  arm(schedule);
}

void Schedules::arm(LoadedSchedule& schedule) noexcept {
  wheel_.cancel(schedule);
  const ScheduleRecord& record = schedule.record;
  if (record.paused || !schedule.broken.empty()) return;
  const Tick now = clock_.tick();
  if (record.waiting != 0 && !awaited_.contains(record.last_job))
    return wheel_.schedule(schedule, Moment{now});
  const auto next = schedule.next(record.decided);
  if (!next) return;
  Tick tick = std::max(now, clock_.tick_of(next->at));
  // The tick may have passed already: if the wall clock was set back by less than a step.
  if (next->at > clock_.utc()) tick = std::max(tick, now + 1);
  wheel_.schedule(schedule, Moment{tick});
}

void Schedules::follow_the_clock(bool back) {
  const UtcMs since = back && clock_.has_settled() ? clock_.wrong_since() : 0;
  for (const auto& [name, schedule] : by_name_) {
    ScheduleRecord& record = schedule->record;
    if (back) record.decided = std::min(record.decided, clock_.utc());
    if (since != 0) turn_back(record, since);
    arm(*schedule);
  }
}

void Schedules::turn_back(ScheduleRecord& record, UtcMs since) const {
  const UtcMs from = std::max(since, clock_.utc_at_uptime(record.since));
  record.decided = std::min(record.decided, from);
}

void Schedules::jobs_left(const Changes& appended) {
  if (awaited_.empty()) return;
  for (const JobChange& change : appended.jobs) {
    if (!change.before) continue;
    const auto found = awaited_.find(change.before->id);
    if (found == awaited_.end()) continue;
    LoadedSchedule& schedule = *found->second;
    if (change.after && !change.after->buried() && is_in_last_tube(schedule, *change.after))
      continue;
    awaited_.erase(found);
    arm(schedule);
  }
}

bool Schedules::is_last_there(const LoadedSchedule& schedule) {
  if (schedule.record.last_job == 0) return false;
  const JobId id = schedule.record.last_job;
  try {
    const std::optional<JobRecord> job = jobs_.record_of(id);
    return job && !job->buried() && is_in_last_tube(schedule, *job);
  } catch (const StoreDamage& why) {
    // No worker has the job, or it would be in memory; and a job that cannot be read goes to no
    // worker.
    appender_.failed("schedule " + schedule.record.name + ": its last job, " + std::to_string(id) +
                     ", cannot be read and counts as gone, so the schedule goes on; save what is "
                     "whole with carillon check --data DIR --salvage NEW: " +
                     why.what());
    return false;
  }
}

bool Schedules::is_in_last_tube(const LoadedSchedule& schedule, const JobRecord& job) {
  const std::uint32_t last = schedule.record.last_tube;
  return last == 0 || tubes_.numbered(job.tube).head().record.number == last;
}

void Schedules::tell(ScheduleEvent event) {
  constexpr std::size_t kMost = 1'000;  // for an owner that never takes them
  if (events_.size() < kMost) events_.push_back(std::move(event));
}

// --- Firing.

// A unit is some 10 us of work.
std::size_t Schedules::cost_of(const LoadedSchedule& schedule, std::uint64_t skipped_before) {
  constexpr std::size_t kCountedInAUnit = 64;
  constexpr std::size_t kBodyOfAUnit = 16 << 10;
  const ScheduleRecord& record = schedule.record;
  return 1 + (record.skipped - skipped_before) / kCountedInAUnit +
         record.schedule.body.size() / kBodyOfAUnit;
}

void Schedules::fire(std::size_t budget) {
  const Tick now = clock_.tick();
  if (now < fire_at_ || by_name_.empty()) return;
  while (budget > 0) {
    LoadedSchedule* ripe = nullptr;
    wheel_.advance(
        now, [&ripe](TimerNode& node) { ripe = &static_cast<LoadedSchedule&>(node); }, 1);
    if (ripe == nullptr) return;
    if (const Millis wait = must_wait(); wait > 0) {
      wheel_.schedule(*ripe, Moment{now});  // it is due still
      fire_at_ = now + wait;
      return;
    }
    const std::uint64_t skipped_before = ripe->record.skipped;
    wheel_.schedule(*ripe, Moment{now + kRetry});  // unless what follows succeeds
    try {
      decide(*ripe);
      arm(*ripe);
    } catch (const StoreError& error) {
      appender_.failed("schedule " + ripe->record.name + ": " + error.what());
    }
    budget -= std::min(budget, cost_of(*ripe, skipped_before));
  }
}

Millis Schedules::must_wait() const {
  if (options_.refuses_puts && options_.refuses_puts()) return kRetry;
  return store_.has_room() ? 0 : kAwaitRoom;
}

std::optional<Tick> Schedules::next_wakeup() const {
  const std::optional<Tick> next = wheel_.next_wakeup();
  return next ? std::optional(std::max(*next, fire_at_)) : next;
}

void Schedules::decide(LoadedSchedule& schedule) {
  const ScheduleRecord& record = schedule.record;
  const UtcMs utc = clock_.utc();
  untold_.clear();
  if (record.waiting != 0) {
    if (record.schedule.overlap != Overlap::kAllow && is_last_there(schedule)) {
      awaited_[record.last_job] = &schedule;
    } else {
      ScheduleRecord after = record;
      after.last_occurrence = std::exchange(after.waiting, 0);
      ++after.fired;
      put(schedule, std::move(after), record.waiting + spread_of(record, record.waiting));
      return;
    }
  }
  std::optional<Occurrence> next = schedule.next(record.decided);
  if (!next || next->at > utc) return;
  ScheduleRecord after = record;
  next = skip_missed(schedule, *next, after);
  if (next && next->at <= utc) return occur(schedule, std::move(after), *next);
  store(schedule, std::move(after));
}

UtcMs Schedules::last_that_fires(const LoadedSchedule& schedule, Occurrence first, UtcMs until) {
  constexpr int kTries = 4;  // perhaps the clocks skip all occurrences
  Occurrence last = schedule.last(schedule.record.decided, until);
  for (int n = 0; n < kTries && last.at > first.at && schedule.is_in_gap(last); ++n)
    last = schedule.last(schedule.record.decided, last.at - 1);
  return last.at;
}

std::optional<Occurrence> Schedules::skip_missed(const LoadedSchedule& schedule, Occurrence next,
                                                 ScheduleRecord& after) {
  const Schedule& asked = schedule.record.schedule;
  const UtcMs utc = clock_.utc();
  const Millis window = asked.catch_up == CatchUp::kAll ? asked.catch_up_window : 0;
  const Millis reach = std::max(window, kOnTime);
  UtcMs first = utc > reach ? utc - reach : 0;  // the earliest that may fire
  if (next.at >= first) return next;
  if (asked.catch_up == CatchUp::kLast)
    first = std::min(first, last_that_fires(schedule, next, utc));
  if (next.at >= first) return next;
  skip(What::kMissed, next.at, schedule.count(schedule.record.decided, first - 1), after);
  after.decided = first - 1;
  return schedule.next(after.decided);
}

void Schedules::skip(ScheduleEvent::What what, UtcMs occurrence, std::uint64_t count,
                     ScheduleRecord& after) {
  after.skipped += count;
  untold_.push_back({.what = what, .name = after.name, .occurrence = occurrence, .count = count});
}

void Schedules::occur(LoadedSchedule& schedule, ScheduleRecord after, Occurrence occurrence) {
  CARILLON_REQUIRE(occurrence.at <= clock_.utc(), after.name, occurrence.at);
  using Clocks = Occurrence::Clocks;
  const Schedule& asked = after.schedule;
  after.decided = occurrence.at;
  if (schedule.is_in_gap(occurrence)) {
    skip(What::kInGap, occurrence.at, 1, after);
    store(schedule, std::move(after));
    return;
  }
  const bool overlaps = asked.overlap != Overlap::kAllow && is_last_there(schedule);
  if (overlaps && (asked.overlap == Overlap::kSkip || after.waiting != 0)) {
    skip(What::kOverlap, occurrence.at, 1, after);
    store(schedule, std::move(after));
    return;
  }
  add_fired(after, schedule.timetable, occurrence.at);
  if (overlaps) {
    after.waiting = occurrence.at;
    store(schedule, std::move(after));
    return;
  }
  after.last_occurrence = occurrence.at;
  ++after.fired;
  if (occurrence.clocks == Clocks::kShownTwice)
    untold_.push_back({.what = What::kShownTwice, .name = after.name, .occurrence = occurrence.at});
  const Millis spread = spread_of(after, occurrence.at);
  put(schedule, std::move(after), occurrence.at + spread);
}

void Schedules::put(LoadedSchedule& schedule, ScheduleRecord after, UtcMs when) {
  append_put(schedule, std::move(after), plan_put(schedule, when));
}

PlannedPut Schedules::plan_put(const LoadedSchedule& schedule, std::optional<UtcMs> when) {
  const Schedule& asked = schedule.record.schedule;
  if (when) when = std::min(*when, kLastDue);
  PutOrder order{.priority = asked.priority,
                 .due_at = when,
                 .ttr = asked.ttr,
                 .group = asked.group,
                 .retry = asked.retry,
                 .attributes = asked.attributes,
                 .at_expiry = asked.at_expiry};
  if (asked.expires_in > 0) {
    const UtcMs ready = std::max(when.value_or(0), clock_.utc_from());
    order.expires_at =
        asked.expires_in <= kLastDue - ready ? ready + asked.expires_in : kNeverExpires;
  }
  const LargeBody body{.bytes = static_cast<std::uint32_t>(asked.body.size())};
  return puts_.plan(schedule.lane->head(), order, body, asked.body);
}

Sequence Schedules::append_put(LoadedSchedule& schedule, ScheduleRecord after,
                               const PlannedPut& planned) {
  after.last_job = planned.outcome.id;
  after.last_tube = schedule.lane->head().record.number;
  const Sequence sequence = store(schedule, std::move(after));
  puts_.finish(planned);
  return sequence;
}

Sequence Schedules::store(LoadedSchedule& schedule, ScheduleRecord after) {
  appender_.changes.schedules.push_back({after.name, after});
  const Sequence sequence = appender_.append();
  stored(schedule, std::move(after));
  return sequence;
}

void Schedules::stored(LoadedSchedule& schedule, ScheduleRecord after) noexcept {
  ScheduleRecord& record = schedule.record;
  // If the occurrence has waited before, the job may have gone.
  const bool is_new = after.waiting != record.waiting || after.last_job != record.last_job;
  const bool was_awaited = awaited_.erase(record.last_job) > 0;
  record = std::move(after);
  if (record.waiting != 0 && (is_new || was_awaited)) awaited_[record.last_job] = &schedule;
  for (ScheduleEvent& event : untold_) tell(std::move(event));
  untold_.clear();
}

void Schedules::check_invariants() const {
  for (const auto& [name, schedule] : by_name_) {
    const ScheduleRecord& record = schedule->record;
    const bool sleeps = record.paused || !schedule->broken.empty();
    const bool is_free = record.waiting != 0 && !awaited_.contains(record.last_job);
    const bool comes = !sleeps && (is_free || schedule->next(record.decided));
    if (schedule->armed() == comes) continue;
    std::fprintf(stderr, "the schedule %s is %s\n", name.c_str(),
                 comes ? "never visited" : "visited, and never comes");
    std::abort();
  }
}

}  // namespace carillon::queue
