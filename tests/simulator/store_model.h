// A store written as simply as possible. HistoryStore (history.h) compares with it what the real
// store reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"

namespace carillon::queue {

class StoreModel {
 public:
  struct Job {
    JobRecord record;
    std::string body;
  };

  // A body that is put in pieces: how many bytes it will have, and the bytes that it has.
  struct Unfinished {
    std::uint32_t bytes = 0;
    std::string body;
  };

  std::map<JobId, Job> jobs;
  std::map<JobId, Unfinished> unfinished;
  std::map<std::uint32_t, TubeRecord> tubes;
  std::map<std::pair<std::uint32_t, std::string>, KeyRecord> keys;
  std::map<JobId, std::vector<Attempt>> stories;
  std::map<std::string, ScheduleRecord> schedules;
  // Jobs by JobRecord::body_id(), where that is not their own id.
  std::map<JobId, JobId> other_bodies;
  Watermarks watermarks;

  void apply(const Changes& changes) {
    if (changes.begun) unfinished[changes.begun->id] = {changes.begun->bytes, {}};
    if (changes.piece) unfinished.at(changes.piece->id).body += changes.piece->bytes;
    if (changes.given_up) unfinished.erase(changes.given_up->id);
    for (const JobChange& change : changes.jobs) apply(change);
    for (const KeyChange& change : changes.keys) {
      const KeyRecord& key = change.after ? *change.after : *change.before;
      keys.erase({key.tube, key.key});
      if (change.after) keys[{key.tube, key.key}] = key;
    }
    for (const StoryChange& change : changes.stories) {
      stories[change.id] = change.story;
      if (change.story.empty()) stories.erase(change.id);
    }
    for (const ScheduleChange& change : changes.schedules) {
      schedules.erase(change.name);
      if (change.after) schedules[change.name] = *change.after;
    }
    for (const TubeRecord& tube : changes.tubes) {
      tubes[tube.number] = tube;
      if (tube.empty()) tubes.erase(tube.number);
    }
    if (changes.watermarks) watermarks = *changes.watermarks;
  }

  // Returns nullptr if no job has this body.
  const Job* job_with_body(JobId body) const {
    const auto other = other_bodies.find(body);
    const auto job = jobs.find(other == other_bodies.end() ? body : other->second);
    return job != jobs.end() && job->second.record.body_id() == body ? &job->second : nullptr;
  }

  std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view key) const {
    const auto found = keys.find({tube, std::string(key)});
    return found == keys.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<KeyRecord> scan_ended_keys(UtcMs from, std::size_t limit) const {
    std::vector<KeyRecord> found;
    for (const auto& [name, key] : keys) {
      if (key.until != 0 && key.until >= from) found.push_back(key);
    }
    std::sort(found.begin(), found.end(), [](const KeyRecord& a, const KeyRecord& b) {
      return std::tie(a.until, a.tube, a.key) < std::tie(b.until, b.tube, b.key);
    });
    if (found.size() > limit) found.resize(limit);
    return found;
  }

  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from, std::size_t limit) const {
    return first(
        limit,
        [&](const JobRecord& job) {
          return DueKey{job.due, job.id};
        },
        [&](const JobRecord& job) {
          return job.tube == tube && !job.buried() && DueKey{job.due, job.id} >= from;
        });
  }

  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const {
    return first(
        limit, [&](const JobRecord& job) { return job.burial; },
        [&](const JobRecord& job) {
          return job.tube == tube && job.buried() && job.burial >= from;
        });
  }

 private:
  void apply(const JobChange& change) {
    if (change.before && (!change.after || change.has_new_body()))
      other_bodies.erase(change.before->body_id());
    if (!change.after) {
      jobs.erase(change.before->id);
      return;
    }
    Job& job = jobs[change.after->id];
    job.record = *change.after;
    if (!change.has_new_body()) return;
    job.body = body_of(change);
    const JobId body = job.record.body_id();
    if (body != job.record.id) other_bodies[body] = job.record.id;
  }

  std::string body_of(const JobChange& put) {
    const auto pieces = unfinished.extract(put.after->body_id());
    return pieces.empty() ? std::string(put.body) : std::move(pieces.mapped().body);
  }

  template <class Order, class Belongs>
  std::vector<JobRecord> first(std::size_t limit, const Order& order,
                               const Belongs& belongs) const {
    std::vector<JobRecord> found;
    for (const auto& [id, job] : jobs) {
      if (belongs(job.record)) found.push_back(job.record);
    }
    std::sort(found.begin(), found.end(), [&](const JobRecord& left, const JobRecord& right) {
      return order(left) < order(right);
    });
    if (found.size() > limit) found.resize(limit);
    return found;
  }
};

}  // namespace carillon::queue
