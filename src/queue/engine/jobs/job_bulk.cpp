// Cancels, retries, moves or spreads many jobs in steps (job_bulk.h).

#include "carillon/queue/job_bulk.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "queue/engine/jobs/job_lists.h"

namespace carillon::queue {

namespace {

using Action = JobBulk::Action;
using Jobs = std::vector<JobRecord>;

// A retry makes jobs ready, and a job that goes into memory costs more than one that leaves.
constexpr std::size_t kRetryStep = 16;

constexpr std::uint32_t kRetried =
    bit_of(JobState::kDelayed) | bit_of(JobState::kBuried) | kDeadJobs;

// Returns which job of the tube has the key of the job, or had it.
std::optional<KeyRecord> key_in(const Store& store, const Tube& tube, const JobRecord& job) {
  if (job.extras->key.empty()) return std::nullopt;
  return store.find_key(tube.head().record.number, job.extras->key);
}

// An empty `reason` stands for any.
bool has_reason(const EngineState& s, const JobRecord& job, const std::string& reason) {
  if (reason.empty()) return true;
  if (!job.buried()) return false;
  const auto story = job.extras->has_story ? s.store.story(job.id) : std::vector<Attempt>();
  return reason_of(job, story) == reason;
}

void cancel_all(EngineState& s, const Jobs& jobs) {
  for (const JobRecord& job : jobs) s.removals.add(job, Work::kNotDone);
  s.appender.append();
  for (const JobRecord& job : jobs) s.removals.finish(job);
}

// The job leaves one tube as if it was deleted, and enters the other as if it was put.
void finish_move(EngineState& s, const JobRecord& before, const JobRecord& after) {
  if (LoadedJob* const job = s.jobs.loaded(before.id)) {
    s.jobs.detach(*job);
    s.jobs.drop_from_memory(*job);
  } else {
    s.far.note(s.tubes.numbered(before.tube), before, -1);
  }
  if (!after.buried()) return s.jobs.take_in(after);
  s.retention.await(s.tubes.numbered(after.tube), after);
}

void move_key(EngineState& s, const JobRecord& job, const Tube& to) {
  const std::uint32_t tube = s.tubes.numbered(job.tube).head().record.number;
  const KeyRecord before{.tube = tube, .key = job.extras->key, .id = job.id};
  KeyRecord after = before;
  after.tube = to.head().record.number;
  s.keys.add_change(before, std::nullopt);
  s.keys.add_change(key_in(s.store, to, job), std::move(after));
}

void move_all(EngineState& s, const Jobs& jobs, Tube& to) {
  Jobs moved;
  for (const JobRecord& job : jobs) {
    if (!job.extras->key.empty()) move_key(s, job, to);
    JobRecord after = job;
    after.tube = to.record.number;
    if (const LoadedJob* in_memory = s.jobs.loaded(job.id)) after.history = in_memory->history;
    s.appender.add_change(job, after);
    moved.push_back(std::move(after));
  }
  s.far.extend_cursor(to);
  s.appender.append();
  for (std::size_t i = 0; i < jobs.size(); ++i) finish_move(s, jobs[i], moved[i]);
}

// Makes the tube if it does not exist. The jobs keep their groups.
void move_all(EngineState& s, const Jobs& jobs, const Tube& from, const std::string& to) {
  Tube& tube = s.tubes.named(to);
  const std::string group = from.is_lane() ? from.record.name : std::string();
  try {
    move_all(s, jobs, s.tubes.lane_named(tube, group));
  } catch (...) {
    const std::uint32_t number = tube.record.number;
    s.tubes.forget_lane(tube, group);
    s.tubes.forget_if_unreferenced(number);
    throw;
  }
}

// Returns where a spread puts the job. The fractional parts of multiples of the golden ratio lie
// evenly for any number of jobs (Knuth, The Art of Computer Programming 3, section 6.4).
UtcMs place_of(JobId id, const JobBulk& bulk) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  static_assert(kLongestSpread <= UINT32_MAX);
  return bulk.list.filter.due_from + (((id * kGolden) >> 32U) * bulk.over >> 32U);
}

bool keeps_its_place(const EngineState& s, const JobRecord& job, const JobBulk& bulk) {
  const UtcMs place = place_of(job.id, bulk);
  return place < bulk.list.filter.due_before || place <= s.clock.due_of(job);
}

void spread_all(EngineState& s, const Jobs& jobs, const JobBulk& bulk) {
  Jobs spread;
  for (const JobRecord& job : jobs) {
    JobRecord after = job;
    if (const LoadedJob* in_memory = s.jobs.loaded(job.id)) after.history = in_memory->history;
    s.clock.set_due(after, 0, place_of(job.id, bulk));
    s.appender.add_change(job, after);
    spread.push_back(std::move(after));
  }
  s.appender.append();
  for (std::size_t i = 0; i < jobs.size(); ++i) finish_move(s, jobs[i], spread[i]);
}

// `to`: the tube into which the job must move; null: the bulk is no move.
bool can_change(const Store& store, const EngineClock& clock, const JobBulk& bulk,
                const JobRecord& job, JobState state, const Tube* to) {
  if (state == JobState::kReserved) return false;
  if (bulk.action == Action::kSpread) {
    const UtcMs expiry = clock.expiry_of(job);
    return expiry == 0 || expiry > place_of(job.id, bulk);
  }
  if (to == nullptr) return true;
  const auto owner = key_in(store, *to, job);
  return !owner || owner->until != 0;
}

// Scans the next jobs, moves the bulk on, and returns the jobs to be changed.
Jobs next_to_change(EngineState& s, Tube& tube, JobBulk& bulk) {
  const Tube* const to = bulk.action == Action::kMove ? s.tubes.find(bulk.to) : nullptr;
  JobListing& list = bulk.list;
  const std::size_t step = bulk.action == Action::kRetry ? kRetryStep : kBulkStep;
  auto found = NextListed::in(s, tube, list.filter, list.next, step);
  list.incomplete = list.incomplete || found.incomplete;
  Jobs jobs;
  for (JobRecord& job : found.jobs) {
    if (bulk.ended()) return jobs;
    list.move_to(JobCursor::after(job));
    ++list.looked_at;
    const JobState state = s.jobs.state_of(job);
    if (!list.filter.admits(job, state) || !has_reason(s, job, bulk.reason)) continue;
    if (bulk.action == Action::kSpread && keeps_its_place(s, job, bulk)) continue;
    if (!can_change(s.store, s.clock, bulk, job, state, to)) {
      ++bulk.left;
      continue;
    }
    ++bulk.changed;
    jobs.push_back(std::move(job));
  }
  if (found.next) list.move_to(*found.next);
  if (found.done) NextListed::pass(tube, list);
  return jobs;
}

}  // namespace

std::string JobBulk::fault() const {
  if (action == Action::kMove && to == list.tube)
    return "the jobs would move to the tube that they are in";
  if (action != Action::kSpread) return {};
  const JobFilter& filter = list.filter;
  if (filter.due_from == 0 || filter.due_before > kLastDue || filter.due_before <= filter.due_from)
    return "say which jobs are spread: those due from one moment on, and before a later one";
  if (over == 0) return "say over how long the jobs are spread";
  const Millis window = filter.due_before - filter.due_from;
  if (over <= window)
    return "a time of " + std::to_string(over) + " ms is not longer than the one in which the " +
           "jobs are due, of " + std::to_string(window) + " ms";
  if (over > kLongestSpread || filter.due_from > kLastDue - over)
    return "a time of " + std::to_string(over) + " ms is too long: the most are 30 days";
  return {};
}

void EngineJobs::change_jobs(Now now, JobBulk& bulk) {
  EngineState& s = state_;
  s.advance(now);
  if (const std::string why = bulk.fault(); !why.empty())
    throw std::invalid_argument("queue engine: " + why);
  if (bulk.ended()) return;
  Tube* const tube = NextListed::lane_of(s, bulk.list);
  bulk.list.done = tube == nullptr;
  if (bulk.list.done) return;
  JobBulk ahead = bulk;
  if (ahead.action == Action::kSpread) ahead.list.filter.states &= bit_of(JobState::kDelayed);
  if (ahead.action == Action::kRetry) {
    ahead.list.filter.states &= kRetried;
    ahead.list.next.burials_before =
        std::min(ahead.list.next.burials_before, s.appender.next_burial());
  }
  const std::uint32_t number = tube->record.number;
  const Jobs jobs = next_to_change(s, *tube, ahead);
  if (!jobs.empty() && !ahead.dry_run) {
    if (ahead.action == Action::kCancel) cancel_all(s, jobs);
    if (ahead.action == Action::kRetry) s.kick(jobs, Anew::kOfAll);
    if (ahead.action == Action::kMove) move_all(s, jobs, *tube, ahead.to);
    if (ahead.action == Action::kSpread) spread_all(s, jobs, ahead);
    ahead.durable_at = s.appender.last_sequence();
    s.tubes.forget_if_unreferenced(number);
  }
  bulk = std::move(ahead);
}

}  // namespace carillon::queue
