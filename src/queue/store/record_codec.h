// How jobs, tubes and watermarks are written as keys and values of a sorted store.
//
// Keys are big-endian, so that their bytes sort as their numbers do; values are little-endian,
// after a version byte.
//
//   family    key        value
//   jobs      id:u64     version place
//   index     place      version priority:u32 due:u64 burial:u64 ttr:u64 delay:u64 created:u64 body_bytes:u32
//                                reserves:u32 timeouts:u32 releases:u32 buries:u32 kicks:u32
//   bodies    id:u64     the body
//   default   't' n:u32  version scheduled:u64 buried:u64 name:bytes            (tube number n)
//   default   'w'        version next_id:u64 next_burial:u64 time:u64           (the watermarks)
//   default   'j'        version identity:u64 number:u64                        (the journal, and how far it is applied)
//
//   place  := 'd' tube:u32 due:u64 id:u64       a job that is not buried, in its tube's order of due times
//           | 'b' tube:u32 burial:u64 id:u64    a buried one, in its tube's order of burials
//
// Example: job 5 of tube 1, due at 1'000 ms, is under 64 00000001 00000000000003e8
// 0000000000000005.
//
// Decoding throws StoreError for a value that is not as written above, and names its key.
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
using Place = Bytes<21>;
using TubeKey = Bytes<5>;

inline constexpr std::uint8_t kRecordVersion = 1;

template <std::size_t size>
std::string_view view(const Bytes<size>& bytes) {
  return {bytes.data(), size};
}

JobKey job_key(JobId id);
TubeKey tube_key(std::uint32_t number);
inline constexpr std::string_view kTubeKeys = "t";     // where they begin
inline constexpr std::string_view kTubeKeysEnd = "u";  // and end
inline constexpr std::string_view kWatermarksKey = "w";

Place due_place(std::uint32_t tube, UtcMs due, JobId id);
Place burial_place(std::uint32_t tube, std::uint64_t burial, JobId id);
Place place_of(const JobRecord& job);

Bytes<69> encode_job(const JobRecord& job);
JobRecord decode_job(std::string_view place, std::string_view value);

Bytes<22> encode_where(const Place& place);
std::string_view decode_where(JobId id, std::string_view value);  // the place, within `value`

std::string encode_tube(const TubeRecord& tube);
TubeRecord decode_tube(std::string_view key, std::string_view value);

// Which journal belongs to the database, and the number of its last record whose changes are in the
// database.
struct JournalNote {
  std::uint64_t identity = 0;
  std::uint64_t number = 0;

  friend bool operator==(const JournalNote&, const JournalNote&) = default;
};
inline constexpr std::string_view kJournalKey = "j";

Bytes<17> encode_journal_note(const JournalNote& note);
JournalNote decode_journal_note(std::string_view value);

Bytes<25> encode_watermarks(const Watermarks& watermarks);
Watermarks decode_watermarks(std::string_view value);

}  // namespace carillon::queue
