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
      move(change);
    }
  }
  for (const KeyChange& change : changes.keys) apply(change);
  for (const StoryChange& change : changes.stories) {
    if (change.story.empty()) {
      stories_.erase(change.id);
    } else {
      stories_[change.id] = change.story;
    }
  }
  for (const LeaseChange& change : changes.leases) {
    if (change.after) {
      leases_.insert_or_assign(change.job, *change.after);
    } else {
      leases_.erase(change.job);
    }
  }
  for (const ScheduleChange& change : changes.schedules) {
    if (change.after) {
      schedules_[change.name] = *change.after;
    } else {
      schedules_.erase(change.name);
    }
  }
  for (const EndpointChange& change : changes.endpoints) {
    if (change.after) {
      endpoints_.insert_or_assign(change.name, *change.after);
    } else {
      endpoints_.erase(change.name);
    }
  }
  for (const TubeRecord& tube : changes.tubes) {
    if (tube.empty()) {
      tube_records_.erase(tube.number);
    } else {
      tube_records_.try_emplace(tube.number) = tube;
    }
  }
  if (changes.watermarks) watermarks_ = *changes.watermarks;
  return appended_.fetch_add(1, std::memory_order_release) + 1;
}

void MemoryStore::put(const JobChange& change) {
  if (!change.after) return;  // without a record before and after: no change
  const JobId id = change.after->id;
  Job& job = jobs_.try_emplace(id);
  try {
    job.record = *change.after;
    enter(job);
  } catch (...) {
    jobs_.erase(id);
    throw;
  }
  set_body(job, change.body);
}

// The body may have come in pieces.
void MemoryStore::set_body(Job& job, std::string_view body) {
  const JobId id = job.record.body_id();
  if (unfinished_.erase(id) == 0) job.body.assign(body);
  body_bytes_ += job.body.size();
  if (id != job.record.id) other_bodies_[id] = job.record.id;
}

void MemoryStore::erase_body(Job& job) {
  body_bytes_ -= job.body.size();
  job.body.clear();
  const JobId id = job.record.body_id();
  if (job.record.body_bytes > kBodyPiece) erase_large_body(id);
  if (id != job.record.id) other_bodies_.erase(id);
}

const MemoryStore::Job* MemoryStore::job_with_body(JobId id) const {
  const auto other = other_bodies_.find(id);
  const Job* const job = jobs_.find(other == other_bodies_.end() ? id : other->second);
  return job != nullptr && job->record.body_id() == id ? job : nullptr;
}

void MemoryStore::erase(JobId id) {
  Job& job = *jobs_.find(id);
  leave(job);
  erase_body(job);
  jobs_.erase(id);
}

void MemoryStore::erase_large_body(JobId id) {
  const auto body = large_bodies_.find(id);
  if (body == large_bodies_.end()) return;
  for (const std::string& piece : body->second) body_bytes_ -= piece.size();
  large_bodies_.erase(body);
}

void MemoryStore::move(const JobChange& change) {
  Job& job = *jobs_.find(change.after->id);
  leave(job);
  if (change.has_new_body()) erase_body(job);
  job.record = *change.after;
  if (change.has_new_body()) set_body(job, change.body);
  enter(job);
}

void MemoryStore::apply(const KeyChange& change) {
  if (change.before && change.before->until != 0)
    ended_keys_.erase({change.before->until, change.before->tube, change.before->key});
  const KeyRecord& key = change.after ? *change.after : *change.before;
  if (!change.after) {
    keys_.erase({key.tube, key.key});
    return;
  }
  keys_[{key.tube, key.key}] = key;
  if (key.until != 0) ended_keys_.insert({key.until, key.tube, key.key});
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
  for (const auto& [name, record] : schedules_) recovered.schedules.push_back(record);
  recovered.endpoints = endpoints_;
  for (const auto& [id, lease] : leases_) recovered.leases.push_back(lease);
  for (const auto& [id, bytes] : unfinished_) recovered.unfinished.push_back({id, bytes});
  return recovered;
}

std::optional<JobRecord> MemoryStore::find(JobId id) const {
  const Job* job = jobs_.find(id);
  if (job == nullptr) return std::nullopt;
  return job->record;
}

std::string MemoryStore::body(JobId id, std::uint32_t piece) const {
  const Job* job = job_with_body(id);
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

std::optional<KeyRecord> MemoryStore::find_key(std::uint32_t tube, std::string_view key) const {
  const auto found = keys_.find(std::pair(tube, std::string(key)));
  if (found == keys_.end()) return std::nullopt;
  return found->second;
}

std::vector<KeyRecord> MemoryStore::scan_ended_keys(UtcMs from, std::size_t limit) const {
  std::vector<KeyRecord> found;
  for (auto at = ended_keys_.lower_bound({from, 0, ""});
       at != ended_keys_.end() && found.size() < limit; ++at) {
    found.push_back(*find_key(std::get<1>(*at), std::get<2>(*at)));
  }
  return found;
}

std::vector<Attempt> MemoryStore::story(JobId id) const {
  const auto found = stories_.find(id);
  return found == stories_.end() ? std::vector<Attempt>() : found->second;
}

}  // namespace carillon::queue
