// Which entries a change puts and erases, and their bytes.

#include "queue/store/change_codec.h"

#include "queue/store/record_keys.h"
#include "queue/store/record_values.h"
#include "queue/store/tagged_fields.h"

namespace carillon::queue {

namespace {

constexpr char kVersion = 1;

class Encoder {
 public:
  explicit Encoder(std::string& bytes) : bytes_(bytes) { bytes_.assign(1, kVersion); }

  void put(Family family, std::string_view key, std::string_view value) {
    begin(2 * static_cast<std::uint32_t>(family) + 1, 1 + key.size() + value.size());
    append_varint(bytes_, key.size());  // one byte: keys are short
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
      erase(kBodies, view(id));
      return;
    }
    const IndexKey after = index_key_of(job);
    if (before && *before != after) erase(kIndex, view(*before));
    if (!before) put(kBodies, view(id), change.body);
    if (before != after) put(kJobs, view(id), view(encode_pointer(after)));
    value_.clear();
    append_job_value(value_, job);
    put(kIndex, view(after), value_);
  }
  void add(const TubeRecord& tube) {
    const TubeKey key = tube_key(tube.number);
    if (tube.scheduled == 0 && tube.buried == 0) return erase(kMeta, view(key));
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
  const std::size_t size = entry.key.empty() ? 0 : static_cast<std::uint8_t>(entry.key.front());
  if (size == 0 || size >= 0x80 || size >= entry.key.size()) fail("a key is cut short");
  entry.value = entry.key.substr(1 + size);
  entry.key = entry.key.substr(1, size);
  return entry;
}

}  // namespace

void encode_changes(const Changes& changes, std::string& bytes) {
  Encoder encoder(bytes);
  for (const JobChange& change : changes.jobs) encoder.add(change);
  for (const TubeRecord& tube : changes.tubes) encoder.add(tube);
  if (changes.watermarks) encoder.add(*changes.watermarks);
}

void for_each_entry(std::string_view bytes, const std::function<void(const Entry&)>& each) {
  if (bytes.empty()) fail("it is empty");
  if (bytes.front() != kVersion) fail("its version is not known");
  FieldReader fields(bytes.substr(1));
  while (fields.next()) each(entry_of(fields));
  if (fields.broken()) fail("its fields are broken");
}

}  // namespace carillon::queue
