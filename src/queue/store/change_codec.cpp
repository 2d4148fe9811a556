// The fields of a change.

#include "queue/store/change_codec.h"

#include <utility>

#include "queue/store/record_keys.h"
#include "queue/store/record_values.h"
#include "queue/store/tagged_fields.h"

namespace carillon::queue {

namespace {

constexpr std::uint8_t kVersion = 1;

[[noreturn]] void fail(const char* what) {
  throw StoreDamage(std::string("the log holds a change that is damaged: ") + what);
}

void check(const FieldReader& fields) {
  if (fields.broken()) fail("its fields are broken");
}

void encode(const JobChange& change, std::string& bytes, std::string& value) {
  const JobRecord& job = change.after ? *change.after : *change.before;
  bytes.clear();
  if (change.before) append_bytes(bytes, 1, view(index_key_of(*change.before)));
  append_number(bytes, 2, job.id);
  append_number(bytes, 3, job.tube);
  if (change.after) {
    value.clear();
    append_job_value(value, *change.after);
    append_bytes(bytes, 4, value);
  }
  if (!change.before) append_bytes(bytes, 5, change.body);
}

JobChange decode_job_change(std::string_view bytes) {
  JobChange change;
  JobId id = 0;
  std::uint64_t tube = 0;
  std::optional<std::string_view> value;
  FieldReader fields(bytes);
  while (fields.next()) {
    switch (fields.tag()) {
      case 1:
        if (!set_job_of_key(fields.bytes(), change.before.emplace())) fail("a key is none");
        break;
      case 2:
        id = fields.number();
        break;
      case 3:
        tube = fields.number();
        break;
      case 4:
        value = fields.bytes();
        break;
      case 5:
        change.body = fields.bytes();
        break;
      default:
        break;
    }
  }
  check(fields);
  if (!value) {
    if (!change.before) fail("a job has no record");
    return change;
  }
  change.after = read_job_value_of(id, static_cast<std::uint32_t>(tube), *value);
  return change;
}

TubeRecord decode_tube_change(std::string_view bytes) {
  std::uint64_t number = 0;
  std::string_view value;
  FieldReader fields(bytes);
  while (fields.next()) {
    if (fields.tag() == 1) number = fields.number();
    if (fields.tag() == 2) value = fields.bytes();
  }
  check(fields);
  return read_tube_value(static_cast<std::uint32_t>(number), value);
}

}  // namespace

void encode_changes(const Changes& changes, std::string& bytes) {
  bytes.assign(1, static_cast<char>(kVersion));
  std::string field;
  std::string value;
  for (const JobChange& change : changes.jobs) {
    encode(change, field, value);
    append_bytes(bytes, 1, field);
  }
  for (const TubeRecord& tube : changes.tubes) {
    field.clear();
    value.clear();
    append_tube_value(value, tube);
    append_number(field, 1, tube.number);
    append_bytes(field, 2, value);
    append_bytes(bytes, 2, field);
  }
  if (!changes.watermarks) return;
  value.clear();
  append_watermarks_value(value, *changes.watermarks);
  append_bytes(bytes, 3, value);
}

Changes decode_changes(std::string_view bytes) {
  if (bytes.empty()) fail("it is empty");
  if (static_cast<std::uint8_t>(bytes.front()) != kVersion) fail("its version is not known");
  Changes changes;
  FieldReader fields(bytes.substr(1));
  while (fields.next()) {
    switch (fields.tag()) {
      case 1:
        changes.jobs.push_back(decode_job_change(fields.bytes()));
        break;
      case 2:
        changes.tubes.push_back(decode_tube_change(fields.bytes()));
        break;
      case 3:
        changes.watermarks = read_watermarks_value(fields.bytes());
        break;
      default:
        break;
    }
  }
  check(fields);
  return changes;
}

}  // namespace carillon::queue
