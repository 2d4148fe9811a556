// What the store must hold, from append to append and from start to start (history.h). What is read
// is compared in history_reads.cpp.

#include "simulator/history.h"

#include <algorithm>

#include "simulator/clock.h"
#include "simulator/state_hash.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;
using queue::StoreModel;
using queue::TubeRecord;

namespace {

std::optional<std::string> piece_if_there(const queue::Store& store, JobId id, std::uint32_t n) {
  try {
    return store.body(id, n);
  } catch (const queue::StoreDamage&) {
    return std::nullopt;
  }
}

std::string pieces_that_are_there(const queue::Store& store, const queue::UnfinishedBody& body) {
  std::string bytes;
  for (std::uint32_t n = 0; n < queue::pieces_of(body.bytes); ++n)
    bytes += piece_if_there(store, body.id, n).value_or("");
  return bytes;
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
      found.jobs[record.id] = {record, whole_body(store, record.body_id(), record.body_bytes)};
    for (const JobRecord& record : store.scan_buried(tube.number, 0, SIZE_MAX))
      found.jobs[record.id] = {record, whole_body(store, record.body_id(), record.body_bytes)};
  }
  for (const auto& [id, job] : found.jobs) {
    if (job.record.body_id() != id) found.other_bodies[job.record.body_id()] = id;
    if (job.record.extras->has_story) found.stories[id] = store.story(id);
    const std::string& key = job.record.extras->key;
    const TubeRecord& tube = found.tubes.at(job.record.tube);
    const std::uint32_t head = tube.head == 0 ? tube.number : tube.head;
    const auto record = key.empty() ? std::nullopt : store.find_key(head, key);
    if (record) found.keys[{record->tube, key}] = *record;
  }
  for (const queue::KeyRecord& key : store.scan_ended_keys(0, SIZE_MAX))
    found.keys[{key.tube, key.key}] = key;
  for (const queue::ScheduleRecord& schedule : recovered.schedules)
    found.schedules[schedule.name] = schedule;
  for (const queue::UnfinishedBody& body : recovered.unfinished) {
    found.unfinished[body.id] = {body.bytes, pieces_that_are_there(store, body)};
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
  check_nothing_is_left(found, store);
  check_no_key_is_left(found, store);
  check_no_story_is_left(found, store);
  lost_.clear();
  if (number < last_) {
    ++starts_after_loss_;
    std::erase_if(changed_at_, [&](const auto& change) {
      if (change.second > number) lost_.insert(change.first);
      return change.second > number;
    });
  }
  store_ = &store;
  state_ = std::move(found);
  hash_ = hash;
  last_ = floor_ = opened_at_ = told_ = written_ = durable_ = number;
  hashes_ = {hash};
  forget_changed();
  key_changed_at_.clear();
  schedule_changed_at_.clear();
  count_all();
}

void HistoryStore::expect_state_since(std::uint64_t from, const queue::Store& store) const {
  const auto begin = hashes_.begin() + static_cast<std::ptrdiff_t>(from - floor_);
  const StoreModel found = read_all(store);
  if (std::find(begin, hashes_.end(), hash_of(found)) != hashes_.end()) return;
  throw Violation("a checkpoint has " + std::to_string(found.jobs.size()) +
                  " jobs, and a state that the store did not have since append " +
                  std::to_string(from) + ", when it was asked for");
}

// What was deleted, replaced or given up, or was never durable, has left no piece of a body.
void HistoryStore::check_nothing_is_left(const StoreModel& found, const queue::Store& store) {
  for (const auto& [id, bytes] : bodies_) {
    if (found.job_with_body(id) != nullptr || found.unfinished.contains(id)) continue;
    for (std::uint32_t n = 0; n < queue::pieces_of(bytes); ++n) {
      if (piece_if_there(store, id, n)) {
        throw Violation("piece " + std::to_string(n) + " of the body " + std::to_string(id) +
                        " is left, and no job has it");
      }
    }
  }
  std::erase_if(bodies_, [&found](const auto& body) {
    return found.job_with_body(body.first) == nullptr && !found.unfinished.contains(body.first);
  });
}

// Checks the keys that were changed in the last life of the server, and those that it left.
void HistoryStore::check_no_key_is_left(const StoreModel& found, const queue::Store& store) const {
  const auto check = [&](std::uint32_t tube, const std::string& key) {
    if (store.find_key(tube, key) == found.find_key(tube, key)) return;
    throw Violation("the key '" + key + "' of tube " + std::to_string(tube) +
                    " is left, and neither its job nor its end");
  };
  for (const auto& [name, known] : state_.keys) check(known.tube, known.key);
  for (const auto& [name, changed] : key_changed_at_) check(changed.tube, name.second);
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
  for (const auto& [id, body] : found.unfinished) {
    text += " has " + std::to_string(body.body.size()) + " bytes of the large body of job " +
            std::to_string(id) + ";";
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
  work(1 + changes.jobs.size() + changes.keys.size() + changes.schedules.size());
  if (changes.piece) work_on_bytes(changes.piece->bytes.size());
  ++last_;
  if (sequence != last_ - opened_at_)
    throw Violation("append " + std::to_string(last_ - opened_at_) + " was given the number " +
                    std::to_string(sequence));
  note(changes);
  check_counts(changes);
  return sequence;
}

void HistoryStore::note(const queue::Changes& changes) {
  note_pieces(changes);
  note_jobs(changes);
  note_keys(changes);
  note_schedules(changes);
  hash_ -= hash_of_records(changes);
  state_.apply(changes);
  hash_ += hash_of_records(changes);
  hashes_.push_back(hash_);
  check_keys(changes);
  check_stories(changes);
  forget_old_changes();
}

void HistoryStore::forget_old_changes() {
  constexpr std::size_t kMany = 4'096;
  if (changed_at_.size() < many_changes_ + kMany) return;
  std::erase_if(changed_at_, [this](const auto& change) { return change.second <= durable_; });
  many_changes_ = changed_at_.size();
}

// The hash of the records that an append changes, as they are now. Bodies are counted apart.
std::uint64_t HistoryStore::hash_of_records(const queue::Changes& changes) const {
  std::uint64_t hash = hash_of(state_.watermarks);
  for (const queue::JobChange& change : changes.jobs) {
    const auto job = state_.jobs.find(change.after ? change.after->id : change.before->id);
    if (job != state_.jobs.end()) hash += hash_of(job->second.record);
  }
  for (const queue::KeyChange& change : changes.keys) {
    const queue::KeyRecord& changed = change.after ? *change.after : *change.before;
    if (const auto key = state_.find_key(changed.tube, changed.key)) hash += hash_of(*key);
  }
  for (const queue::ScheduleChange& changed : changes.schedules) {
    const auto schedule = state_.schedules.find(changed.name);
    if (schedule != state_.schedules.end()) hash += hash_of(schedule->second);
  }
  for (const queue::StoryChange& changed : changes.stories) {
    const auto story = state_.stories.find(changed.id);
    if (story != state_.stories.end()) hash += hash_of_story(changed.id, story->second);
  }
  for (const TubeRecord& changed : changes.tubes) {
    const auto tube = state_.tubes.find(changed.number);
    if (tube != state_.tubes.end()) hash += hash_of(tube->second);
  }
  return hash;
}

void HistoryStore::note_jobs(const queue::Changes& changes) {
  for (const queue::JobChange& change : changes.jobs) {
    const JobId id = change.after ? change.after->id : change.before->id;
    const auto known = state_.jobs.find(id);
    if (change.before ? known == state_.jobs.end() || known->second.record != *change.before
                      : known != state_.jobs.end())
      throw Violation("an append changes job " + std::to_string(id) + " from what it was not");
    const bool is_kept = change.before && change.after;
    const bool is_due_alone = is_kept && same_but_due_time(*change.before, *change.after);
    (is_due_alone ? due_changed_ : changed_).insert(id);
    changed_at_[id] = last_;
    if (change.before) before_[id] = *change.before;
    if (change.before && (!change.after || change.has_new_body())) {
      hash_ -= hash_of_body(change.before->body_id(), known->second.body);
      if (change.before->extras || change.after)
        bodies_[change.before->body_id()] = change.before->body_bytes;
    }
    if (change.has_new_body()) note_body(*change.after, change.body);
  }
}

// A job has its whole body, never a part of it.
void HistoryStore::note_body(const JobRecord& put, std::string_view body) {
  const JobId id = put.body_id();
  const auto pieces = state_.unfinished.find(id);
  const bool in_pieces = pieces != state_.unfinished.end();
  if (!in_pieces) hash_ += hash_of_body(id, body);
  if (in_pieces) hash_ -= hash_of(queue::UnfinishedBody{id, pieces->second.bytes});
  const std::size_t size = in_pieces ? pieces->second.body.size() : body.size();
  if (size != put.body_bytes || in_pieces != (size > queue::kBodyPiece)) {
    throw Violation(text_of(put) + " is put with " + std::to_string(size) + " of " +
                    std::to_string(put.body_bytes) + " bytes of its body");
  }
}

void HistoryStore::note_pieces(const queue::Changes& changes) {
  const auto refuse = [](JobId id, const std::string& what) {
    throw Violation("the large body of job " + std::to_string(id) + " " + what);
  };
  if (changes.begun) {
    const JobId id = changes.begun->id;
    if (bodies_.contains(id) || state_.job_with_body(id) != nullptr)
      refuse(id, "is begun, and has been");
    begun_ = id;
    bodies_[id] = changes.begun->bytes;
    hash_ += hash_of(*changes.begun);
  }
  if (const auto& piece = changes.piece) {
    const auto body = state_.unfinished.find(piece->id);
    if (body == state_.unfinished.end()) refuse(piece->id, "gets a piece, and was not begun");
    if (body->second.body.size() != piece->number * queue::kBodyPiece)
      refuse(piece->id, "gets another piece than the next one");
    hash_ += hash_of(*piece);
  }
  if (changes.given_up) {
    const auto body = state_.unfinished.find(changes.given_up->id);
    if (body == state_.unfinished.end()) refuse(changes.given_up->id, "is given up twice");
    hash_ -= hash_of(*changes.given_up);
    if (!body->second.body.empty()) hash_ -= hash_of_body(body->first, body->second.body);
  }
}

bool HistoryStore::has_room() {
  const bool has_room = store_->has_room();
  if (!has_room) full_at_ = virtual_time().mono_ns;
  return has_room;
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

}  // namespace carillon::simulator
