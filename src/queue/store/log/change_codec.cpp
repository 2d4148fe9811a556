// Which entries a change puts and erases, and their bytes.

#include "queue/store/log/change_codec.h"

#include "queue/store/format_version.h"
#include "queue/store/state/endpoint_values.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/schedule_values.h"
#include "queue/store/state/tagged_fields.h"

namespace carillon::queue {

namespace {

class Encoder {
 public:
  // It appends to `bytes`.
  explicit Encoder(std::string& bytes) : bytes_(bytes) {}

  void put(Family family, std::string_view key, std::string_view value) {
    const std::size_t size_bytes = key.size() < 0x80 ? 1 : 2;  // no key has more than 2^14 bytes
    begin(2 * static_cast<std::uint32_t>(family) + 1, size_bytes + key.size() + value.size());
    append_varint(bytes_, key.size());
    bytes_.append(key).append(value);
  }
  void erase(Family family, std::string_view key) {
    begin(2 * static_cast<std::uint32_t>(family) + 2, key.size());
    bytes_.append(key);
  }

  void add(const JobChange& change) {
    const JobRecord& job = change.after ? *change.after : *change.before;
    const JobKey id = job_key(job.id);
    const auto before = change.before ? std::optional(index_key_of(*change.before)) : std::nullopt;
    if (!change.after) {
      erase(kIndex, view(*before));
      erase(kJobs, view(id));
      return erase_body(job.body_id(), job.body_bytes);
    }
    const IndexKey after = index_key_of(job);
    if (before && *before != after) erase(kIndex, view(*before));
    if (change.has_new_body()) put_body(change);
    if (before != after) put(kJobs, view(id), view(encode_pointer(after)));
    value_.clear();
    append_job_value(value_, job);
    put(kIndex, view(after), value_);
  }
  void add(const KeyChange& change) {
    const KeyRecord& key = change.after ? *change.after : *change.before;
    if (change.before && change.before->until != 0) erase(kKeys, ended_key_key(*change.before));
    if (!change.after) return erase(kKeys, key_key(key.tube, key.key));
    value_.clear();
    append_key_value(value_, key);
    put(kKeys, key_key(key.tube, key.key), value_);
    if (key.until != 0) put(kKeys, ended_key_key(key), value_);
  }
  void add(const StoryChange& change) {
    const StoryKey key = story_key(change.id);
    if (change.story.empty()) return erase(kKeys, view(key));
    value_.clear();
    append_story_value(value_, change.story);
    put(kKeys, view(key), value_);
  }
  void add(const LeaseChange& change) {
    const LeaseKey key = lease_key(change.job);
    if (!change.after) return erase(kKeys, view(key));
    value_.clear();
    append_lease_value(value_, *change.after);
    put(kKeys, view(key), value_);
  }
  void add(const ScheduleChange& change) {
    if (!change.after) return erase(kSchedules, change.name);
    value_.clear();
    append_schedule_value(value_, *change.after);
    put(kSchedules, change.name, value_);
  }
  void add(const EndpointChange& change) {
    const std::string key = endpoint_key(change.name);
    if (!change.after) return erase(kMeta, key);
    value_.clear();
    append_endpoint_value(value_, *change.after);
    put(kMeta, key, value_);
  }
  void add(const BodyPiece& piece) {
    if (piece.number == 0) return put(kBodies, view(job_key(piece.id)), piece.bytes);
    put(kBodies, view(piece_key(piece.id, piece.number)), piece.bytes);
  }
  void begin(const UnfinishedBody& body) {
    value_.clear();
    append_unfinished_value(value_, body);
    put(kMeta, view(unfinished_key(body.id)), value_);
  }
  void give_up(const UnfinishedBody& body) {
    erase(kMeta, view(unfinished_key(body.id)));
    erase_body(body.id, body.bytes);
  }
  void add(const TubeRecord& tube) {
    const TubeKey key = tube_key(tube.number);
    if (tube.empty()) return erase(kMeta, view(key));
    value_.clear();
    append_tube_value(value_, tube);
    put(kMeta, view(key), value_);
  }
  void add(const Watermarks& watermarks) {
    value_.clear();
    append_watermarks_value(value_, watermarks);
    put(kMeta, kWatermarksKey, value_);
  }

 private:
  void put_body(const JobChange& change) {
    if (change.before) erase_body(change.before->body_id(), change.before->body_bytes);
    const JobId id = change.after->body_id();
    if (change.after->body_bytes > kBodyPiece && change.body.empty()) {
      erase(kMeta, view(unfinished_key(id)));
    } else {
      put(kBodies, view(job_key(id)), change.body);
    }
  }
  void erase_body(JobId id, std::uint32_t bytes) {
    erase(kBodies, view(job_key(id)));
    for (std::uint32_t n = 1; n < pieces_of(bytes); ++n) erase(kBodies, view(piece_key(id, n)));
  }
  void begin(std::uint32_t tag, std::size_t size) {
    append_varint(bytes_, std::uint64_t{tag} << 1 | 1);
    append_varint(bytes_, size);
  }

  std::string& bytes_;
  std::string value_;
};

[[noreturn]] void fail(const char* what) {
  throw StoreDamage(std::string("the log holds a change that is damaged: ") + what);
}

Entry entry_of(const FieldReader& field) {
  const std::uint32_t number = field.tag() - 1;
  if (!field.is_bytes() || number >= 2 * kFamilies) fail("it has an entry that is not known");
  Entry entry{.family = static_cast<Family>(number / 2), .key = field.bytes()};
  if (number % 2 == 1) return entry;
  std::string_view rest = field.bytes();
  std::uint64_t size = 0;
  if (!take_varint(rest, size) || size == 0 || size > rest.size()) fail("a key is cut short");
  entry.key = rest.substr(0, size);
  entry.value = rest.substr(size);
  return entry;
}

}  // namespace

void begin_change(std::string& bytes) {
  bytes.assign(1, static_cast<char>(kFormatVersion));
}

void append_entry(std::string& bytes, const Entry& entry) {
  Encoder encoder(bytes);
  entry.value ? encoder.put(entry.family, entry.key, *entry.value)
              : encoder.erase(entry.family, entry.key);
}

void encode_changes(const Changes& changes, std::string& bytes) {
  begin_change(bytes);
  Encoder encoder(bytes);
  if (changes.begun) encoder.begin(*changes.begun);
  if (changes.piece) encoder.add(*changes.piece);
  if (changes.given_up) encoder.give_up(*changes.given_up);
  for (const JobChange& change : changes.jobs) encoder.add(change);
  for (const KeyChange& key : changes.keys) encoder.add(key);
  for (const StoryChange& story : changes.stories) encoder.add(story);
  for (const LeaseChange& lease : changes.leases) encoder.add(lease);
  for (const ScheduleChange& schedule : changes.schedules) encoder.add(schedule);
  for (const EndpointChange& endpoint : changes.endpoints) encoder.add(endpoint);
  for (const TubeRecord& tube : changes.tubes) encoder.add(tube);
  if (changes.watermarks) encoder.add(*changes.watermarks);
}

void for_each_entry(std::string_view bytes, const std::function<void(const Entry&)>& each) {
  if (bytes.empty()) fail("it is empty");
  if (bytes.front() != kFormatVersion) fail("its version is not known");
  FieldReader fields(bytes.substr(1));
  while (fields.next()) each(entry_of(fields));
  if (fields.broken()) fail("its fields are broken");
}

}  // namespace carillon::queue
