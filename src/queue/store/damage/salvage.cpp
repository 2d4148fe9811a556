// Copies entries, compares the families, and writes what follows from that. The records of tubes
// are counted anew, and made anew where they are lost.

#include "queue/store/damage/salvage.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "queue/store/log/change_codec.h"
#include "queue/store/log/local_log.h"
#include "queue/store/state/endpoint_values.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/schedule_values.h"

namespace carillon::queue {

namespace {

JobId id_of(std::string_view bytes) {
  JobId id = 0;
  for (std::size_t i = 0; i < sizeof id; ++i) id = (id << 8) | static_cast<std::uint8_t>(bytes[i]);
  return id;
}

// REQUIRES: the key of a key's record.
std::uint32_t tube_of(std::string_view key) {
  return static_cast<std::uint32_t>(
      id_of(std::string(3, '\0').append(key, 0, 1 + sizeof(std::uint32_t))));
}

// Other small records belong to the directory, not to the queue: its format, identity and number.
bool is_of_the_queue(std::string_view small) {
  return small == kWatermarksKey || small.starts_with(kTubeKeys) ||
         small.starts_with(kEndpointKeys) || small.starts_with(kUnfinishedKeys);
}

// Stands in a pointer, in place of its version, while nobody knows whether the job exists.
constexpr char kDoubtful = '\xff';

Pointer doubtful_pointer(const IndexKey& key) {
  Pointer pointer = encode_pointer(key);
  pointer[0] = kDoubtful;
  return pointer;
}

// What schedules and endpoints say about the names of tubes. A schedule may have got another tube
// since it put its last job, so a name is only a hint.
struct TubeHints {
  std::map<std::uint32_t, std::string> by_number;
  std::map<std::string, std::string> who;  // "the schedule 'nightly'", by the tube's name

  void add_schedule(std::string_view name, std::string_view value) {
    const ScheduleRecord record = read_schedule_value(name, value);
    const std::string its_name = "the schedule '" + std::string(name) + "'";
    who.emplace(record.schedule.tube, its_name);
    if (record.last_tube == 0) return;
    by_number[record.last_tube] += "; " + its_name + " put its last job there, and puts the next " +
                                   "one into '" + record.schedule.tube + "'";
  }
  void add_endpoint(std::string_view name, std::string_view value) {
    who.emplace(read_endpoint_value(name, value).tube, "the endpoint '" + std::string(name) + "'");
  }
};

constexpr const char* kSettings = "its settings (max-running, rates, retries, retention, groups)";

}  // namespace

Standing standing_of(const OfflineState& state, const IndexKey& key, const JobRecord& job) {
  if (!state.is_doubtful(kIndex, view(key))) return Standing::kThere;
  const OfflineState::Value pointer = state.get(kJobs, view(job_key(job.id)));
  if (!pointer.is_sure) return Standing::kUnknown;
  const bool is_named = pointer.bytes && *pointer.bytes == view(encode_pointer(key));
  return is_named ? Standing::kThere : Standing::kGone;
}

Salvage::Salvage(const OfflineState& from, const OfflineState* beneath, const std::string& to)
    : from_(from), beneath_(beneath), to_(to, {}) {
  begin_change(bytes_);
}

void Salvage::note(const Entry& entry) {
  constexpr std::size_t kAtOnce = 1 << 20;
  append_entry(bytes_, entry);
  if (bytes_.size() > kAtOnce) write();
}

void Salvage::put(Family family, std::string_view key, std::string_view value) {
  note({.family = family, .key = key, .value = value});
}

void Salvage::erase(Family family, std::string_view key) {
  note({.family = family, .key = key});
}

void Salvage::write() {
  to_.apply(bytes_, to_.number() + 1);
  begin_change(bytes_);
  if (to_.unflushed() > DiskStoreOptions().recent) to_.flush(mark_of(0));
}

// Pointers come before records, which are judged by them.
void Salvage::copy(const std::function<bool()>& go_on) {
  for (const Family family : {kMeta, kJobs, kIndex, kBodies, kKeys, kSchedules}) {
    copy(*from_.scan(family), family, go_on);
    if (beneath_ == nullptr) continue;
    for (const Damage& block : from_.blocks()) {
      if (block.family != family) continue;
      const rocksdb::Slice to(block.to);
      copy(*beneath_->scan(family, block.from, to), family, go_on);
    }
  }
  write();
}

void Salvage::copy(rocksdb::Iterator& at, Family family, const std::function<bool()>& go_on) {
  for (; at.Valid(); at.Next()) {
    if (!go_on()) throw StoreError("the salvage was ended");
    copy_entry(family, view(at.key()), view(at.value()));
  }
  if (!at.status().ok()) throw StoreError("the state cannot be read: " + at.status().ToString());
}

void Salvage::copy_entry(Family family, std::string_view key, std::string_view value) {
  if (from_.is_doubtful(family, key)) return copy_doubtful(family, key, value);
  if (family == kMeta && !is_of_the_queue(key)) return;
  put(family, key, value);
  JobRecord job;
  if (family == kIndex && from_.has_damage(kJobs) && set_job_of_key(key, job))
    put(kJobs, view(job_key(job.id)), view(encode_pointer(index_key_of(job))));
}

// A doubtful body is copied when a job is found to have it. The watermarks are made anew.
void Salvage::copy_doubtful(Family family, std::string_view key, std::string_view value) {
  JobRecord job;
  switch (family) {
    case kMeta:
      if (key.starts_with(kTubeKeys)) {
        put(kMeta, key, value);
        old_tubes_.insert(tube_of_key(key));
      }
      if (key.starts_with(kEndpointKeys))
        left_out_.push_back("the endpoint '" + std::string(key.substr(1)) +
                            "' is left out, because it may be old: set it anew");
      break;
    case kJobs:
      if (value.size() == Pointer{}.size() && set_job_of_key(value.substr(1), job))
        put(kJobs, key, view(doubtful_pointer(index_key_of(job))));
      break;
    case kIndex:
      copy_doubtful_record(key, value);
      break;
    case kBodies:
      break;
    case kKeys:
      copy_doubtful_key(key, value);
      break;
    case kSchedules:
      left_out_.push_back("the schedule '" + std::string(key) +
                          "' is left out, because it may be old: set it anew");
  }
}

// If a job has several doubtful records, the last one counts.
void Salvage::copy_doubtful_record(std::string_view key, std::string_view value) {
  JobRecord job;
  if (!set_job_of_key(key, job)) return;
  const IndexKey its = index_key_of(job);
  const Standing standing = standing_of(from_, its, job);
  if (standing == Standing::kGone) return;
  put(kIndex, key, value);
  if (standing == Standing::kUnknown)
    put(kJobs, view(job_key(job.id)), view(doubtful_pointer(its)));
}

// compare_keys() erases the key, and the story, of a job that is not there.
void Salvage::copy_doubtful_key(std::string_view key, std::string_view value) {
  constexpr std::size_t kHead = 1 + sizeof(std::uint32_t);
  if (key.starts_with("s")) return put(kKeys, key, value);
  if (!key.starts_with("k") || key.size() <= kHead) return;
  try {
    if (read_key_value(tube_of(key), key.substr(kHead), value).until == 0) put(kKeys, key, value);
  } catch (const StoreDamage&) {
    // left out
  }
}

void Salvage::apply(std::string_view change) {
  to_.apply(change, to_.number() + 1);
  for_each_entry(change, [this](const Entry& entry) {
    if (!old_tubes_.empty() && entry.family == kMeta && entry.key.starts_with(kTubeKeys))
      old_tubes_.erase(tube_of_key(entry.key));
  });
  if (to_.unflushed() > DiskStoreOptions().recent) to_.flush(mark_of(0));
}

void Salvage::each(Family family,
                   const std::function<void(std::string_view, std::string_view)>& call) {
  write();
  to_.write_small_records();
  const std::string last(512, '\xff');
  const rocksdb::Slice end(last);
  const auto at = to_.scan(family, "", end);
  for (; at->Valid(); at->Next()) call(view(at->key()), view(at->value()));
  to_.check(*at);
}

void Salvage::compare(const std::function<void(const LostJob&)>& lost) {
  each(kIndex,
       [&](std::string_view key, std::string_view value) { compare_record(key, value, lost); });
  compare_pointers(lost);
  if (from_.has_damage(kJobs) && from_.has_damage(kIndex)) compare_bodies(lost);
  compare_keys();
  count_tubes();
  note_nameless();
  raise_watermarks();
  write();
}

void Salvage::compare_record(std::string_view key, std::string_view value,
                             const std::function<void(const LostJob&)>& lost) {
  JobRecord job;
  if (!set_job_of_key(key, job)) return erase(kIndex, key);
  last_id_ = std::max(last_id_, job.id);
  const IndexKey its = index_key_of(job);
  const auto pointer = to_.get(kJobs, view(job_key(job.id)));
  const bool is_doubtful = pointer && *pointer == view(doubtful_pointer(its));
  if (!pointer || (!is_doubtful && *pointer != view(encode_pointer(its))))
    return erase(kIndex, key);
  try {
    job = read_job_value(key, value);
  } catch (const StoreDamage& why) {
    return lose(job, why.what(), lost);
  }
  last_id_ = std::max(last_id_, job.body_id());
  if (job.body_id() != job.id) bodies_.insert(job.body_id());
  if (is_doubtful) return lose(job, "it may be done, or due at another time: it may be old", lost);
  if (!body_of(job.body_id(), job.body_bytes)) return lose(job, "its body cannot be read", lost);
  ++jobs_;
  if (from_.is_doubtful(kIndex, key)) old_jobs_.push_back(job.id);
  Counts& counts = counts_[job.tube];
  ++(job.buried() ? counts.buried : counts.scheduled);
  last_burial_ = std::max(last_burial_, job.burial);
}

// Its pointer stays until compare_pointers() finds it without a record.
void Salvage::lose(const JobRecord& job, const std::string& why,
                   const std::function<void(const LostJob&)>& lost) {
  LostJob told{.id = job.id,
               .tube = name_of(job.tube),
               .due = job.buried() ? std::nullopt : std::optional(job.due),
               .why = why,
               .body = body_of(job.body_id(), std::nullopt)};
  erase(kIndex, view(index_key_of(job)));
  erase(kJobs, view(job_key(job.id)));
  erase(kKeys, view(story_key(job.id)));
  erase(kBodies, view(job_key(job.body_id())));
  for (std::uint32_t n = 1; n < pieces_of(job.body_bytes); ++n)
    erase(kBodies, view(piece_key(job.body_id(), n)));
  lost(told);
}

void Salvage::compare_pointers(const std::function<void(const LostJob&)>& lost) {
  each(kJobs, [&](std::string_view key, std::string_view value) {
    JobRecord job;
    if (key.size() != JobKey{}.size()) return erase(kJobs, key);
    const JobId id = id_of(key);
    last_id_ = std::max(last_id_, id);
    if (value.size() != Pointer{}.size() || !set_job_of_key(value.substr(1), job)) {
      erase(kJobs, key);
      return lost({.id = id, .why = "its pointer is damaged"});
    }
    if (to_.get(kIndex, value.substr(1))) return;
    const bool may_be_there = value[0] == kDoubtful ? from_.has_damage(kIndex)
                                                    : from_.is_doubtful(kIndex, value.substr(1));
    if (may_be_there) return lose(job, "its record cannot be read", lost);
    erase(kJobs, key);
  });
}

// Reports bodies whose record and pointer are both lost. The body of an incomplete put stays.
void Salvage::compare_bodies(const std::function<void(const LostJob&)>& lost) {
  each(kBodies, [&](std::string_view key, std::string_view) {
    if (key.size() != JobKey{}.size() || to_.get(kJobs, key)) return;
    const JobId id = id_of(key);
    last_id_ = std::max(last_id_, id);
    if (bodies_.count(id) > 0 || to_.get(kMeta, view(unfinished_key(id)))) return;
    lose({.id = id, .history = {}}, "only its body can be read: it may be done", lost);
  });
}

// A piece that a damaged table hides is copied, if `keep` says so.
std::optional<std::string> Salvage::piece_of(std::string_view key, bool keep) {
  if (auto piece = to_.get(kBodies, key)) return piece;
  if (!from_.is_doubtful(kBodies, key)) return std::nullopt;
  std::optional<std::string> piece = from_.get(kBodies, key).bytes;
  if (!piece && beneath_ != nullptr) piece = beneath_->get(kBodies, key).bytes;
  if (piece && keep) put(kBodies, key, *piece);
  return piece;
}

// Returns nothing if a piece is missing. Without `bytes`, returns the pieces that are there.
std::optional<std::string> Salvage::body_of(JobId id, std::optional<std::uint32_t> bytes) {
  std::optional<std::string> body = piece_of(view(job_key(id)), bytes.has_value());
  for (std::uint32_t n = 1;
       body && (bytes ? body->size() < *bytes : body->size() % kBodyPiece == 0); ++n) {
    const auto piece = piece_of(view(piece_key(id, n)), bytes.has_value());
    if (!piece) return bytes || body->empty() ? std::nullopt : body;
    *body += *piece;
  }
  if (bytes && body && body->size() != *bytes) return std::nullopt;
  return body;
}

void Salvage::compare_keys() {
  const auto is_there = [this](JobId id) { return to_.get(kJobs, view(job_key(id))).has_value(); };
  each(kKeys, [&](std::string_view key, std::string_view value) {
    constexpr std::size_t kHead = 1 + sizeof(std::uint32_t);
    try {
      if (key.starts_with(kEndedKeys)) {
        const std::uint32_t tube = key_of_ended_key(key).tube;
        if (tube != kTokens) ++counts_[tube].ended_keys;
      } else if (key.starts_with("k") && key.size() > kHead) {
        const KeyRecord record = read_key_value(tube_of(key), key.substr(kHead), value);
        if (record.until == 0 && !is_there(record.id)) erase(kKeys, key);
      } else if (key.size() == StoryKey{}.size() && !is_there(id_of(key.substr(1)))) {
        erase(kKeys, key);
      } else if (key.starts_with(kLeaseKeys)) {
        read_lease_value(job_of_lease_key(key), value);
      }
    } catch (const StoreDamage&) {
      erase(kKeys, key);
    }
  });
}

// Notes what may be lost or old, where nobody can say which entries.
void Salvage::note_nameless() {
  constexpr const char* kCompare =
      ", and not all of them are named here: compare with your own list";
  if (!old_jobs_.empty()) {
    constexpr std::size_t kSome = 10;
    std::string ids;
    for (std::size_t i = 0; i < old_jobs_.size() && i < kSome; ++i)
      ids += (i == 0 ? "" : ", ") + std::to_string(old_jobs_[i]);
    left_out_.push_back(
        "jobs that may be as they were before their latest change, if it left the due time: "
        "attempts, priority, ttr: " +
        std::to_string(old_jobs_.size()) + " (" + ids +
        (old_jobs_.size() > kSome ? ", ...)" : ")"));
  }
  if (from_.has_damage(kMeta)) {
    left_out_.emplace_back(
        std::string("endpoints, and settings of tubes without jobs, may be lost") + kCompare);
  }
  if (from_.has_damage(kSchedules))
    left_out_.emplace_back(std::string("schedules may be lost") + kCompare);
  if (from_.has_damage(kKeys)) {
    left_out_.emplace_back(
        "keys, tokens, leases and stories of jobs may be lost: a put that is repeated "
        "with its key or token may put its job again, and a job that runs may be given to a second "
        "worker");
  }
}

// No id and no burial is given twice, even if the watermarks are lost, or the changes that raised
// them.
void Salvage::raise_watermarks() {
  constexpr std::uint64_t kReserve = 1 << 20;  // that may have been given to jobs that are gone
  Watermarks marks;
  try {
    if (const auto value = to_.get(kMeta, kWatermarksKey)) marks = read_watermarks_value(*value);
  } catch (const StoreDamage&) {
    marks = {};
  }
  marks.next_id = std::max(marks.next_id, last_id_ + 1) + kReserve;
  marks.next_burial = std::max(marks.next_burial, last_burial_ + 1) + kReserve;
  std::string value;
  append_watermarks_value(value, marks);
  put(kMeta, kWatermarksKey, value);
}

// RocksState has made a log without changes. A state with changes needs a log that goes on behind
// them.
void Salvage::finish() {
  write();
  to_.flush(mark_of(0));
  LocalLog::make(to_.files(), to_.identity(), to_.flushed_position());
  if (const int error = to_.files().sync(); error != 0)
    throw StoreError(to_.message(std::string("cannot be synced: ") + std::strerror(error)));
}

std::string Salvage::name_of(std::uint32_t tube) const {
  const auto value = to_.get(kMeta, view(tube_key(tube)));
  if (!value) return "";
  try {
    return read_tube_value(tube, *value).name;
  } catch (const StoreDamage&) {
    return "";
  }
}

std::map<std::uint32_t, TubeRecord> Salvage::tubes() {
  std::map<std::uint32_t, TubeRecord> tubes;
  each(kMeta, [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(kTubeKeys)) return;
    try {
      const std::uint32_t number = tube_of_key(key);
      tubes[number] = read_tube_value(number, value);
    } catch (const StoreDamage&) {
      erase(kMeta, key);
    }
  });
  return tubes;
}

void Salvage::count_tubes() {
  std::map<std::uint32_t, TubeRecord> tubes = this->tubes();
  const auto stays = [this](const TubeRecord& tube) {
    const Counts& counts = counts_[tube.number];
    return counts.scheduled + counts.buried + counts.ended_keys > 0 || tube.settings;
  };
  for (const auto& [number, tube] : tubes) {
    if (tube.head != 0 && stays(tube)) ++counts_[tube.head].lanes;
  }
  name_lost_tubes(tubes);
  for (auto& [number, tube] : tubes) {
    const Counts& counts = counts_[number];
    tube.scheduled = counts.scheduled;
    tube.buried = counts.buried;
    tube.ended_keys = counts.ended_keys;
    tube.lanes = counts.lanes;
    const TubeKey key = tube_key(number);
    if (tube.empty()) {
      erase(kMeta, view(key));
      continue;
    }
    std::string value;
    append_tube_value(value, tube);
    put(kMeta, view(key), value);
    if (old_tubes_.count(number) == 0) continue;
    left_out_.push_back("the record of the tube '" + tube.name + "' may be old: check " +
                        kSettings);
  }
}

// Adds records for the tubes that have jobs or lanes, but no record.
void Salvage::name_lost_tubes(std::map<std::uint32_t, TubeRecord>& tubes) {
  TubeHints hints;
  const auto add = [](const auto& read) {
    try {
      read();
    } catch (const StoreDamage&) {
      // It says nothing then.
    }
  };
  each(kSchedules, [&](std::string_view key, std::string_view value) {
    add([&] { hints.add_schedule(key, value); });
  });
  each(kMeta, [&](std::string_view key, std::string_view value) {
    if (key.starts_with(kEndpointKeys))
      add([&] { hints.add_endpoint(key.substr(kEndpointKeys.size()), value); });
  });
  for (const auto& [number, tube] : tubes) {
    if (tube.head == 0) hints.who.erase(tube.name);
  }
  bool is_any_lost = false;
  for (const auto& [number, counts] : counts_) {
    if (tubes.count(number) > 0) continue;
    is_any_lost = true;
    const std::string name = "salvaged-" + std::to_string(number);
    tubes[number] = {.number = number, .name = name};
    left_out_.push_back("the record of tube number " + std::to_string(number) + " is lost: " +
                        kSettings + " are gone, and so is its name. Its jobs are in '" + name +
                        "': check them, and move them where they belong" + hints.by_number[number]);
  }
  if (!is_any_lost) return;
  for (const auto& [name, who] : hints.who) {
    std::string line = "the tube '";
    line.append(name).append("', which ").append(who);
    line += " names, has no record: it may be one of those whose names are lost";
    left_out_.push_back(std::move(line));
  }
}

}  // namespace carillon::queue
