// The fields of each record, and the messages for those that are not as they should be.

#include "queue/store/record_format.h"

#include <limits>
#include <string>

#include "queue/store/record_codec.h"
#include "queue/store/tagged_fields.h"

namespace carillon::queue {

namespace {

// Reads the fields of a value one by one, and collects those that nobody asks for.
class Value {
 public:
  Value(const char* what, std::string_view key, std::string_view value)
      : what_(what), key_(key), fields_(value.substr(value.empty() ? 0 : 1)) {
    if (value.empty()) fail("is empty");
    if (static_cast<std::uint8_t>(value.front()) != kFormatVersion)
      fail("has version " + std::to_string(static_cast<std::uint8_t>(value.front())));
  }

  bool next() {
    if (fields_.next()) return true;
    if (fields_.broken()) fail("is broken");
    return false;
  }
  std::uint32_t tag() const { return fields_.tag(); }

  template <typename Number>
  void number(Number& to) {
    if (fields_.is_bytes() || fields_.number() > std::numeric_limits<Number>::max())
      fail("has a field " + std::to_string(tag()) + " that is no such number");
    to = static_cast<Number>(fields_.number());
  }
  void bytes(std::string& to) {
    if (!fields_.is_bytes()) fail("has a field " + std::to_string(tag()) + " that is a number");
    to = fields_.bytes();
  }
  void unknown() { newer_.append(fields_.encoded()); }
  NewerFields newer() const { return NewerFields(newer_); }

  [[noreturn]] void fail(const std::string& how) const {
    throw StoreDamage(std::string(what_) + " under the key " + hex(key_) + " is damaged: it " +
                      how);
  }

 private:
  const char* what_;
  std::string_view key_;
  FieldReader fields_;
  std::string newer_;
};

bool is_of_version_1(std::string_view bytes) {
  return !bytes.empty() && static_cast<std::uint8_t>(bytes.front()) == kRecordVersion;
}

void append_version(std::string& bytes) {
  bytes += static_cast<char>(kFormatVersion);
}

}  // namespace

void append_job_value(std::string& bytes, const JobRecord& job) {
  append_version(bytes);
  append_number(bytes, 1, job.priority);
  append_number(bytes, 2, job.due);
  append_number(bytes, 3, job.burial);
  append_number(bytes, 4, job.ttr);
  append_number(bytes, 5, job.delay);
  append_number(bytes, 6, job.created);
  append_number(bytes, 7, job.body_bytes);
  append_number(bytes, 8, job.history.reserves);
  append_number(bytes, 9, job.history.timeouts);
  append_number(bytes, 10, job.history.releases);
  append_number(bytes, 11, job.history.buries);
  append_number(bytes, 12, job.history.kicks);
  bytes.append(job.newer.bytes());
}

namespace {

JobRecord read_job_fields(Value& value) {
  JobRecord job;
  job.ttr = 0;
  while (value.next()) {
    switch (value.tag()) {
      case 1:
        value.number(job.priority);
        break;
      case 2:
        value.number(job.due);
        break;
      case 3:
        value.number(job.burial);
        break;
      case 4:
        value.number(job.ttr);
        break;
      case 5:
        value.number(job.delay);
        break;
      case 6:
        value.number(job.created);
        break;
      case 7:
        value.number(job.body_bytes);
        break;
      case 8:
        value.number(job.history.reserves);
        break;
      case 9:
        value.number(job.history.timeouts);
        break;
      case 10:
        value.number(job.history.releases);
        break;
      case 11:
        value.number(job.history.buries);
        break;
      case 12:
        value.number(job.history.kicks);
        break;
      default:
        value.unknown();
    }
  }
  job.newer = value.newer();
  return job;
}

}  // namespace

JobRecord read_job_value(std::string_view key, std::string_view bytes) {
  if (is_of_version_1(bytes)) return decode_job(key, bytes);
  Value value("the job record", key, bytes);
  JobRecord job = read_job_fields(value);
  JobRecord named;
  if (!set_job_of_key(key, named)) value.fail("is under a key of another kind");
  job.id = named.id;
  job.tube = named.tube;
  if (view(index_key_of(job)) != key)
    value.fail("belongs under the key " + hex(view(index_key_of(job))));
  return job;
}

JobRecord read_job_value_of(JobId id, std::uint32_t tube, std::string_view bytes) {
  const JobKey key = job_key(id);
  Value value("the job record", view(key), bytes);
  JobRecord job = read_job_fields(value);
  job.id = id;
  job.tube = tube;
  return job;
}

void append_tube_value(std::string& bytes, const TubeRecord& tube) {
  append_version(bytes);
  append_number(bytes, 1, tube.scheduled);
  append_number(bytes, 2, tube.buried);
  append_bytes(bytes, 3, tube.name);
  bytes.append(tube.newer.bytes());
}

TubeRecord read_tube_value(std::uint32_t number, std::string_view bytes) {
  const TubeKey key = tube_key(number);
  if (is_of_version_1(bytes)) return decode_tube(view(key), bytes);
  Value value("the tube record", view(key), bytes);
  TubeRecord tube;
  tube.number = number;
  while (value.next()) {
    switch (value.tag()) {
      case 1:
        value.number(tube.scheduled);
        break;
      case 2:
        value.number(tube.buried);
        break;
      case 3:
        value.bytes(tube.name);
        break;
      default:
        value.unknown();
    }
  }
  tube.newer = value.newer();
  return tube;
}

void append_watermarks_value(std::string& bytes, const Watermarks& watermarks) {
  append_version(bytes);
  append_number(bytes, 1, watermarks.next_id);
  append_number(bytes, 2, watermarks.next_burial);
  append_number(bytes, 3, watermarks.time);
  bytes.append(watermarks.newer.bytes());
}

Watermarks read_watermarks_value(std::string_view bytes) {
  if (is_of_version_1(bytes)) return decode_watermarks(bytes);
  Value value("the record of the watermarks", kWatermarksKey, bytes);
  Watermarks watermarks;
  while (value.next()) {
    switch (value.tag()) {
      case 1:
        value.number(watermarks.next_id);
        break;
      case 2:
        value.number(watermarks.next_burial);
        break;
      case 3:
        value.number(watermarks.time);
        break;
      default:
        value.unknown();
    }
  }
  watermarks.newer = value.newer();
  return watermarks;
}

}  // namespace carillon::queue
