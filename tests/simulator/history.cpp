// Hashes tell one state from another (history.h). The hash of a state is the sum of those of its
// records, so an append changes it by what it changes.

#include "simulator/history.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "simulator/clock.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;
using queue::StoreModel;
using queue::TubeRecord;
using queue::Watermarks;

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t with) {
  hash = (hash ^ with) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 29);
}

std::uint64_t mix(std::uint64_t hash, std::string_view with) {
  return mix(hash, std::hash<std::string_view>()(with));
}

std::uint64_t hash_of(const StoreModel::Job& job) {
  const JobRecord& record = job.record;
  std::uint64_t hash = mix(1, record.id);
  for (const std::uint64_t field :
       {std::uint64_t{record.tube}, std::uint64_t{record.priority}, record.due, record.burial,
        record.ttr, record.delay, record.created, std::uint64_t{record.body_bytes},
        std::uint64_t{record.history.reserves}, std::uint64_t{record.history.timeouts},
        std::uint64_t{record.history.releases}, std::uint64_t{record.history.buries},
        std::uint64_t{record.history.kicks}, static_cast<std::uint64_t>(record.lead),
        std::uint64_t{record.era}})
    hash = mix(hash, field);
  return mix(hash, job.body);
}

std::uint64_t hash_of(const TubeRecord& tube) {
  return mix(mix(mix(mix(2, tube.number), tube.scheduled), tube.buried), tube.name);
}

std::uint64_t hash_of(const Watermarks& marks) {
  std::uint64_t hash = mix(3, marks.boot);
  for (const std::uint64_t field :
       {marks.next_id, marks.next_burial, marks.time, static_cast<std::uint64_t>(marks.wall_ns),
        static_cast<std::uint64_t>(marks.steady_ns), static_cast<std::uint64_t>(marks.boot_lead),
        static_cast<std::uint64_t>(marks.job_lead), static_cast<std::uint64_t>(marks.gained_ns),
        std::uint64_t{marks.era}, std::uint64_t{marks.boot_era}})
    hash = mix(hash, field);
  return hash;
}

std::uint64_t hash_of(const StoreModel& state) {
  std::uint64_t hash = hash_of(state.watermarks);
  for (const auto& [id, job] : state.jobs) hash += hash_of(job);
  for (const auto& [number, tube] : state.tubes) hash += hash_of(tube);
  return hash;
}

// A unit is a look-up, or a record that is written.
void work(std::uint64_t units) {
  constexpr std::uint64_t kUnitNs = 4'000;
  virtual_time().pass(units * kUnitNs);
}

std::string text_of(const JobRecord& record) {
  return "job " + std::to_string(record.id) + " (tube " + std::to_string(record.tube) + ", due " +
         std::to_string(record.due) + ", burial " + std::to_string(record.burial) + ")";
}

}  // namespace

bool same_but_due_time(const JobRecord& one, const JobRecord& other) {
  JobRecord same = other;
  same.due = one.due;
  same.lead = one.lead;
  same.era = one.era;
  return same == one;
}

HistoryStore::HistoryStore() : hash_(hash_of(state_)), hashes_{hash_} {}

// --- Opening.

StoreModel HistoryStore::read_all(const queue::Store& store) {
  StoreModel found;
  const queue::Recovered recovered = store.recover();
  found.watermarks = recovered.watermarks;
  for (const TubeRecord& tube : recovered.tubes) {
    found.tubes[tube.number] = tube;
    for (const JobRecord& record : store.scan_due(tube.number, {}, SIZE_MAX))
      found.jobs[record.id] = {record, whole_body(store, record.id, record.body_bytes)};
    for (const JobRecord& record : store.scan_buried(tube.number, 0, SIZE_MAX))
      found.jobs[record.id] = {record, whole_body(store, record.id, record.body_bytes)};
  }
  return found;
}

void HistoryStore::open(queue::Store& store) {
  StoreModel found = read_all(store);
  const std::uint64_t hash = hash_of(found);
  const std::uint64_t least = std::max(told_, durable_);
  std::uint64_t number = last_;
  while (number > least && hash != hashes_[number - floor_]) --number;
  if (hash != hashes_[number - floor_]) tell_difference(found);
  if (number < last_) {
    ++starts_after_loss_;
    std::erase_if(changed_at_, [number](const auto& change) { return change.second > number; });
  }
  store_ = &store;
  state_ = std::move(found);
  hash_ = hash;
  last_ = floor_ = opened_at_ = told_ = written_ = durable_ = number;
  hashes_ = {hash};
  changed_.clear();
  counts_.clear();
  for (const auto& [id, job] : state_.jobs) ++counts_[job.record.tube];
  for (const auto& [tube_number, tube] : state_.tubes) check_count(tube);
}

// Compares with what must be there at least: the state that was told last may be gone from memory,
// so this names what differs from the last state.
void HistoryStore::tell_difference(const StoreModel& found) const {
  std::string text = "the store was opened with a state that it never had since append " +
                     std::to_string(std::max(told_, durable_)) +
                     ", which was told or durable; the last append was " + std::to_string(last_) +
                     ". Against that:";
  for (const auto& [id, job] : state_.jobs) {
    const auto other = found.jobs.find(id);
    if (other == found.jobs.end()) {
      text += " lacks " + text_of(job.record);
    } else if (other->second.record != job.record) {
      text += " has " + text_of(other->second.record) + " for " + text_of(job.record);
    } else if (other->second.body != job.body) {
      text += " has another body of " + text_of(job.record);
    }
    const std::uint64_t changed = changed_at(id);
    if (text.ends_with(")")) text += " of append " + std::to_string(changed) + ";";
  }
  for (const auto& [id, job] : found.jobs) {
    if (!state_.jobs.contains(id)) text += " still has " + text_of(job.record) + ";";
  }
  for (const auto& [number, tube] : found.tubes) {
    const auto known = state_.tubes.find(number);
    if (known == state_.tubes.end() || known->second != tube) {
      text += " tube " + std::to_string(number) + " has " + std::to_string(tube.scheduled) + "+" +
              std::to_string(tube.buried) + " jobs;";
    }
  }
  constexpr std::size_t kEnough = 1'000;
  if (text.size() > kEnough) text = text.substr(0, kEnough) + "...";
  throw Violation(text);
}

// --- Writing.

std::uint64_t HistoryStore::changed_at(JobId id) const {
  const auto found = changed_at_.find(id);
  return found == changed_at_.end() ? 0 : found->second;
}

queue::Sequence HistoryStore::append(const queue::Changes& changes) {
  const queue::Sequence sequence = store_->append(changes);
  work(1 + changes.jobs.size());
  ++last_;
  if (sequence != last_ - opened_at_)
    throw Violation("append " + std::to_string(last_ - opened_at_) + " was given the number " +
                    std::to_string(sequence));
  note(changes);
  check_counts(changes);
  return sequence;
}

void HistoryStore::note(const queue::Changes& changes) {
  const auto add_jobs = [&](std::uint64_t sign) {
    for (const queue::JobChange& change : changes.jobs) {
      const auto job = state_.jobs.find(change.after ? change.after->id : change.before->id);
      if (job != state_.jobs.end()) hash_ += sign * hash_of(job->second);
    }
    for (const TubeRecord& changed : changes.tubes) {
      const auto tube = state_.tubes.find(changed.number);
      if (tube != state_.tubes.end()) hash_ += sign * hash_of(tube->second);
    }
  };
  constexpr std::uint64_t kMinus = UINT64_MAX;
  for (const queue::JobChange& change : changes.jobs) {
    const JobId id = change.after ? change.after->id : change.before->id;
    const auto known = state_.jobs.find(id);
    if (change.before ? known == state_.jobs.end() || known->second.record != *change.before
                      : known != state_.jobs.end())
      throw Violation("an append changes job " + std::to_string(id) + " from what it was not");
    const bool is_kept = change.before && change.after;
    if (!is_kept || !same_but_due_time(*change.before, *change.after)) changed_.insert(id);
    changed_at_[id] = last_;
  }
  hash_ -= hash_of(state_.watermarks);
  add_jobs(kMinus);
  state_.apply(changes);
  add_jobs(1);
  hash_ += hash_of(state_.watermarks);
  hashes_.push_back(hash_);
  constexpr std::size_t kKept = 4'096;  // changes that are long ago are durable
  while (changed_at_.size() > kKept) changed_at_.erase(changed_at_.begin());
}

void HistoryStore::check_counts(const queue::Changes& changes) {
  for (const queue::JobChange& change : changes.jobs) {
    if (change.after && !change.before) ++counts_[change.after->tube];
    if (change.before && !change.after) --counts_[change.before->tube];
  }
  for (const TubeRecord& tube : changes.tubes) check_count(tube);
}

void HistoryStore::check_count(const TubeRecord& tube) const {
  const auto found = counts_.find(tube.number);
  const std::uint64_t count = found == counts_.end() ? 0 : found->second;
  if (tube.scheduled + tube.buried != count) {
    throw Violation("tube " + tube.name + " has " + std::to_string(count) +
                    " jobs, and its record says " + std::to_string(tube.scheduled) + " and " +
                    std::to_string(tube.buried));
  }
}

queue::Sequence HistoryStore::sync() {
  const queue::Sequence durable = store_->sync();
  durable_ = std::max(durable_, opened_at_ + durable);
  return durable;
}

void HistoryStore::write() {
  const std::uint64_t last = last_;
  store_->write();
  written_ = last;
}

void HistoryStore::told(std::uint64_t number, bool written_is_enough) {
  const std::uint64_t covered = written_is_enough ? std::max(written_, durable_) : durable_;
  if (number > covered) {
    throw Violation("a client is told of append " + std::to_string(number) +
                    ", and only those up to " + std::to_string(covered) + " are durable");
  }
  told_ = std::max(told_, number);
}

// --- Reading.

std::optional<JobRecord> HistoryStore::find(JobId id) const {
  work(1);
  const std::optional<JobRecord> found = store_->find(id);
  const auto known = state_.jobs.find(id);
  const bool same = known == state_.jobs.end() ? !found.has_value() : found == known->second.record;
  if (!same) throw Violation("job " + std::to_string(id) + " is read with another record");
  return found;
}

std::string HistoryStore::body(JobId id, std::uint32_t piece) const {
  std::string body = store_->body(id, piece);
  work(1 + body.size() / 4'096);
  const auto known = state_.jobs.find(id);
  if (known == state_.jobs.end() || known->second.body != body)
    throw Violation("job " + std::to_string(id) + " is read with another body");
  return body;
}

std::optional<std::string> HistoryStore::body_at_hand(JobId id, std::uint32_t piece) const {
  if (id % 8 == 7) return std::nullopt;
  std::optional<std::string> body = store_->body_at_hand(id, piece);
  work(1);
  if (!body) return body;
  const auto known = state_.jobs.find(id);
  if (known == state_.jobs.end() || known->second.body != *body)
    throw Violation("job " + std::to_string(id) + " is read with another body");
  return body;
}

std::vector<JobRecord> HistoryStore::scan_due(std::uint32_t tube, queue::DueKey from,
                                              std::size_t limit) const {
  std::vector<JobRecord> found = store_->scan_due(tube, from, limit);
  work(1 + found.size());
  if (found != state_.scan_due(tube, from, limit))
    throw Violation("a scan of tube " + std::to_string(tube) + " finds other jobs");
  return found;
}

std::vector<JobRecord> HistoryStore::scan_buried(std::uint32_t tube, std::uint64_t from,
                                                 std::size_t limit) const {
  std::vector<JobRecord> found = store_->scan_buried(tube, from, limit);
  work(1 + found.size());
  if (found != state_.scan_buried(tube, from, limit))
    throw Violation("a scan of the buried jobs of tube " + std::to_string(tube) +
                    " finds other jobs");
  return found;
}

}  // namespace carillon::simulator
