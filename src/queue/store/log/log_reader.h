// LogReader: reads a local log's files and verifies them. It writes nothing.
//
//   const base::Directory directory("carillon-data");
//   LogReader reader(directory, identity, boot);
//   reader.read({.number = 100, .mark = mark_of(0xabc)},
//               [](LogNumber number, std::string_view change) { ... });     // 101, 102, ...
//   if (!reader.damage().empty()) ...
//
// `carillon check` reads a log off line with Damage::kCollect: each damage is a line of damage(),
// and reading goes on behind it with the changes that are whole. A start uses Damage::kThrow. No
// other process may write to the log meanwhile.
//
// What is damage, and what a crash may leave
// - The last segment must be the one that newest.data names (newest_file.h). It is verified before
//   anything is read. A newer segment has no record: a crash came before newest.data was written.
// - A record is damaged if it was written whole and its checksum is wrong, or if it does not
//   continue the record before (log_record.h).
// - A crash may cut short the last record. A crash of the machine may also lose records that were
//   not durable, in any order, and so leave records behind a gap. They are left out, and listed in
//   dropped().
// - A gap is damage if a later record says that what is missing was durable; if it lies in a
//   segment that is not the last (each is durable before the next one begins); or if the machine
//   has not booted since: in that case every write is there, in order.
// - What fails a check is read once more, from the disk: a bit may have changed in memory.
//
// Memory: one segment. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/directory.h"
#include "carillon/queue/log.h"
#include "queue/store/log/log_segment.h"
#include "queue/store/log/newest_file.h"

namespace carillon::queue {

// The mark of a log in files (Log::mark()): the checksum of the last record. Each record contains
// the checksum of the record before, so it stands for all changes up to there. 0: there is no such
// record.
std::string mark_of(std::uint32_t chain);
// Returns true if the mark is of a log in files, or empty.
bool is_of_files(std::string_view mark);
// Returns nothing if the mark is empty. Throws StoreError if it is not of a log in files.
std::optional<std::uint32_t> chain_of(std::string_view mark);

class LogReader {
 public:
  enum class Damage : std::uint8_t { kThrow, kCollect };
  using Segments = std::list<LogSegment>;

  // Opens all segments of the log in `directory`, which must outlive the reader. `boot` identifies
  // the boot of the machine; 0: unknown. Throws StoreError if the directory cannot be listed; with
  // Damage::kThrow also if a segment cannot be opened, belongs to another log, or is there twice.
  LogReader(const base::Directory& directory, std::uint64_t identity, std::uint64_t boot,
            Damage damage = Damage::kCollect, LogWrites writes = LogWrites::kDurable);

  // Calls `each` for every whole change behind `start`, in order. With Damage::kThrow it throws
  // StoreError at the first damage. REQUIRES: it is called once.
  void read(const LogPosition& start, const Log::Each& each);

  // While `each` runs, and after read(): the last change that was read.
  LogNumber last() const { return last_; }
  std::uint32_t chain() const { return chain_.value_or(0); }
  std::size_t records() const { return records_; }  // whole ones, also those not needed any more
  // A line for each: what is damaged, and what was left out because a crash has left it so.
  const std::vector<std::string>& damage() const { return damage_; }
  const std::vector<std::string>& dropped() const { return dropped_; }
  // Changes that were durable and cannot be read, in order. `last` is 0 where nobody knows how many
  // there were.
  struct Gap {
    LogNumber first = 0;
    LogNumber last = 0;
  };
  const std::vector<Gap>& gaps() const { return gaps_; }

  // The segments that were used, in the order of their serial numbers, and files that were not.
  Segments& used() { return used_; }
  Segments& unused() { return unused_; }
  // Makes durable what was read. Only the last segment may have bytes that are not durable yet.
  // Throws StoreError.
  void make_durable() const;

 private:
  struct Walk;

  void open_segments(LogWrites writes);
  void refuse_two_of_one_serial();
  void check_newest();
  void leave_out_copy(const NewestFile::Segment& newest);
  void compare(const NewestFile::Segment& newest) const;
  void read_segment(const LogSegment& segment, const LogSegment* next, const Log::Each& each);
  LogFound find(Walk& walk);
  void take(Walk& walk, const Log::Each& each);
  void take_behind_gap(Walk& walk, const Log::Each& each);
  void check_follows(const LogSegment& segment, const LogSegment& next);
  void check_chain(const Walk& walk);
  void end_segment(const Walk& walk);
  void refuse_if_behind();
  void damaged(const std::string& what);
  void missing(const std::string& where, LogNumber to);
  void add_gap(LogNumber to);

  const base::Directory& directory_;
  const std::uint64_t identity_;
  const std::uint64_t boot_;
  const Damage on_damage_;
  Segments used_;
  Segments unused_;

  LogNumber start_ = 0;
  LogNumber last_ = 0;
  std::optional<std::uint32_t> chain_;  // nothing: not known
  LogNumber durable_ = 0;               // by what headers and records say
  std::size_t records_ = 0;
  std::vector<std::string> damage_;
  std::vector<std::string> dropped_;
  std::vector<Gap> gaps_;
  bool has_read_ = false;
  bool end_is_sure_ = true;       // the newest segment is among used_
  LogSegment::Bytes last_bytes_;  // of the last segment
  std::uint32_t last_end_ = 0;    // and the block behind its last record that counts
};

}  // namespace carillon::queue
