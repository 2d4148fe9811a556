// What each change of a schedule's record may be (schedule_model.h).

#include "simulator/schedule_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/text/calendar.h"
#include "simulator/clock.h"

namespace carillon::simulator {

using queue::CatchUp;
using queue::JobId;
using queue::Now;
using queue::Occurrence;
using queue::Overlap;
using queue::Schedule;
using queue::ScheduleRecord;
using queue::UtcMs;

namespace {

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  throw Violation("the schedule " + name + " " + why);
}

UtcMs utc_ms(Now now) {
  return now.utc_ns / kNsPerMs;
}

bool covers(const queue::FiredSpan& span, UtcMs at) {
  return span.first <= at && at <= span.last;
}

}  // namespace

// --- What is known.

void ScheduleModel::restart(Now now) {
  const std::map<std::string, Entry> before = std::exchange(entries_, {});
  wrong_from_.reset();
  for (const auto& [name, record] : history_.state().schedules) {
    Entry& entry = entries_[name];
    entry.record = record;
    entry.decided = std::min(record.decided, utc_ms(now));
    read_times(entry);
    const auto known = before.find(name);
    if (known == before.end() || known->second.record.created != record.created ||
        !known->second.record.schedule.occurs_as(record.schedule))
      continue;
    entry.fired = known->second.fired;
    // The engine may have appended already, under the numbers of appends that were lost.
    std::erase_if(entry.fired,
                  [this](const auto& fired) { return fired.second > history_.opened_at(); });
  }
}

void ScheduleModel::clock_was_set(Now now) {
  constexpr std::int64_t kLarge = 2'000'000'000;
  ++clock_steps_;
  for (auto& [name, entry] : entries_) entry.decided = std::min(entry.decided, utc_ms(now));
  const std::int64_t wrong_ns = virtual_time().wrong_ns;
  const bool was_right = std::exchange(was_wrong_ns_, wrong_ns) == 0;
  if (was_right && wrong_ns > kLarge) {
    wrong_from_ = {now.utc_ns - static_cast<std::uint64_t>(wrong_ns), now.utc_ns};
  } else if (wrong_ns == 0 && wrong_from_ && now.utc_ns + kLarge < wrong_from_->second) {
    // What came meanwhile must be decided again.
    for (auto& [name, entry] : entries_) {
      const std::uint64_t set_at = now.utc_ns - (now.mono_ns - entry.set_at);
      const std::uint64_t from = std::max(wrong_from_->first, set_at);
      entry.decided = std::min(entry.decided, from / 1'000'000);
    }
  }
  if (wrong_ns < kLarge) wrong_from_.reset();
}

void ScheduleModel::read_times(Entry& entry) {
  const Schedule& asked = entry.record.schedule;
  if (!asked.cron.empty()) {
    entry.timetable = server::cron_calendar()(asked.cron, asked.zone);
    return;
  }
  entry.timetable = [start = asked.start.value_or(0), every = asked.every](UtcMs after) {
    return std::optional(
        Occurrence{.at = after < start ? start : after + every - (after - start) % every});
  };
}

std::set<std::string_view> ScheduleModel::tubes() const {
  std::set<std::string_view> tubes;
  for (const auto& [name, entry] : entries_) tubes.insert(entry.record.schedule.tube);
  return tubes;
}

std::set<std::pair<std::string, std::string>> ScheduleModel::groups() const {
  std::set<std::pair<std::string, std::string>> groups;
  for (const auto& [name, entry] : entries_) {
    const Schedule& asked = entry.record.schedule;
    if (!asked.group.empty()) groups.emplace(asked.tube, asked.group);
  }
  return groups;
}

std::size_t ScheduleModel::names_after(const std::string& name) const {
  return static_cast<std::size_t>(std::distance(entries_.upper_bound(name), entries_.end()));
}

ScheduleModel::Entry& ScheduleModel::entry_of(const Step& step) {
  const auto found = entries_.find(step.name);
  if (found == entries_.end()) fail(step.name, "is changed, and does not exist");
  return found->second;
}

// --- Occurrences.

bool ScheduleModel::has_fired(const Entry& entry, UtcMs at) {
  const auto& spans = entry.record.spans;
  return entry.fired.contains(at) ||
         std::any_of(spans.begin(), spans.end(),
                     [at](const auto& span) { return covers(span, at); });
}

std::optional<Occurrence> ScheduleModel::next(const Entry& entry, UtcMs after) {
  auto found = entry.timetable(after);
  while (found && has_fired(entry, found->at)) {
    UtcMs beyond = found->at;
    for (const queue::FiredSpan& span : entry.record.spans) {
      if (covers(span, beyond)) beyond = span.last;
    }
    found = entry.timetable(beyond);
  }
  return found;
}

// Searches further and further back. None if it did not occur within five years.
std::optional<UtcMs> ScheduleModel::last_by(const Entry& entry, UtcMs until) {
  constexpr UtcMs kDay = 86'400'000;
  for (const UtcMs back : {UtcMs{120'000}, UtcMs{7'200'000}, 2 * kDay, 70 * kDay, 1'900 * kDay}) {
    std::optional<UtcMs> last;
    for (auto found = next(entry, until - back); found && found->at <= until;
         found = next(entry, found->at)) {
      if (!is_in_gap(entry, *found)) last = found->at;
    }
    if (last) return last;
  }
  return std::nullopt;
}

bool ScheduleModel::is_in_gap(const Entry& entry, const Occurrence& occurrence) {
  return occurrence.clocks == Occurrence::Clocks::kAfterGap && !entry.record.schedule.run_after_gap;
}

bool ScheduleModel::is_there(JobId id) const {
  const auto job = history_.state().jobs.find(id);
  return job != history_.state().jobs.end() && !job->second.record.buried();
}

bool ScheduleModel::has_old_occurrence(Now now) const {
  constexpr UtcMs kLong = 2'000;
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) {
    const Entry& entry = each.second;
    if (entry.record.paused) return false;
    if (entry.record.waiting != 0 && !is_there(entry.record.last_job)) return true;
    const auto occurrence = next(entry, entry.decided);
    return occurrence && occurrence->at + kLong < utc_ms(now);
  });
}

// --- What the engine does by itself.

void ScheduleModel::judge_own_step(const Step& step, Now first, Now last) {
  Entry& entry = entry_of(step);
  if (!step.after) fail(step.name, "is gone");
  const ScheduleRecord& before = entry.record;
  const ScheduleRecord& after = *step.after;
  if (before.paused) fail(step.name, "is paused, and something happens");
  expect_same_but_times(entry, step);
  const bool waited = before.waiting != 0 && after.waiting == 0;
  UtcMs handled = waited ? before.waiting : 0;
  if (!waited && step.put != 0) handled = after.last_occurrence;
  if (!waited && after.waiting != before.waiting) handled = after.waiting;
  if (step.put != 0) {
    judge_firing(entry, step, handled, utc_ms(last));
  } else if (after.fired != before.fired || after.last_job != before.last_job) {
    fail(step.name, "says that it has fired");
  }
  if (!waited) {
    if (handled != 0 && has_fired(entry, handled))
      fail(step.name, "fires twice at " + std::to_string(handled));
    if (handled != 0 && handled <= entry.decided && clock_steps_ == 0)
      fail(step.name, "fires what was decided on, " + std::to_string(handled));
    judge_skips(entry, step, handled, utc_ms(first));
  }
  if (handled != 0) entry.fired[handled] = step.append;
  entry.decided = after.decided;
  entry.record = after;
}

void ScheduleModel::expect_same_but_times(const Entry& entry, const Step& step) const {
  const ScheduleRecord& before = entry.record;
  const ScheduleRecord& after = *step.after;
  if (after.schedule != before.schedule || after.paused != before.paused ||
      after.created != before.created)
    fail(step.name, "is another one");
}

void ScheduleModel::judge_firing(const Entry& entry, const Step& step, UtcMs at, UtcMs now) const {
  const ScheduleRecord& before = entry.record;
  const ScheduleRecord& after = *step.after;
  const Schedule& asked = before.schedule;
  const std::string when = std::to_string(at);
  if (after.last_occurrence != at || after.last_job != step.put || after.fired != before.fired + 1)
    fail(step.name, "does not say that it has fired at " + when);
  // What waits may have to wait for its own time, if the wall clock was set back; and it may be of
  // the times before those that were set meanwhile.
  const bool has_waited = before.waiting == at;
  if (!has_waited && at > now) fail(step.name, "fires early, at " + when);
  if (!has_waited && entry.timetable(at - 1)->at != at)
    fail(step.name, "does not occur at " + when);
  if (!has_waited && is_in_gap(entry, *entry.timetable(at - 1)))
    fail(step.name, "fires at a time that the clocks skip, " + when);
  if (asked.overlap != Overlap::kAllow && step.had_last_job)
    fail(step.name, "fires, and its last job is there");
  const UtcMs due = step.job.due;
  if (due < at || due > at + (asked.spread == 0 ? 0 : asked.spread - 1))
    fail(step.name, "puts a job that is due at " + std::to_string(due) + " for " + when);
}

// Each occurrence up to the new `decided` has fired, or has a reason for not firing.
void ScheduleModel::judge_skips(const Entry& entry, const Step& step, UtcMs handled,
                                UtcMs now) const {
  constexpr int kMany = 1'500;
  const ScheduleRecord& before = entry.record;
  const ScheduleRecord& after = *step.after;
  const Schedule& asked = before.schedule;
  const UtcMs window = asked.catch_up == CatchUp::kAll ? asked.catch_up_window : 0;
  const UtcMs reach = std::max(window, queue::kOnTime);
  const UtcMs on_time_from = now > reach ? now - reach : 0;
  const auto last = asked.catch_up == CatchUp::kLast ? last_by(entry, now) : std::nullopt;
  const bool overlaps =
      asked.overlap == Overlap::kSkip || (asked.overlap == Overlap::kQueue && before.waiting != 0);
  const bool joined = after.spans.size() == ScheduleRecord::kMostSpans;
  const auto may_be_skipped = [&](const Occurrence& occurrence) {
    const bool is_missed = occurrence.at < on_time_from && occurrence.at != last;
    const bool is_overlap = occurrence.at == after.decided && overlaps && step.had_last_job;
    return is_missed || is_overlap || is_in_gap(entry, occurrence) ||
           (joined && covers(after.spans.front(), occurrence.at));
  };
  std::uint64_t skipped = 0;
  const auto look = [&](UtcMs from) {
    auto found = next(entry, from);
    for (int n = 0; n < kMany && found && found->at <= after.decided; ++n) {
      if (found->at != handled && !may_be_skipped(*found))
        fail(step.name, "loses its occurrence at " + std::to_string(found->at));
      skipped += found->at != handled ? 1U : 0U;
      found = next(entry, found->at);
    }
    return found && found->at <= after.decided;
  };
  const UtcMs from = std::min(entry.decided, after.decided);
  if (look(from)) {
    look(std::max(on_time_from, from + 1) - 1);  // there are many; the late ones are missed
    return;
  }
  if (clock_steps_ == 0 && after.skipped != before.skipped + skipped &&
      skipped < queue::ScheduleEvent::kMostCounted)
    fail(step.name, "has skipped " + std::to_string(skipped) + " and counts " +
                        std::to_string(after.skipped - before.skipped));
}

// --- What clients ask for.

void ScheduleModel::judge_set(const Step& step, const Schedule& asked, bool pauses, Now first,
                              Now last) {
  if (!step.after || step.put != 0) fail(step.name, "is set, and that is not stored");
  const ScheduleRecord& after = *step.after;
  const auto is_now = [&](UtcMs at) { return utc_ms(first) <= at && at <= utc_ms(last); };
  const auto known = entries_.find(step.name);
  const bool is_new = known == entries_.end();
  const ScheduleRecord before = is_new ? ScheduleRecord() : known->second.record;
  Schedule wanted = asked;
  wanted.ttr = std::clamp(wanted.ttr, queue::kMinTtr, queue::kMaxTtr);
  if (wanted.every != 0 && !wanted.start) {
    const bool stays = !is_new && before.schedule.every == wanted.every;
    wanted.start = stays ? before.schedule.start : after.schedule.start;
    if (!stays && !is_now(*wanted.start)) fail(step.name, "starts at another time");
  }
  if (after.schedule != wanted) fail(step.name, "is set to something else");
  const bool goes_on = !is_new && before.schedule.occurs_as(wanted);
  if (!goes_on && (!is_now(after.decided) || !after.spans.empty()))
    fail(step.name, "does not count from now");
  if (goes_on &&
      (after.spans != before.spans || (clock_steps_ == 0 && after.decided != before.decided)))
    fail(step.name, "does not go on");
  if (after.paused != (before.paused || pauses) || after.fired != before.fired ||
      after.skipped != before.skipped || after.waiting != before.waiting ||
      after.last_job != before.last_job)
    fail(step.name, "forgets what it has done");
  Entry& entry = entries_[step.name];
  entry.record = after;
  if (!goes_on) entry.fired.clear();
  if (!goes_on) entry.set_at = last.mono_ns;
  entry.decided = after.decided;
  read_times(entry);
}

void ScheduleModel::judge_delete(const Step& step) {
  entry_of(step);
  if (step.after || step.put != 0) fail(step.name, "is deleted, and there");
  entries_.erase(step.name);
}

void ScheduleModel::judge_pause(const Step& step) {
  Entry& entry = entry_of(step);
  if (!step.after || step.put != 0) fail(step.name, "is paused, and that is not stored");
  ScheduleRecord wanted = entry.record;
  wanted.paused = true;
  wanted.decided = step.after->decided;
  if (*step.after != wanted) fail(step.name, "is paused, and something else has changed");
  entry.record = wanted;
}

void ScheduleModel::judge_resume(const Step& step, Now first, Now last) {
  Entry& entry = entry_of(step);
  if (!step.after || step.put != 0) fail(step.name, "is resumed, and that is not stored");
  ScheduleRecord wanted = entry.record;
  wanted.paused = false;
  wanted.decided = step.after->decided;
  wanted.skipped = step.after->skipped;
  wanted.since = step.after->since;
  if (*step.after != wanted) fail(step.name, "is resumed, and something else has changed");
  if (wanted.decided < utc_ms(first) || wanted.decided > utc_ms(last))
    fail(step.name, "is resumed from another time on");
  entry.record = wanted;
  entry.decided = wanted.decided;
  entry.set_at = last.mono_ns;
}

void ScheduleModel::judge_trigger(const Step& step) {
  Entry& entry = entry_of(step);
  if (!step.after || step.put == 0) fail(step.name, "is triggered, and puts no job");
  ScheduleRecord wanted = entry.record;
  wanted.last_job = step.put;
  wanted.last_occurrence = 0;
  wanted.last_tube = step.after->last_tube;
  wanted.decided = step.after->decided;
  if (*step.after != wanted) fail(step.name, "is triggered, and something else has changed");
  entry.record = wanted;
}

}  // namespace carillon::simulator
