#include "queue/engine/jobs/endings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "carillon/queue/job_bulk.h"
#include "carillon/require.h"
#include "queue/engine/state/engine_state.h"
#include "queue/engine/state/mix.h"

namespace carillon::queue {

namespace {

// When the end of a reservation that could not be stored is tried again, in ms.
constexpr Millis kTryAgain = 1'000;

// How many ends are stored in one append: each is a story of up to 11 KB that is read and written.
constexpr std::size_t kEndsAtOnce = 16;

// The job is dead from now on.
void die(JobExtras& job, Death of, const EngineClock& clock) {
  job.death = of;
  job.died = clock.utc_from();
  job.died_lead = clock.lead();
}

}  // namespace

Millis delay_after(const RetryPolicy& policy, JobId id, std::uint32_t failed) {
  constexpr std::uint32_t kPercent = 100;
  const Millis most = std::min(std::max(policy.backoff, policy.backoff_max), kLastDue);
  Millis delay = std::min(policy.backoff, most);
  for (std::uint32_t i = 1; i < failed && delay > 0 && delay < most; ++i)
    delay = std::min(2 * delay, most);
  const Millis jitter =
      delay / kPercent * policy.jitter + delay % kPercent * policy.jitter / kPercent;
  return delay + (jitter == 0 ? 0 : mix(id * 1'000'003 + failed) % (jitter + 1));
}

std::string reason_of(const JobRecord& job, std::span<const Attempt> story) {
  if (job.extras->death == Death::kExpired) return "expired";
  if (story.empty()) return "buried";
  const std::string& said = story.back().error;
  const std::string_view first_line = std::string_view(said).substr(0, said.find_first_of("\r\n"));
  std::string line(base::beginning(first_line, kMaxReason));
  if (!line.empty()) return line;
  switch (story.back().ending) {
    case Ending::kFailed:
      return "failed";
    case Ending::kTimedOut:
      return "timed out";
    case Ending::kLost:
      return "worker lost";
  }
  return "buried";
}

void Endings::check(const RetryPolicy& policy) {
  constexpr std::uint32_t kPercent = 100;
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("queue engine: " + what);
  };
  if (policy.jitter > kPercent)
    refuse("the jitter is " + std::to_string(policy.jitter) + " percent; the most is 100");
  const Millis longest = std::max(policy.backoff, policy.backoff_max);
  if (longest > kLastDue)
    refuse("a back-off is " + std::to_string(longest) + " ms; the most is " +
           std::to_string(kLastDue));
}

const RetryPolicy& Endings::policy_of(const JobRecord& job) const {
  if (job.extras->retry != RetryPolicy()) return job.extras->retry;
  return tubes_.numbered(job.tube).head().record.settings->retry;
}

bool Endings::is_stored(const LoadedJob& job, Ending ending) const {
  if (!job.record.extras && !job.tube->head().record.settings) return false;
  if (job.record.extras->cancel_asked) return true;
  const RetryPolicy& policy = policy_of(job.record);
  return ending == Ending::kLost ? policy.lost_fails : policy != RetryPolicy();
}

void Endings::queue(LoadedJob& job, std::optional<Ending> ending) noexcept {
  CARILLON_REQUIRE(!job.order_hook.is_linked() || job.state != JobState::kDelayed, job.record.id);
  std::string worker = job.holder == nullptr ? std::string() : job.holder->name;
  queued_.try_emplace(job.record.id) = {.ending = ending, .worker = std::move(worker)};
  jobs_.detach(job);
  const bool is_doubted =
      !ending && !job.record.extras->cancel_asked && !clock_.has_surely_expired(job.record);
  constexpr Tick kNever = UINT64_MAX;  // a job in doubt has no end to store
  clients_.begin_reservation(job, is_doubted ? doubted_ : pending_,
                             is_doubted ? kNever : next_turn(*job.tube));
  if (!ending) job.tube->count_ending(+1);
  if (job.tube->is_lane()) throttle_.may_start(*job.tube);
  far_.room_appeared(*job.tube);  // a job in doubt may wait here for long
}

// Successive jobs of one tube get successive turns. The first of them gets the turn that is next
// now, and so stands beside the first jobs of other tubes. (These are fair queues by start times:
// Goyal, Vin and Cheng, "Start-time fair queueing", 1996.)
Tick Endings::next_turn(Tube& of) const noexcept {
  Tube& tube = of.head();
  tube.end_turn = std::max(tube.end_turn + 1, turn_);
  return tube.end_turn;
}

PlannedEnd Endings::plan_release(LoadedJob& job, Priority priority, Millis delay) {
  PlannedEnd end{.job = &job, .after = {}};
  if (job.record.extras && job.record.extras->cancel_asked) {
    removals_.add(job.record, Work::kNotDone);
    return end;
  }
  JobRecord after = job.record;
  after.history = job.history;
  ++after.history.releases;
  after.priority = priority;
  after.delay = delay;
  // Without a delay the job keeps its old due time, and so comes before those that became ready
  // later. A new due time would put it behind a backlog that is not loaded.
  if (delay > 0 || clock_.due_of(after) > clock_.utc()) {
    after.due = delay > 0 ? clock_.utc_from() + delay : clock_.utc();
    clock_.counts_from_now(after);
  }
  appender_.add_change(job.record, after);
  appender_.end_lease(job);
  end.after = std::move(after);
  return end;
}

PlannedEnd Endings::plan_end(LoadedJob& job, Attempt attempt, const Failure& failure) {
  PlannedEnd end{.job = &job, .after = {}};
  if (job.record.extras->cancel_asked) {
    removals_.add(job.record, Work::kNotDone);
    return end;
  }
  const RetryPolicy& policy = policy_of(job.record);
  JobRecord after = job.record;
  after.history = job.history;
  after.priority = failure.priority.value_or(after.priority);
  JobExtras extras = *after.extras;
  const std::uint32_t failed = ++extras.attempts;
  add_to_story(job.record, std::move(attempt));
  extras.has_story = true;
  const std::uint32_t most = failure.max_attempts.value_or(policy.max_attempts);
  if (most > 0 && failed >= most) {
    die(extras, Death::kAttempts, clock_);
    after.burial = appender_.give_burial();
  } else {
    const UtcMs from = clock_.utc_from();
    const Millis delay = std::min(failure.delay.value_or(delay_after(policy, after.id, failed)),
                                  kLastDue - std::min(from, kLastDue));
    // Without a delay the job keeps its old due time, as in a release.
    if (delay > 0 || clock_.due_of(after) > clock_.utc()) {
      after.due = delay > 0 ? from + delay : clock_.utc();
      clock_.counts_from_now(after);
    }
    after.delay = delay;
  }
  after.extras = detail::Rare(std::move(extras));
  appender_.add_change(job.record, after);
  appender_.end_lease(job);
  end.after = std::move(after);
  return end;
}

PlannedEnd Endings::plan_end(LoadedJob& job) {
  PlannedEnd end{.job = &job, .after = {}};
  const JobExtras& before = *job.record.extras;
  if (before.cancel_asked || before.at_expiry == AtExpiry::kDrop) {
    removals_.add(job.record, Work::kNotDone);
    return end;
  }
  JobExtras extras = before;
  die(extras, Death::kExpired, clock_);
  JobRecord after = job.record;
  after.history = job.history;
  after.burial = appender_.give_burial();
  after.extras = detail::Rare(std::move(extras));
  appender_.add_change(job.record, after);
  appender_.end_lease(job);
  end.after = std::move(after);
  return end;
}

// A damaged story begins anew, because the job needs an end in any case.
void Endings::add_to_story(const JobRecord& job, Attempt attempt) {
  std::vector<Attempt> story;
  try {
    if (job.extras->has_story) story = store_.story(job.id);
  } catch (const StoreDamage& damage) {
    appender_.failed(damage.what());
  }
  if (story.size() >= kMaxStory)
    story.erase(story.begin(), story.end() - static_cast<std::ptrdiff_t>(kMaxStory - 1));
  story.push_back(std::move(attempt));
  appender_.changes.stories.push_back({job.id, std::move(story)});
}

void Endings::finish_end(const PlannedEnd& end) noexcept {
  LoadedJob& job = *end.job;
  if (const QueuedEnding* const how = queued_.find(job.record.id)) {
    if (!how->ending) job.tube->count_ending(-1);
    queued_.erase(job.record.id);
  }
  if (!end.after) {
    removals_.finish(job.record);
    return;
  }
  jobs_.detach(job);
  job.has_stored_lease = false;
  if (end.after->buried()) {
    ++job.tube->head().deaths;
    ++counts_.totals.dead;
    retention_.await(*job.tube, *end.after);
    return jobs_.drop_from_memory(job);
  }
  job.record = *end.after;
  job.history = end.after->history;
  job.sequence = appender_.last_sequence();
  jobs_.enqueue(job);
}

void Endings::store_some(std::vector<Tube*>& served, std::vector<std::uint32_t>& emptied,
                         std::size_t budget) {
  if (pending_.held.empty() || clock_.mono() < store_at_) return;
  if (!store_.has_room()) {
    store_at_ = clock_.mono() + kAwaitRoom;
    return;
  }
  std::vector<PlannedEnd> ends;
  try {
    auto at = pending_.deadlines.begin();
    for (auto left = std::min({budget, kEndsAtOnce, pending_.held.size()}); left > 0; --left) {
      LoadedJob& job = *at++;
      turn_ = std::max<Tick>(turn_, job.expiry());
      const QueuedEnding& how = *queued_.find(job.record.id);
      if (!how.ending) {
        ends.push_back(plan_end(job));
        continue;
      }
      try {
        ends.push_back(plan_end(
            job, {.at = clock_.utc(), .ending = *how.ending, .worker = how.worker, .error = {}},
            {}));
      } catch (const StoreError& error) {
        // Other jobs do not wait for a story that cannot be read now.
        appender_.failed(error.what());
        clients_.set_deadline(job, next_turn(*job.tube));
      }
    }
    served.reserve(served.size() + ends.size());
    emptied.reserve(emptied.size() + ends.size());
    if (ends.empty()) {
      store_at_ = clock_.mono() + kTryAgain;
      return;
    }
    appender_.append();
  } catch (const StoreError& error) {
    appender_.failed(error.what());
    store_at_ = clock_.mono() + kTryAgain;
    return;
  }
  for (const PlannedEnd& end : ends) {
    Tube* const tube = end.job->tube;
    if ((end.after && !end.after->buried()) || tube->limited()) served.push_back(tube);
    if (!end.after) emptied.push_back(tube->record.number);
  }
  for (const PlannedEnd& end : ends) finish_end(end);
}

// --- Expiry

void Endings::await_expiry(LoadedJob& job) {
  const Tick when = clock_.tick_of(clock_.expiry_of(job.record));
  // The tick may have come already: if the wall clock was set back by so little that it is no step.
  expiries_.reschedule(job, Moment{std::max(when, clock_.tick() + 1)});
}

void Endings::expire(std::vector<Tube*>& served, std::size_t budget) {
  expiries_.advance(
      clock_.tick(),
      [this, &served](TimerNode& node) {
        auto& job = static_cast<LoadedJob&>(node);
        if (!clock_.has_expired(job.record)) return await_expiry(job);
        if (served.empty() || served.back() != job.tube) served.push_back(job.tube);
        queue(job, std::nullopt);
      },
      budget);
}

void Endings::decide_doubted(std::vector<Tube*>& served, std::size_t budget) {
  if (doubted_.held.empty()) return;
  if (to_decide_ == 0 && !clock_.is_in_doubt()) to_decide_ = doubted_.held.size();
  to_decide_ = std::min(to_decide_, doubted_.held.size());
  for (; to_decide_ > 0 && budget > 0; --to_decide_, --budget) {
    LoadedJob& job = doubted_.held.front();
    const JobId id = job.record.id;
    Tube& tube = *job.tube;
    served.push_back(&tube);
    queued_.erase(id);
    tube.count_ending(-1);
    jobs_.detach(job);
    jobs_.enqueue(job);
    if (LoadedJob* still = jobs_.loaded(id)) far_.make_room(tube, *still);
  }
}

bool Endings::may_load(const Tube& tube) const {
  constexpr std::size_t kMost = 10'000;
  constexpr std::size_t kMostDoubted = 100'000;
  if (pending_.held.size() >= kMost) return false;
  return doubted_.held.size() < kMostDoubted || tube.ending == 0;
}

bool Endings::is_behind() const {
  const std::optional<Tick> next = expiries_.next_wakeup();
  return next && *next <= clock_.tick();
}

std::optional<std::uint64_t> Endings::next_wakeup() const {
  std::uint64_t wake = UINT64_MAX;
  if (const auto tick = expiries_.next_wakeup()) wake = clock_.mono_ns_at_tick(*tick);
  if (!doubted_.held.empty())
    wake = std::min(wake, clock_.mono_ns_at_tick(to_decide_ > 0 ? 0 : clock_.tick_beyond_doubt()));
  if (!pending_.held.empty()) wake = std::min(wake, EngineClock::mono_ns_at(store_at_));
  return wake == UINT64_MAX ? std::nullopt : std::optional(wake);
}

void Endings::check_invariants(std::uint64_t ending) const {
  check_invariant(held() == queued_.size(), "each job that ends has its ending",
                  std::to_string(queued_.size()));
  std::size_t others = 0;
  queued_.for_each([&others](JobId, const auto& end) {
    if (end.ending) ++others;
  });
  check_invariant(ending + others == queued_.size(), "jobs that end without a worker are counted",
                  std::to_string(ending));
  expiries_.check_invariants();
}

}  // namespace carillon::queue
