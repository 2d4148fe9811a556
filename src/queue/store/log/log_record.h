// The bytes of a record of a local log: how a window is written, and how a reader sees whether a
// record is whole.
//
//   record := checksum:u32 changes:u32 size:u32 count:u32 first:u64 durable:u64 before:u32
//             zero:u32 (size:u32 change)*
//
// `changes` is the CRC-32C of the changes, and `checksum` that of all that follows it in the head,
// seeded with the life, the serial number of the segment and the block (log_segment.h). `before` is
// the checksum of the record before: so a record says which history it continues.
//
// On the disk a record lies in sectors of 512 bytes, each of which ends with a *stamp* of 4 bytes:
// 508 bytes of the record, the stamp, the next 508 bytes. The stamp belongs to this use of the
// segment, and a disk writes a sector whole or not at all. So a reader can tell a sector that was
// not written from one whose bits have changed. A record that lacks a sector was cut short by a
// crash, before anybody knew that it was durable. A record that has all its sectors, but fails its
// checksum, is damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "carillon/queue/log.h"

namespace carillon::queue {

inline constexpr std::size_t kLogBlock = 4096;
inline constexpr std::size_t kLogSector = 512;
inline constexpr std::size_t kLogStamp = sizeof(std::uint32_t);
inline constexpr std::size_t kLogSectorBytes =
    kLogSector - kLogStamp;  // bytes of a record in a sector

// What stands in front of the changes of a window.
struct LogRecordHead {
  std::uint32_t checksum = 0;
  std::uint32_t changes = 0;
  std::uint32_t size = 0;    // bytes of the changes, each with its size in front
  std::uint32_t count = 0;   // changes
  LogNumber first = 0;       // number of the first change
  LogNumber durable = 0;     // number of the last change that was durable before
  std::uint32_t before = 0;  // checksum of the record before; 0: this is the first
  std::uint32_t zero = 0;

  LogNumber last() const { return first + count - 1; }
};
static_assert(sizeof(LogRecordHead) == 40);

// Where byte `at` of a record lies, behind the stamps before it.
constexpr std::size_t log_offset(std::size_t at) {
  return at + at / kLogSectorBytes * kLogStamp;
}

// These return the sectors, and the blocks, that a record with `size` bytes of changes takes.
constexpr std::size_t log_sectors(std::size_t size) {
  return (sizeof(LogRecordHead) + size + kLogSectorBytes - 1) / kLogSectorBytes;
}
constexpr std::size_t log_blocks(std::size_t size) {
  return (log_sectors(size) * kLogSector + kLogBlock - 1) / kLogBlock;
}

// What belongs to one place in one use of a segment: where a record's checksum begins, and the
// stamp of its sectors.
struct LogPlace {
  std::uint64_t life = 0;
  std::uint64_t serial = 0;
  std::uint64_t block = 0;

  std::uint32_t stamp() const;
};

// Stamps the record at `bytes`, whose head and changes stand there in sectors, and sets its two
// checksums. Returns `checksum`.
std::uint32_t seal_log_record(char* bytes, const LogPlace& place);

// What is found where a record could begin.
enum class LogFound : std::uint8_t {
  kNothing,  // no record was written here in this use of the segment
  kTorn,     // the beginning of a record: some sectors were not written
  kDamage,   // a record that was written whole, and has changed since
  kRecord,
};
struct LogRecord {
  LogRecordHead head;
  std::string changes;
};
// Reads the record at the beginning of `bytes`, which go on to the end of the segment. Sets
// `record` if it finds a whole one; if the record is torn, only the head.
LogFound find_log_record(std::string_view bytes, const LogPlace& place, LogRecord& record);

// Returns whether any of the sectors was written in this use of the segment.
bool has_log_stamp(std::string_view bytes, const LogPlace& place);

// Calls `each` for the changes of a record. Returns false if they are not as the head says.
bool for_each_change(const LogRecord& record, const Log::Each& each);

}  // namespace carillon::queue
