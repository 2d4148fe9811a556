// The keys, byte by byte.

#include "queue/store/state/record_keys.h"

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
Number get_big(std::string_view bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number = static_cast<Number>((number << 8) | static_cast<std::uint8_t>(bytes[at + i]));
  }
  return number;
}

constexpr char kPointerVersion = 1;

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

PieceKey piece_key(JobId id, std::uint32_t number) {
  PieceKey key;
  put_big(key.data(), id);
  put_big(key.data() + sizeof id, number);
  return key;
}

UnfinishedKey unfinished_key(JobId id) {
  UnfinishedKey key;
  key[0] = kUnfinishedKeys[0];
  put_big(key.data() + 1, id);
  return key;
}

StoryKey story_key(JobId id) {
  StoryKey key;
  key[0] = 's';
  put_big(key.data() + 1, id);
  return key;
}

LeaseKey lease_key(JobId id) {
  LeaseKey key;
  key[0] = kLeaseKeys[0];
  put_big(key.data() + 1, id);
  return key;
}

JobId job_of_lease_key(std::string_view key) {
  if (key.size() != LeaseKey{}.size())
    throw StoreDamage("a lease is under the key " + hex(key) + ", which is no job's");
  return get_big<JobId>(key, 1);
}

JobId job_of_unfinished_key(std::string_view key) {
  if (key.size() != UnfinishedKey{}.size())
    throw StoreDamage("an unfinished body is under the key " + hex(key) + ", which is no job's");
  return get_big<JobId>(key, 1);
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

std::string key_key(std::uint32_t tube, std::string_view key) {
  std::string bytes(1 + sizeof tube, 'k');
  put_big(bytes.data() + 1, tube);
  return bytes.append(key);
}

std::string ended_key_key(const KeyRecord& key) {
  std::string bytes(1 + sizeof key.until + sizeof key.tube, kEndedKeys[0]);
  put_big(put_big(bytes.data() + 1, key.until), key.tube);
  return bytes.append(key.key);
}

KeyRecord key_of_ended_key(std::string_view ended_key) {
  constexpr std::size_t kHead = 1 + sizeof(UtcMs) + sizeof(std::uint32_t);
  if (ended_key.size() <= kHead || ended_key[0] != kEndedKeys[0])
    throw StoreDamage("the end of a key is under the key " + hex(ended_key) +
                      ", which is no end's");
  return {.tube = get_big<std::uint32_t>(ended_key, 1 + sizeof(UtcMs)),
          .key = std::string(ended_key.substr(kHead)),
          .until = get_big<UtcMs>(ended_key, 1)};
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

Pointer encode_pointer(const IndexKey& key) {
  Pointer value;
  value[0] = kPointerVersion;
  std::copy(key.begin(), key.end(), value.begin() + 1);
  return value;
}

std::string_view decode_pointer(JobId id, std::string_view value) {
  if (value.size() != Pointer{}.size() || value[0] != kPointerVersion) {
    throw StoreDamage("the pointer of job " + std::to_string(id) + " is damaged: its bytes are " +
                      hex(value));
  }
  return value.substr(1);
}

}  // namespace carillon::queue
