// What the store must hold of keys, stories and schedules, and the counts in the records of tubes
// (history.h).

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/clock.h"
#include "simulator/history.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;
using queue::KeyRecord;
using queue::TubeRecord;

namespace {

std::string text_of(const KeyRecord& key) {
  return "the key '" + key.key + "' of tube " + std::to_string(key.tube) + ", which job " +
         std::to_string(key.id) + (key.until == 0 ? " has, " : " had, ");
}

}  // namespace

// --- Keys.

std::uint64_t HistoryStore::key_changed_at(std::string_view tube, std::string_view key) const {
  const auto found = key_changed_at_.find(Name(tube, key));
  return found == key_changed_at_.end() ? 0 : found->second.append;
}

std::optional<JobRecord> HistoryStore::before(JobId id) const {
  const auto found = before_.find(id);
  return found == before_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<KeyRecord> HistoryStore::key_before(std::string_view tube,
                                                  std::string_view key) const {
  const auto changed = keys_before_.find(Name(tube, key));
  if (changed != keys_before_.end()) return changed->second;
  if (tube.empty()) return state_.find_key(queue::kTokens, key);
  const TubeRecord* const found = find_tube(tube);
  return found == nullptr ? std::nullopt : state_.find_key(found->number, key);
}

const TubeRecord* HistoryStore::find_tube(std::string_view tube, std::string_view group) const {
  const auto find = [this](std::uint32_t head, std::string_view name) -> const TubeRecord* {
    const auto found = std::find_if(
        state_.tubes.begin(), state_.tubes.end(),
        [&](const auto& each) { return each.second.head == head && each.second.name == name; });
    return found == state_.tubes.end() ? nullptr : &found->second;
  };
  const TubeRecord* const head = find(0, tube);
  return head == nullptr || group.empty() ? head : find(head->number, group);
}

std::uint32_t HistoryStore::tube_with_keys(std::uint32_t tube,
                                           const queue::Changes& changes) const {
  const auto known = state_.tubes.find(tube);
  const auto changed = std::find_if(changes.tubes.begin(), changes.tubes.end(),
                                    [tube](const TubeRecord& each) { return each.number == tube; });
  std::uint32_t head = known == state_.tubes.end() ? 0 : known->second.head;
  if (changed != changes.tubes.end()) head = changed->head;
  return head == 0 ? tube : head;
}

std::optional<queue::UtcMs> HistoryStore::first_end_of_keys() const {
  const auto ended = state_.scan_ended_keys(0, 1);
  return ended.empty() ? std::nullopt : std::optional(ended.front().until);
}

// The name of a tube of which a key changes: its record is in the same append.
const std::string& HistoryStore::name_of(std::uint32_t tube, const queue::Changes& changes) const {
  static const std::string kOfTokens;
  if (tube == queue::kTokens) return kOfTokens;
  for (const TubeRecord& changed : changes.tubes) {
    if (changed.number == tube) return changed.name;
  }
  throw Violation("an append changes a key of tube " + std::to_string(tube) +
                  " and not what is counted of it");
}

void HistoryStore::note_keys(const queue::Changes& changes) {
  for (const queue::KeyChange& change : changes.keys) {
    const KeyRecord& key = change.after ? *change.after : *change.before;
    if (change.before != state_.find_key(key.tube, key.key))
      throw Violation("an append changes " + text_of(key) + "from what it was not");
    const Name name(name_of(key.tube, changes), key.key);
    keys_before_[name] = change.before;
    key_changed_at_[name] = {key.tube, last_};
    const bool is_forgotten = change.before && change.before->until != 0 && !change.after;
    const queue::Now now{.utc_ns = virtual_time().utc_ns, .mono_ns = virtual_time().mono_ns};
    if (is_forgotten && steady_ns(now) < change.before->until * kNsPerMs)
      throw Violation(text_of(key) + "is forgotten before its window is over");
    if (change.before && change.before->until != 0) --counts_[key.tube].ended_keys;
    if (change.after && change.after->until != 0) ++counts_[key.tube].ended_keys;
  }
}

// Each key is that of the job which says so, and no other.
void HistoryStore::check_keys(const queue::Changes& changes) const {
  for (const queue::KeyChange& change : changes.keys) {
    if (change.after) expect_owner(*change.after);
  }
  for (const queue::JobChange& change : changes.jobs) {
    const JobRecord& job = change.after ? *change.after : *change.before;
    const std::string& key = job.extras->key;
    if (change.before && change.before->extras->key != key)
      throw Violation("job " + std::to_string(job.id) + " gets another key");
    if (key.empty()) continue;
    const auto record = state_.find_key(tube_with_keys(job.tube, changes), key);
    if (change.after && (!record || record->until != 0 || record->id != job.id))
      throw Violation("job " + std::to_string(job.id) + " does not have its key, '" + key + "'");
    if (!change.after && record && record->until == 0 && record->id == job.id)
      throw Violation(text_of(*record) + "is left, and the job is gone");
  }
}

void HistoryStore::expect_owner(const KeyRecord& key) const {
  const auto job = state_.jobs.find(key.id);
  const bool is_there = job != state_.jobs.end();
  if (key.until == 0 && (!is_there || tube_with_keys(job->second.record.tube, {}) != key.tube ||
                         job->second.record.extras->key != key.key))
    throw Violation(text_of(key) + "is not in the record of the job");
  if (key.until != 0 && is_there) throw Violation(text_of(key) + "has ended, and the job is there");
}

// --- Stories.

void HistoryStore::check_stories(const queue::Changes& changes) {
  for (const queue::StoryChange& change : changes.stories) stories_changed_.insert(change.id);
  for (const queue::JobChange& change : changes.jobs) {
    const JobId id = change.after ? change.after->id : change.before->id;
    const bool says_so = change.after && change.after->extras->has_story;
    if (says_so != state_.stories.contains(id))
      throw Violation("job " + std::to_string(id) + " has " + (says_so ? "no" : "a") + " story");
  }
}

// Checks the stories that were changed in the last life of the server.
void HistoryStore::check_no_story_is_left(const queue::StoreModel& found,
                                          const queue::Store& store) {
  for (const JobId id : std::exchange(stories_changed_, {})) {
    if (!found.stories.contains(id) && !store.story(id).empty())
      throw Violation("the story of job " + std::to_string(id) + " is left");
  }
}

// --- Schedules.

void HistoryStore::note_schedules(const queue::Changes& changes) {
  for (const queue::ScheduleChange& change : changes.schedules) {
    const bool puts = changes.jobs.size() == 1 && !changes.jobs.front().before;
    if (!puts && !changes.jobs.empty())
      throw Violation("an append of the schedule " + change.name + " changes other jobs");
    const auto before = state_.schedules.find(change.name);
    const auto job = before == state_.schedules.end() ? state_.jobs.end()
                                                      : state_.jobs.find(before->second.last_job);
    ScheduleStep step{.append = last_,
                      .name = change.name,
                      .after = change.after,
                      .had_last_job = job != state_.jobs.end() && !job->second.record.buried()};
    if (step.had_last_job && before->second.last_tube != 0) {
      const std::uint32_t in = job->second.record.tube;
      step.had_last_job = tube_with_keys(in, {}) == before->second.last_tube;
    }
    if (puts) {
      step.job = *changes.jobs.front().after;
      step.body = changes.jobs.front().body;
      step.put = step.job.id;
    }
    schedule_steps_.push_back(std::move(step));
    schedule_changed_at_[change.name] = last_;
  }
}

std::uint64_t HistoryStore::schedule_changed_at(const std::string& name) const {
  const auto found = schedule_changed_at_.find(name);
  return found == schedule_changed_at_.end() ? 0 : found->second;
}

// --- Counts.

void HistoryStore::count(const JobRecord& job, std::uint64_t by) {
  Counts& counts = counts_[job.tube];
  (job.buried() ? counts.buried : counts.scheduled) += by;
}

void HistoryStore::count_all() {
  counts_.clear();
  for (const auto& [id, job] : state_.jobs) count(job.record, 1);
  for (const auto& [name, key] : state_.keys) {
    expect_owner(key);
    if (key.until != 0) ++counts_[key.tube].ended_keys;
  }
  for (const auto& [number, tube] : state_.tubes) check_count(tube);
}

void HistoryStore::check_counts(const queue::Changes& changes) {
  for (const queue::JobChange& change : changes.jobs) {
    if (change.before) count(*change.before, UINT64_MAX);
    if (change.after) count(*change.after, 1);
  }
  for (const TubeRecord& tube : changes.tubes) check_count(tube);
}

void HistoryStore::check_count(const TubeRecord& tube) const {
  const auto found = counts_.find(tube.number);
  const Counts counts = found == counts_.end() ? Counts{} : found->second;
  const auto lanes = std::count_if(state_.tubes.begin(), state_.tubes.end(), [&](const auto& each) {
    return each.second.head == tube.number;
  });
  if (!tube.empty() && tube.lanes != static_cast<std::uint32_t>(lanes))
    throw Violation("tube " + tube.name + " has " + std::to_string(lanes) +
                    " groups, and its record says " + std::to_string(tube.lanes));
  if (tube.scheduled == counts.scheduled && tube.buried == counts.buried &&
      tube.ended_keys == counts.ended_keys)
    return;
  const auto text = [](std::uint64_t scheduled, std::uint64_t buried, std::uint64_t keys) {
    return std::to_string(scheduled) + ", " + std::to_string(buried) + " and " +
           std::to_string(keys);
  };
  throw Violation("tube " + tube.name + " has of jobs, buried ones and keys that ended " +
                  text(counts.scheduled, counts.buried, counts.ended_keys) +
                  ", and its record says " + text(tube.scheduled, tube.buried, tube.ended_keys));
}

}  // namespace carillon::simulator
