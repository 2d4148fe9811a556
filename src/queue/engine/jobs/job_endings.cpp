// Here attempts end that have failed, and the jobs go where their policies say: again, or to the
// dead. And other reservations whose end is to be stored.
//
// Nobody may hand out such a job before its end is stored. So the end of a job that loses its
// worker is queued: a client of the engine's own, `pending_endings`, holds the job. Each `advance`
// stores the ends of some of those jobs in one append. If that fails, they stay reserved, and the
// next `advance` tries again. Tubes take turns: those of a tube with very many such jobs come
// between those of others.
//
// The end of a job that has expired is queued as well: when it becomes ready, or by a timer while
// it is. A job that is not ready needs neither, because no worker gets it.

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
#include "queue/engine/jobs/retention.h"
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

void EngineState::check(const RetryPolicy& policy) {
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

const RetryPolicy& EngineState::policy_of(const JobRecord& job) {
  if (job.extras->retry != RetryPolicy()) return job.extras->retry;
  return tube_numbered(job.tube).head().record.settings->retry;
}

bool EngineState::end_is_stored(const LoadedJob& job, Ending ending) {
  if (!job.record.extras && !job.tube->head().record.settings) return false;
  if (job.record.extras->cancel_asked) return true;
  const RetryPolicy& policy = policy_of(job.record);
  return ending == Ending::kLost ? policy.lost_fails : policy != RetryPolicy();
}

void EngineState::queue_ending(LoadedJob& job, std::optional<Ending> ending) noexcept {
  std::string worker = job.holder == nullptr ? std::string() : job.holder->name;
  queued_endings.try_emplace(job.record.id) = {.ending = ending, .worker = std::move(worker)};
  detach(job);
  job.state = JobState::kReserved;
  const bool is_doubted =
      !ending && !job.record.extras->cancel_asked && !clock.has_surely_expired(job.record);
  job.holder = is_doubted ? &doubted : &pending_endings;
  job.tube->reserve(job.record.due);
  ++sums.reserved;
  if (!ending) job.tube->count_ending(+1);
  if (job.tube->is_lane()) may_start(*job.tube);
  constexpr Tick kNever = UINT64_MAX;  // nothing is to be stored of a job in doubt
  ttrs.schedule(job, Moment{is_doubted ? kNever : next_end_turn(*job.tube)});
  job.holder->held.push_back(job);
  job.holder->deadlines.insert(job);
}

// The jobs of one tube have turns that follow each other. The first of them has the turn that is
// next now, and so stands beside the first ones of other tubes. (These are fair queues by start
// times: Goyal, Vin and Cheng, "Start-time fair queueing", 1996.)
Tick EngineState::next_end_turn(Tube& of) noexcept {
  Tube& tube = of.head();
  tube.end_turn = std::max(tube.end_turn + 1, end_turn);
  return tube.end_turn;
}

PlannedEnd EngineState::plan_end(LoadedJob& job, Attempt attempt, const Failure& failure) {
  PlannedEnd end{.job = &job, .after = {}};
  if (job.record.extras->cancel_asked) {
    add_removal(job.record, Work::kNotDone);
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
    die(extras, Death::kAttempts, clock);
    after.burial = next_burial++;
  } else {
    const UtcMs from = clock.utc_from();
    const Millis delay = std::min(failure.delay.value_or(delay_after(policy, after.id, failed)),
                                  kLastDue - std::min(from, kLastDue));
    // Without a delay the job keeps its old due time, as in a release.
    if (delay > 0 || clock.due_of(after) > clock.utc()) {
      after.due = delay > 0 ? from + delay : clock.utc();
      clock.counts_from_now(after);
    }
    after.delay = delay;
  }
  after.extras = detail::Rare(std::move(extras));
  add_change(job.record, after);
  end.after = std::move(after);
  return end;
}

PlannedEnd EngineState::plan_end(LoadedJob& job) {
  PlannedEnd end{.job = &job, .after = {}};
  const JobExtras& before = *job.record.extras;
  if (before.cancel_asked || before.at_expiry == AtExpiry::kDrop) {
    add_removal(job.record, Work::kNotDone);
    return end;
  }
  JobExtras extras = before;
  die(extras, Death::kExpired, clock);
  JobRecord after = job.record;
  after.history = job.history;
  after.burial = next_burial++;
  after.extras = detail::Rare(std::move(extras));
  add_change(job.record, after);
  end.after = std::move(after);
  return end;
}

// A story that is damaged begins anew: the job needs an end all the same.
void EngineState::add_to_story(const JobRecord& job, Attempt attempt) {
  std::vector<Attempt> story;
  try {
    if (job.extras->has_story) story = store.story(job.id);
  } catch (const StoreDamage& damage) {
    load_failure = damage.what();
  }
  if (story.size() >= kMaxStory)
    story.erase(story.begin(), story.end() - static_cast<std::ptrdiff_t>(kMaxStory - 1));
  story.push_back(std::move(attempt));
  changes.stories.push_back({job.id, std::move(story)});
}

void EngineState::finish_end(const PlannedEnd& end) noexcept {
  LoadedJob& job = *end.job;
  if (const QueuedEnding* const how = queued_endings.find(job.record.id)) {
    if (!how->ending) job.tube->count_ending(-1);
    queued_endings.erase(job.record.id);
  }
  if (!end.after) {
    finish_removal(job.record);
    return;
  }
  detach(job);
  if (end.after->buried()) {
    ++job.tube->head().deaths;
    ++totals.dead;
    Retention::await(*this, *job.tube, *end.after);
    return drop_from_memory(job);
  }
  job.record = *end.after;
  job.history = end.after->history;
  job.sequence = last_sequence;
  enqueue(job);
}

void EngineState::finish_ends(const std::vector<PlannedEnd>& ends) noexcept {
  for (const PlannedEnd& end : ends) finish_end(end);
}

void EngineState::end_attempts(std::vector<Tube*>& served, std::vector<std::uint32_t>& emptied,
                               std::size_t budget) {
  if (pending_endings.held.empty() || clock.mono() < endings_at) return;
  if (!store.has_room()) {
    endings_at = clock.mono() + kAwaitRoom;
    return;
  }
  std::vector<PlannedEnd> ends;
  try {
    auto at = pending_endings.deadlines.begin();
    for (auto left = std::min({budget, kEndsAtOnce, pending_endings.held.size()}); left > 0;
         --left) {
      LoadedJob& job = *at++;
      end_turn = std::max<Tick>(end_turn, job.expiry());
      const QueuedEnding& how = *queued_endings.find(job.record.id);
      if (!how.ending) {
        ends.push_back(plan_end(job));
        continue;
      }
      try {
        ends.push_back(plan_end(
            job, {.at = clock.utc(), .ending = *how.ending, .worker = how.worker, .error = {}},
            {}));
      } catch (const StoreError& error) {
        // The others do not wait for a story that cannot be read now.
        load_failure = error.what();
        set_deadline(job, next_end_turn(*job.tube));
      }
    }
    served.reserve(served.size() + ends.size());
    emptied.reserve(emptied.size() + ends.size());
    if (ends.empty()) {
      endings_at = clock.mono() + kTryAgain;
      return;
    }
    append();
  } catch (const StoreError& error) {
    load_failure = error.what();
    endings_at = clock.mono() + kTryAgain;
    return;
  }
  for (const PlannedEnd& end : ends) {
    Tube* const tube = end.job->tube;
    if ((end.after && !end.after->buried()) || tube->limited()) served.push_back(tube);
    if (!end.after) emptied.push_back(tube->record.number);
  }
  finish_ends(ends);
}

// --- Expiry

void EngineState::await_expiry(LoadedJob& job) {
  const Tick when = clock.tick_of(clock.expiry_of(job.record));
  // The tick may have come already: if the wall clock was set back by so little that it is no step.
  expiries.reschedule(job, Moment{std::max(when, clock.tick() + 1)});
}

void EngineState::expire(std::vector<Tube*>& served, std::size_t budget) {
  expiries.advance(
      clock.tick(),
      [this, &served](TimerNode& node) {
        auto& job = static_cast<LoadedJob&>(node);
        if (!clock.has_expired(job.record)) return await_expiry(job);
        if (served.empty() || served.back() != job.tube) served.push_back(job.tube);
        queue_ending(job, std::nullopt);
      },
      budget);
}

void EngineState::decide_doubted(std::vector<Tube*>& served, std::size_t budget) {
  if (doubted.held.empty()) return;
  if (to_decide == 0 && !clock.is_in_doubt()) to_decide = doubted.held.size();
  to_decide = std::min(to_decide, doubted.held.size());
  for (; to_decide > 0 && budget > 0; --to_decide, --budget) {
    LoadedJob& job = doubted.held.front();
    const JobId id = job.record.id;
    Tube& tube = *job.tube;
    served.push_back(&tube);
    queued_endings.erase(id);
    tube.count_ending(-1);
    detach(job);
    enqueue(job);
    if (LoadedJob* still = loaded(id)) make_room(tube, *still);
  }
}

bool EngineState::may_load(const Tube& tube) const {
  constexpr std::size_t kMost = 10'000;
  constexpr std::size_t kMostDoubted = 100'000;
  if (pending_endings.held.size() >= kMost) return false;
  return doubted.held.size() < kMostDoubted || tube.ending == 0;
}

void EngineState::set_deadline(LoadedJob& job, std::uint64_t mono) {
  Client& holder = *job.holder;
  holder.deadlines.erase(holder.deadlines.iterator_to(job));
  ttrs.reschedule(job, Moment{mono});
  holder.deadlines.insert(job);
}

}  // namespace carillon::queue
