// The keys and values of the store, byte by byte.

#include "queue/store/record_codec.h"

#include <algorithm>
#include <concepts>

namespace carillon::queue {

namespace {

template <std::unsigned_integral Number>
char* put_big(char* at, Number number) {
  for (std::size_t shift = 8 * sizeof(Number); shift > 0; shift -= 8)
    *at++ = static_cast<char>(number >> (shift - 8));
  return at;
}

template <std::unsigned_integral Number>
char* put_little(char* at, Number number) {
  for (std::size_t shift = 0; shift < 8 * sizeof(Number); shift += 8)
    *at++ = static_cast<char>(number >> shift);
  return at;
}

template <std::unsigned_integral Number>
Number get_big(std::string_view bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number = static_cast<Number>((number << 8) | static_cast<std::uint8_t>(bytes[at + i]));
  }
  return number;
}

// Takes a value apart from its front. If the value is not as it should be, it throws a StoreError
// about `what` under `key`.
class Reader {
 public:
  Reader(const char* what, std::string_view key, std::string_view value, std::size_t least_size)
      : what_(what), key_(key), value_(value) {
    if (value.empty()) fail("is empty");
    const auto version = static_cast<std::uint8_t>(value[0]);
    if (version != kRecordVersion) {
      fail("has version " + std::to_string(version) + "; this program knows version " +
           std::to_string(kRecordVersion));
    }
    if (value.size() < least_size) too_small(least_size);
  }

  void size_is(std::size_t size) const {
    if (value_.size() != size) too_small(size);
  }

  template <std::unsigned_integral Number>
  Number take() {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      const auto byte = static_cast<Number>(static_cast<std::uint8_t>(value_[at_ + i]));
      number = static_cast<Number>(number | static_cast<Number>(byte << (8 * i)));
    }
    at_ += sizeof(Number);
    return number;
  }

  std::string_view rest() const { return value_.substr(at_); }

  [[noreturn]] void fail(const std::string& how) const {
    throw StoreDamage(std::string(what_) + " under the key " + hex(key_) + " is damaged: it " +
                      how);
  }

 private:
  [[noreturn]] void too_small(std::size_t size) const {
    fail("has " + std::to_string(value_.size()) + " bytes instead of " + std::to_string(size));
  }

  const char* what_;
  std::string_view key_;
  std::string_view value_;
  std::size_t at_ = 1;
};

IndexKey make_index_key(char kind, std::uint32_t tube, std::uint64_t order, JobId id) {
  IndexKey key;
  key[0] = kind;
  put_big(put_big(put_big(key.data() + 1, tube), order), id);
  return key;
}

}  // namespace

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const char byte : bytes) {
    digits += kDigits[static_cast<std::uint8_t>(byte) >> 4];
    digits += kDigits[static_cast<std::uint8_t>(byte) & 0xf];
  }
  return digits;
}

JobKey job_key(JobId id) {
  JobKey key;
  put_big(key.data(), id);
  return key;
}

TubeKey tube_key(std::uint32_t number) {
  TubeKey key;
  key[0] = kTubeKeys[0];
  put_big(key.data() + 1, number);
  return key;
}

std::uint32_t tube_of_key(std::string_view key) {
  if (key.size() != TubeKey{}.size())
    throw StoreDamage("a tube record is under the key " + hex(key) + ", which is no tube's");
  return get_big<std::uint32_t>(key, 1);
}

IndexKey due_index_key(std::uint32_t tube, UtcMs due, JobId id) {
  return make_index_key('d', tube, due, id);
}

IndexKey burial_index_key(std::uint32_t tube, std::uint64_t burial, JobId id) {
  return make_index_key('b', tube, burial, id);
}

IndexKey index_key_of(const JobRecord& job) {
  return job.buried() ? burial_index_key(job.tube, job.burial, job.id)
                      : due_index_key(job.tube, job.due, job.id);
}

bool set_job_of_key(std::string_view key, JobRecord& job) {
  if (key.size() != IndexKey{}.size() || (key[0] != 'd' && key[0] != 'b')) return false;
  job.tube = get_big<std::uint32_t>(key, 1);
  (key[0] == 'b' ? job.burial : job.due) = get_big<std::uint64_t>(key, 5);
  job.id = get_big<std::uint64_t>(key, 13);
  return true;
}

Bytes<69> encode_job(const JobRecord& job) {
  Bytes<69> value;
  char* at = value.data();
  at = put_little(at, kRecordVersion);
  at = put_little(at, job.priority);
  at = put_little(at, job.due);
  at = put_little(at, job.burial);
  at = put_little(at, job.ttr);
  at = put_little(at, job.delay);
  at = put_little(at, job.created);
  at = put_little(at, job.body_bytes);
  at = put_little(at, job.history.reserves);
  at = put_little(at, job.history.timeouts);
  at = put_little(at, job.history.releases);
  at = put_little(at, job.history.buries);
  put_little(at, job.history.kicks);
  return value;
}

JobRecord decode_job(std::string_view key, std::string_view value) {
  Reader reader("the job record", key, value, 69);
  reader.size_is(69);
  if (key.size() != IndexKey{}.size())
    reader.fail("is under a key of " + std::to_string(key.size()) + " bytes");
  JobRecord job;
  job.tube = get_big<std::uint32_t>(key, 1);
  job.id = get_big<std::uint64_t>(key, 13);
  job.priority = reader.take<std::uint32_t>();
  job.due = reader.take<std::uint64_t>();
  job.burial = reader.take<std::uint64_t>();
  job.ttr = reader.take<std::uint64_t>();
  job.delay = reader.take<std::uint64_t>();
  job.created = reader.take<std::uint64_t>();
  job.body_bytes = reader.take<std::uint32_t>();
  job.history.reserves = reader.take<std::uint32_t>();
  job.history.timeouts = reader.take<std::uint32_t>();
  job.history.releases = reader.take<std::uint32_t>();
  job.history.buries = reader.take<std::uint32_t>();
  job.history.kicks = reader.take<std::uint32_t>();
  if (view(index_key_of(job)) != key)
    reader.fail("belongs under the key " + hex(view(index_key_of(job))));
  return job;
}

Bytes<22> encode_pointer(const IndexKey& key) {
  Bytes<22> value;
  value[0] = static_cast<char>(kRecordVersion);
  std::copy(key.begin(), key.end(), value.begin() + 1);
  return value;
}

std::string_view decode_pointer(JobId id, std::string_view value) {
  const JobKey key = job_key(id);
  const Reader reader("the pointer of a job", view(key), value, 22);
  reader.size_is(22);
  return reader.rest();
}

std::string encode_tube(const TubeRecord& tube) {
  Bytes<17> counts;
  put_little(put_little(put_little(counts.data(), kRecordVersion), tube.scheduled), tube.buried);
  std::string value(view(counts));
  value += tube.name;
  return value;
}

TubeRecord decode_tube(std::string_view key, std::string_view value) {
  Reader reader("the tube record", key, value, 18);
  if (key.size() != TubeKey{}.size())
    reader.fail("is under a key of " + std::to_string(key.size()) + " bytes");
  TubeRecord tube;
  tube.number = get_big<std::uint32_t>(key, 1);
  tube.scheduled = reader.take<std::uint64_t>();
  tube.buried = reader.take<std::uint64_t>();
  tube.name = reader.rest();
  return tube;
}

Bytes<17> encode_journal_position(const JournalPosition& position) {
  Bytes<17> value;
  char* const at = put_little(value.data(), kRecordVersion);
  put_little(put_little(at, position.identity), position.number);
  return value;
}

JournalPosition decode_journal_position(std::string_view value) {
  Reader reader("the journal's note", kJournalKey, value, 17);
  reader.size_is(17);
  JournalPosition position;
  position.identity = reader.take<std::uint64_t>();
  position.number = reader.take<std::uint64_t>();
  return position;
}

Bytes<25> encode_watermarks(const Watermarks& watermarks) {
  Bytes<25> value;
  char* at = put_little(value.data(), kRecordVersion);
  put_little(put_little(put_little(at, watermarks.next_id), watermarks.next_burial),
             watermarks.time);
  return value;
}

Watermarks decode_watermarks(std::string_view value) {
  Reader reader("the watermarks record", kWatermarksKey, value, 25);
  reader.size_is(25);
  Watermarks watermarks;
  watermarks.next_id = reader.take<std::uint64_t>();
  watermarks.next_burial = reader.take<std::uint64_t>();
  watermarks.time = reader.take<std::uint64_t>();
  return watermarks;
}

}  // namespace carillon::queue
