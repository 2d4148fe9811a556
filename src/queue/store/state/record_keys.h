// Under which keys a sorted store keeps jobs, tubes and watermarks.
//
//   family    key        value
//   jobs      id:u64     the pointer to the job's record: a version byte and an index key
//   index     index_key  the job's record
//   bodies    id:u64     the body, or its first piece (the id is JobRecord::body_id)
//   bodies    id:u64 n:u32  piece n > 0 of a body of more than kBodyPiece bytes
//   keys      'k' tube:u32 key            the record of the key
//   keys      'e' until:u64 tube:u32 key  the same, for a key whose job is gone
//   keys      's' id:u64 the story of job id
//   keys      'l' id:u64 the lease of job id
//   schedules name                        the record of the schedule
//   default   't' n:u32  the record of tube number n
//   default   'p' name   the record of the endpoint
//   default   'w'        the watermarks
//   default   'u' id:u64 how many bytes the unfinished body of job id will have
//
//   index_key := 'd' tube:u32 due:u64 id:u64       for a job that is not buried: sorts by (due, id)
//              | 'b' tube:u32 burial:u64 id:u64    for a buried job: sorts in the order of burials
//
// Numbers in keys are big-endian, so that the keys sort as their numbers do. record_values.h says
// how records are written.
//
// The record is in the index, in the order of due times, because loading then reads neighbours. The
// price is that a look-up by id takes two reads.
//
// Example: the record of job 5 of tube 1, due at 1'000 ms, is under the key
// 64 00000001 00000000000003e8 0000000000000005 (hexadecimal).
//
// Functions that throw StoreDamage name the key in the message.
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
using PieceKey = Bytes<12>;
using UnfinishedKey = Bytes<9>;
using StoryKey = Bytes<9>;
using LeaseKey = Bytes<9>;
using Pointer = Bytes<22>;

template <std::size_t size>
std::string_view view(const Bytes<size>& bytes) {
  return {bytes.data(), size};
}

// Returns the bytes as hexadecimal digits, for messages that name a key.
std::string hex(std::string_view bytes);

JobKey job_key(JobId id);
PieceKey piece_key(JobId id, std::uint32_t number);
UnfinishedKey unfinished_key(JobId id);
StoryKey story_key(JobId id);
LeaseKey lease_key(JobId id);
// Throws StoreDamage if `key` is not a lease's.
JobId job_of_lease_key(std::string_view key);
inline constexpr std::string_view kLeaseKeys = "l";
inline constexpr std::string_view kLeaseKeysEnd = "m";
// Throws StoreDamage if `key` is not an unfinished body's.
JobId job_of_unfinished_key(std::string_view key);
inline constexpr std::string_view kUnfinishedKeys = "u";
inline constexpr std::string_view kUnfinishedKeysEnd = "v";
TubeKey tube_key(std::uint32_t number);
// Throws StoreDamage if `key` is not a tube's.
std::uint32_t tube_of_key(std::string_view key);
// All tube keys are >= the first and < the second of these.
inline constexpr std::string_view kTubeKeys = "t";
inline constexpr std::string_view kTubeKeysEnd = "u";
inline constexpr std::string_view kWatermarksKey = "w";
// All keys of endpoints are >= the first and < the second of these; the name follows the first.
inline constexpr std::string_view kEndpointKeys = "p";
inline constexpr std::string_view kEndpointKeysEnd = "q";
inline std::string endpoint_key(std::string_view name) {
  return std::string(kEndpointKeys).append(name);
}

// REQUIRES: the key has 1 to kMaxKey bytes.
std::string key_key(std::uint32_t tube, std::string_view key);
std::string ended_key_key(const KeyRecord& key);
// All keys of the latter kind are >= the first and < the second of these.
inline constexpr std::string_view kEndedKeys = "e";
inline constexpr std::string_view kEndedKeysEnd = "f";
// Returns what `ended_key` says of its key: tube, key and until. Throws StoreDamage if it is no
// such key.
KeyRecord key_of_ended_key(std::string_view ended_key);

// No due time, burial or id in an index key is larger.
inline constexpr std::uint64_t kLast = UINT64_MAX;
IndexKey due_index_key(std::uint32_t tube, UtcMs due, JobId id);
IndexKey burial_index_key(std::uint32_t tube, std::uint64_t burial, JobId id);
IndexKey index_key_of(const JobRecord& job);
// Sets what an index key says of its job: the id, the tube, and the due time or the burial. Returns
// false if `key` is no index key.
bool set_job_of_key(std::string_view key, JobRecord& job);

Pointer encode_pointer(const IndexKey& key);
// Returns the index key, which is a view into `value`. Throws StoreDamage if `value` is no pointer.
std::string_view decode_pointer(JobId id, std::string_view value);

}  // namespace carillon::queue
