// How jobs, tubes and watermarks are written as keys and values of a sorted store.
//
// Numbers in keys are big-endian, so that the keys sort as their numbers do. Numbers in values are
// little-endian, after a version byte.
//
//   family    key        value
//   jobs      id:u64     version index_key                       (the pointer to the job's record)
//   index     index_key  version priority:u32 due:u64 burial:u64 ttr:u64 delay:u64 created:u64
//                        body_bytes:u32 reserves:u32 timeouts:u32 releases:u32 buries:u32
//                        kicks:u32                               (the job's record)
//   bodies    id:u64     the body
//   default   't' n:u32  version scheduled:u64 buried:u64 name:bytes  (the record of tube number n)
//   default   'w'        version next_id:u64 next_burial:u64 time:u64 (the watermarks)
//   default   'j'        version identity:u64 number:u64              (the journal's position)
//
//   index_key := 'd' tube:u32 due:u64 id:u64       for a job that is not buried: sorts by (due, id)
//              | 'b' tube:u32 burial:u64 id:u64    for a buried job: sorts in the order of burials
//
// The record is in the index, in the order of due times, because loading then reads neighbours. The
// price is that a look-up by id takes two reads.
//
// Example: the record of job 5 of tube 1, due at 1'000 ms, is under the key
// 64 00000001 00000000000003e8 0000000000000005 (hexadecimal).
//
// Decoding throws StoreError, which names the key, if a value is not as written above.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "carillon/queue/job.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

template <std::size_t size>
using Bytes = std::array<char, size>;

using JobKey = Bytes<8>;
using IndexKey = Bytes<21>;
using TubeKey = Bytes<5>;

inline constexpr std::uint8_t kRecordVersion = 1;

template <std::size_t size>
std::string_view view(const Bytes<size>& bytes) {
  return {bytes.data(), size};
}

// Returns the bytes as hexadecimal digits, for messages that name a key.
std::string hex(std::string_view bytes);

JobKey job_key(JobId id);
TubeKey tube_key(std::uint32_t number);
// Throws StoreError if `key` is not a tube's.
std::uint32_t tube_of_key(std::string_view key);
// All tube keys are >= the first and < the second of these.
inline constexpr std::string_view kTubeKeys = "t";
inline constexpr std::string_view kTubeKeysEnd = "u";
inline constexpr std::string_view kWatermarksKey = "w";

IndexKey due_index_key(std::uint32_t tube, UtcMs due, JobId id);
IndexKey burial_index_key(std::uint32_t tube, std::uint64_t burial, JobId id);
IndexKey index_key_of(const JobRecord& job);
// Sets what an index key says of its job: the id, the tube, and the due time or the burial. Returns
// false if `key` is no index key.
bool set_job_of_key(std::string_view key, JobRecord& job);

Bytes<69> encode_job(const JobRecord& job);
JobRecord decode_job(std::string_view key, std::string_view value);

Bytes<22> encode_pointer(const IndexKey& key);
// Returns the index key, which is a view into `value`.
std::string_view decode_pointer(JobId id, std::string_view value);

std::string encode_tube(const TubeRecord& tube);
TubeRecord decode_tube(std::string_view key, std::string_view value);

// Which journal belongs to the database, and how far it has been applied: the number of its last
// record whose changes are in the database.
struct JournalPosition {
  std::uint64_t identity = 0;
  std::uint64_t number = 0;

  friend bool operator==(const JournalPosition&, const JournalPosition&) = default;
};
inline constexpr std::string_view kJournalKey = "j";

Bytes<17> encode_journal_position(const JournalPosition& position);
JournalPosition decode_journal_position(std::string_view value);

Bytes<25> encode_watermarks(const Watermarks& watermarks);
Watermarks decode_watermarks(std::string_view value);

}  // namespace carillon::queue
