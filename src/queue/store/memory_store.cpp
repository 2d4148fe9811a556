// The Store in memory: a table of jobs, and per tube their orders by due time and by burial.

#include "carillon/queue/memory_store.h"

namespace carillon::queue {

namespace {

// Returns the records from `from` (inclusive) on, in the order of `order`.
template <class Order>
std::vector<JobRecord> scan(const Order& order, const typename Order::key_type& from,
                            std::size_t limit) {
  std::vector<JobRecord> found;
  for (auto at = order.lower_bound(from); at != order.end() && found.size() < limit; ++at) {
    found.push_back(at->second->record);
  }
  return found;
}

}  // namespace

Sequence MemoryStore::append(const Changes& changes) {
  if (changes.begun) unfinished_[changes.begun->id] = changes.begun->bytes;
  if (changes.piece) {
    large_bodies_[changes.piece->id].emplace_back(changes.piece->bytes);
    body_bytes_ += changes.piece->bytes.size();
  }
  if (changes.given_up && unfinished_.erase(changes.given_up->id) > 0)
    erase_large_body(changes.given_up->id);
  for (const JobChange& change : changes.jobs) {
    if (!change.before) {
      put(change);
    } else if (!change.after) {
      erase(change.before->id);
    } else {
      move(*change.after);
    }
  }
  for (const TubeRecord& tube : changes.tubes) {
    if (tube.scheduled == 0 && tube.buried == 0) {
      tube_records_.erase(tube.number);
    } else {
      tube_records_.try_emplace(tube.number) = tube;
    }
  }
  if (changes.watermarks) watermarks_ = *changes.watermarks;
  return appended_.fetch_add(1, std::memory_order_release) + 1;
}

void MemoryStore::put(const JobChange& change) {
  if (!change.after) return;  // neither a record before nor one after: no change
  const JobId id = change.after->id;
  const bool in_pieces = unfinished_.contains(id);
  Job& job = jobs_.try_emplace(id);
  try {
    job.record = *change.after;
    if (!in_pieces) job.body.assign(change.body);
    enter(job);
  } catch (...) {
    jobs_.erase(id);
    throw;
  }
  if (in_pieces) {
    unfinished_.erase(id);
  } else {
    body_bytes_ += change.body.size();
  }
}

void MemoryStore::erase(JobId id) {
  const Job& job = *jobs_.find(id);
  leave(job);
  body_bytes_ -= job.body.size();
  if (job.record.body_bytes > kBodyPiece) erase_large_body(id);
  jobs_.erase(id);
}

void MemoryStore::erase_large_body(JobId id) {
  const auto body = large_bodies_.find(id);
  if (body == large_bodies_.end()) return;
  for (const std::string& piece : body->second) body_bytes_ -= piece.size();
  large_bodies_.erase(body);
}

void MemoryStore::move(const JobRecord& after) {
  Job& job = *jobs_.find(after.id);
  leave(job);
  job.record = after;
  enter(job);
}

// The hints make the usual case cheap: a new entry mostly comes after all others of its tube.
void MemoryStore::enter(Job& job) {
  Tube& tube = tubes_.try_emplace(job.record.tube);
  if (job.record.buried()) {
    job.burial = tube.buried.emplace_hint(tube.buried.end(), job.record.burial, &job);
  } else {
    job.due = tube.due.emplace_hint(tube.due.end(), DueKey{job.record.due, job.record.id}, &job);
  }
}

void MemoryStore::leave(const Job& job) {
  Tube& tube = *tubes_.find(job.record.tube);
  if (job.record.buried()) {
    tube.buried.erase(job.burial);
  } else {
    tube.due.erase(job.due);
  }
  if (tube.due.empty() && tube.buried.empty()) tubes_.erase(job.record.tube);
}

Recovered MemoryStore::recover() const {
  Recovered recovered;
  recovered.watermarks = watermarks_;
  recovered.tubes.reserve(tube_records_.size());
  tube_records_.for_each(
      [&recovered](std::uint32_t, const TubeRecord& record) { recovered.tubes.push_back(record); });
  for (const auto& [id, bytes] : unfinished_) recovered.unfinished.push_back({id, bytes});
  return recovered;
}

std::optional<JobRecord> MemoryStore::find(JobId id) const {
  const Job* job = jobs_.find(id);
  if (job == nullptr) return std::nullopt;
  return job->record;
}

std::string MemoryStore::body(JobId id, std::uint32_t piece) const {
  const Job* job = jobs_.find(id);
  const auto large = large_bodies_.find(id);
  if (job != nullptr && large != large_bodies_.end() && piece < large->second.size())
    return large->second[piece];
  const std::size_t at = piece * kBodyPiece;
  if (job == nullptr || at > job->body.size())
    throw StoreDamage("job " + std::to_string(id) + " has no body: there is no such job");
  return job->body.substr(at, kBodyPiece);
}

std::vector<JobRecord> MemoryStore::scan_due(std::uint32_t tube, DueKey from,
                                             std::size_t limit) const {
  const Tube* found = tubes_.find(tube);
  if (found == nullptr) return {};
  return scan(found->due, from, limit);
}

std::vector<JobRecord> MemoryStore::scan_buried(std::uint32_t tube, std::uint64_t from,
                                                std::size_t limit) const {
  const Tube* found = tubes_.find(tube);
  if (found == nullptr) return {};
  return scan(found->buried, from, limit);
}

}  // namespace carillon::queue
