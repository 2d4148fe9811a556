// A store written as simply as possible: the reference that the real stores are compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
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

  // A body of which pieces are put: how many bytes it is to have, and those that it has.
  struct Unfinished {
    std::uint32_t bytes = 0;
    std::string body;
  };

  std::map<JobId, Job> jobs;
  std::map<JobId, Unfinished> unfinished;
  std::map<std::uint32_t, TubeRecord> tubes;
  Watermarks watermarks;

  void apply(const Changes& changes) {
    if (changes.begun) unfinished[changes.begun->id] = {changes.begun->bytes, {}};
    if (changes.piece) unfinished.at(changes.piece->id).body += changes.piece->bytes;
    if (changes.given_up) unfinished.erase(changes.given_up->id);
    for (const JobChange& change : changes.jobs) {
      if (!change.after) {
        jobs.erase(change.before->id);
        continue;
      }
      Job& job = jobs[change.after->id];
      job.record = *change.after;
      if (!change.before) job.body = body_of(change);
    }
    for (const TubeRecord& tube : changes.tubes) {
      tubes[tube.number] = tube;
      if (tube.scheduled == 0 && tube.buried == 0) tubes.erase(tube.number);
    }
    if (changes.watermarks) watermarks = *changes.watermarks;
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

  // Returns the tube's record, counted from its jobs.
  TubeRecord count(std::uint32_t tube) const {
    TubeRecord record{.number = tube, .name = "tube-" + std::to_string(tube)};
    for (const auto& [id, job] : jobs) {
      if (job.record.tube != tube) continue;
      ++(job.record.buried() ? record.buried : record.scheduled);
    }
    return record;
  }

 private:
  std::string body_of(const JobChange& put) {
    const auto pieces = unfinished.extract(put.after->id);
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
