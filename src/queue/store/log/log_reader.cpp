// The walk through the segments: one record after the other, each checked against the one before.

#include "queue/store/log/log_reader.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "carillon/queue/store.h"
#include "carillon/require.h"
#include "queue/store/state/data_directory.h"

namespace carillon::queue {

namespace {

constexpr LogNumber kNoEnd = std::numeric_limits<LogNumber>::max();

}  // namespace

// A segment that is being read.
struct LogReader::Walk {
  Walk(const LogSegment& of, LogNumber before) : segment(of), end(before) {}

  const LogSegment& segment;
  const LogNumber end;  // the first change of the next segment
  LogSegment::Bytes bytes;
  bool read_again = false;
  std::uint32_t block = 1;
  LogRecord record;
  std::uint32_t end_of_records = 1;  // behind the last record that counts
  // The first place behind that block where no whole record is.
  std::optional<LogFound> fault;
  std::uint32_t fault_block = 0;
  std::size_t behind_gap = 0;  // whole records that are left out

  bool is_last() const { return end == kNoEnd; }
};

LogReader::LogReader(const base::Directory& directory, std::uint64_t identity, std::uint64_t boot,
                     Damage damage, LogWrites writes)
    : directory_(directory), identity_(identity), boot_(boot), on_damage_(damage) {
  open_segments(writes);
  refuse_two_of_one_serial();
}

void LogReader::damaged(const std::string& what) {
  if (on_damage_ == Damage::kThrow) throw StoreError(what + salvage_hint(directory_.path()));
  damage_.push_back(what);
}

void LogReader::open_segments(LogWrites writes) {
  std::vector<std::string> names;
  if (const int error = directory_.list(names); error != 0) {
    throw StoreError("the log in " + directory_.path() +
                     " cannot be read: " + std::generic_category().message(error));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!LogSegment::number_of(name)) continue;
    try {
      Segments opened;
      opened.push_back(LogSegment::open(directory_, name, writes));
      const LogSegment& segment = opened.front();
      if (segment.identity() != identity_)
        throw StoreError("the log's file " + segment.path() +
                         " does not belong to this data directory");
      Segments& to = segment.serial() == 0 ? unused_ : used_;
      to.splice(to.end(), opened);
    } catch (const StoreError& why) {
      end_is_sure_ = false;
      damaged(why.what());
    }
  }
  used_.sort([](const LogSegment& a, const LogSegment& b) { return a.serial() < b.serial(); });
}

void LogReader::refuse_two_of_one_serial() {
  const auto twice = std::adjacent_find(
      used_.begin(), used_.end(),
      [](const LogSegment& a, const LogSegment& b) { return a.serial() == b.serial(); });
  if (twice == used_.end()) return;
  damaged("the log has two files with the serial number " + std::to_string(twice->serial()) + ", " +
          twice->path() + " and " + std::next(twice)->name() +
          ": one of them is of another time or of a copy of this directory");
}

// Runs before a start reads anything: what it applies may be written to files.
void LogReader::check_newest() {
  try {
    const NewestFile::Segment newest = NewestFile::read(directory_, identity_);
    leave_out_copy(newest);
    if (end_is_sure_) compare(newest);
  } catch (const StoreError& why) {
    end_is_sure_ = false;
    damaged(why.what());
  }
}

// Changes that a copy of the directory has made belong to another history.
void LogReader::leave_out_copy(const NewestFile::Segment& newest) {
  used_.remove_if([&](const LogSegment& segment) {
    if (segment.serial() != newest.serial || segment.use().life == newest.life) return false;
    damaged("the log's newest file " + segment.path() +
            " is of a copy of this directory, or of another time: it has the serial number " +
            std::to_string(newest.serial) + ", as " + NewestFile::kName +
            " says, but was not written by the same run of the server");
    end_is_sure_ = false;
    return true;
  });
}

void LogReader::compare(const NewestFile::Segment& newest) const {
  const auto serial = [](const LogSegment& segment) {
    return segment.name() + " with " + std::to_string(segment.serial());
  };
  const std::string says = directory_.path_of(NewestFile::kName) + " says that it is " +
                           LogSegment::name_of(newest.number) + " with the serial number " +
                           std::to_string(newest.serial);
  bool is_there = false;
  LogRecord any;
  for (const LogSegment& segment : used_) {
    if (segment.serial() > newest.serial &&
        segment.find(segment.read(), 1, any) != LogFound::kNothing)
      throw StoreError("the log has a file that is newer than its newest one: " + says +
                       ", and there is " + serial(segment) +
                       ": one of the two is of another time, or of a copy of this directory");
    is_there = is_there || segment.serial() == newest.serial;
  }
  if (!is_there)
    throw StoreError("the log's newest file is gone: " + says + ", and the last one there is " +
                     serial(used_.back()));
}

std::string mark_of(std::uint32_t chain) {
  std::string mark(8, '\0');  // the last four bytes are not used
  std::memcpy(mark.data(), &chain, sizeof chain);
  return mark;
}

bool is_of_files(std::string_view mark) {
  return mark.empty() || mark.size() == mark_of(0).size();
}

std::optional<std::uint32_t> chain_of(std::string_view mark) {
  if (mark.empty()) return std::nullopt;
  if (!is_of_files(mark)) {
    throw StoreError(
        "this is the directory of a node of a cluster, whose log lies elsewhere: it needs "
        "--cluster; or carillon check --data DIR --salvage NEW makes a directory of a server of "
        "its own from it");
  }
  std::uint32_t chain = 0;
  std::memcpy(&chain, mark.data(), sizeof chain);
  return chain;
}

void LogReader::read(const LogPosition& start, const Log::Each& each) {
  CARILLON_REQUIRE(!has_read_, start.number);
  has_read_ = true;
  start_ = last_ = start.number;
  chain_ = chain_of(start.mark);
  if (used_.empty()) {
    damaged("the log in " + directory_.path() + " is gone: there is no file jobs-N.data of it, " +
            "and these files hold the newest jobs");
    add_gap(0);
    return;
  }
  check_newest();
  for (auto segment = used_.begin(); segment != used_.end(); ++segment) {
    const auto next = std::next(segment);
    const LogSegment* const after = next == used_.end() ? nullptr : &*next;
    if (after == nullptr || after->first() > start_ + 1) read_segment(*segment, after, each);
  }
  refuse_if_behind();
  // The missing segment may be the last one, if a file cannot be opened, belongs to another log, or
  // is gone.
  if (!end_is_sure_ || (!damage_.empty() && gaps_.empty())) add_gap(0);
}

// Throws if the log ends too early: changes before the start were durable in the log once, and
// changes that a header or a record calls durable must have been read.
void LogReader::refuse_if_behind() {
  if (durable_ > last_) missing(directory_.path(), durable_);
  if (start_ <= durable_) return;
  damaged("the log in " + directory_.path() + " is damaged or of another time: it ends at change " +
          std::to_string(durable_) + ", and the state has change " + std::to_string(start_));
}

// Reports that the changes behind last_ are missing, up to `to`.
void LogReader::missing(const std::string& where, LogNumber to) {
  add_gap(to);
  damaged("the log " + where + " is damaged: change " + std::to_string(last_ + 1) +
          ", which was durable, is missing");
}

void LogReader::add_gap(LogNumber to) {
  if (!gaps_.empty() && gaps_.back().first == last_ + 1) return;
  gaps_.push_back({.first = last_ + 1, .last = to});
}

void LogReader::read_segment(const LogSegment& segment, const LogSegment* next,
                             const Log::Each& each) {
  Walk walk(segment, next == nullptr ? kNoEnd : next->first());
  durable_ = std::max(durable_, segment.first() - 1);
  if (segment.first() == last_ + 1) {
    if (chain_.value_or(segment.use().before) != segment.use().before)
      damaged("the log's file " + segment.path() + " does not continue the log: it is of a copy " +
              "of this directory, or of another time");
    chain_ = segment.use().before;
  }
  if (segment.first() > last_ + 1) {
    missing(segment.path(), segment.first() - 1);
    chain_.reset();
    last_ = segment.first() - 1;
  }
  try {
    walk.bytes = segment.read();
    while (last_ + 1 < walk.end && walk.block < segment.blocks()) {
      const LogFound found = find(walk);
      if (found == LogFound::kNothing) break;
      if (found != LogFound::kRecord) {
        ++walk.block;
        continue;
      }
      ++records_;
      walk.block += static_cast<std::uint32_t>(log_blocks(walk.record.head.size));
      take(walk, each);
    }
    end_segment(walk);
  } catch (const StoreError& why) {
    if (on_damage_ == Damage::kThrow) throw;
    damaged(why.what());
  }
  if (next != nullptr) return check_follows(segment, *next);
  last_bytes_ = std::move(walk.bytes);
  last_end_ = walk.end_of_records;
}

// Finds what is at walk.block, and remembers the first place that holds no whole record. If the
// check fails, the bytes are read once more.
LogFound LogReader::find(Walk& walk) {
  const auto look = [&walk] {
    const LogFound found = walk.segment.find(walk.bytes, walk.block, walk.record);
    const bool torn =
        found == LogFound::kNothing && walk.segment.is_written_from(walk.bytes, walk.block);
    return torn ? LogFound::kTorn : found;
  };
  LogFound found = look();
  const bool fails = found == LogFound::kTorn || found == LogFound::kDamage;
  if (fails && !std::exchange(walk.read_again, true)) {
    walk.bytes = walk.segment.read_from_disk();
    found = look();
  }
  if (found != LogFound::kRecord && found != LogFound::kNothing && !walk.fault) {
    walk.fault = found;
    walk.fault_block = walk.block;
  }
  return found;
}

// Takes a whole record: calls `each` for those of its changes that are new.
void LogReader::take(Walk& walk, const Log::Each& each) {
  const LogRecordHead& head = walk.record.head;
  if (head.first > last_ + 1) return take_behind_gap(walk, each);
  check_chain(walk);
  walk.fault.reset();  // what is damaged there is not needed any more
  walk.end_of_records = walk.block;
  durable_ = std::max(durable_, head.last());
  if (head.last() < last_) return;
  chain_ = head.checksum;
  const bool whole = for_each_change(walk.record, [&](LogNumber number, std::string_view change) {
    if (number <= last_) return;
    last_ = number;
    each(number, change);
  });
  if (!whole) damaged("the log's file " + walk.segment.path() + " is damaged");
}

// Checks that the history is the known one: a record with the last known change must have the known
// checksum, or the next record must name it.
void LogReader::check_chain(const Walk& walk) {
  const LogRecordHead& head = walk.record.head;
  if (!chain_ || head.last() < last_ || last_ == 0) return;
  const bool fits = head.first == last_ + 1 ? head.before == *chain_ : head.checksum == *chain_;
  if (fits) return;
  damaged("the log's file " + walk.segment.path() + " is of another history: its change " +
          std::to_string(std::min(head.first, last_ + 1)) +
          " does not follow the changes before it");
}

// If the machine crashes before all writes have reached the disk, a record may be left behind a
// gap.
void LogReader::take_behind_gap(Walk& walk, const Log::Each& each) {
  const LogRecordHead& head = walk.record.head;
  const bool same_boot = boot_ != 0 && walk.segment.use().boot == boot_;
  const bool lost = walk.is_last() && !same_boot && walk.fault != LogFound::kDamage;
  if (lost && head.durable <= last_) {
    ++walk.behind_gap;
    return;
  }
  missing(walk.segment.path(), head.first - 1);
  chain_.reset();
  last_ = head.first - 1;
  take(walk, each);
}

void LogReader::end_segment(const Walk& walk) {
  if (!walk.is_last() && last_ + 1 < walk.end) {
    missing(walk.segment.path(), walk.end - 1);
    chain_.reset();
    last_ = walk.end - 1;
    return;
  }
  if (!walk.fault || last_ + 1 >= walk.end) return;
  const std::string where = "the log's file " + walk.segment.path();
  const std::string change = "change " + std::to_string(last_ + 1);
  if (walk.fault == LogFound::kDamage) {
    add_gap(0);
    return damaged(where + " is damaged: the record of " + change + ", at block " +
                   std::to_string(walk.fault_block) +
                   ", was written whole and is not as it was written");
  }
  std::string what = where + ": the record of " + change + " was cut short by a crash";
  if (walk.behind_gap > 0)
    what += "; so were left out " + std::to_string(walk.behind_gap) + " records behind it";
  dropped_.push_back(what + ". Nobody was told that they were durable");
}

// Each segment continues the one with the serial number before. Both have the same life of the log,
// or the second one's life began when the log was opened with the first one as its last.
void LogReader::check_follows(const LogSegment& segment, const LogSegment& next) {
  const bool same_life = next.use().life == segment.use().life;
  if (next.serial() == segment.serial() + 1 &&
      (same_life || next.use().life_before == segment.use().life))
    return;
  damaged("the log's file " + next.path() + " does not follow " + segment.name() +
          ": it is of a copy of this directory, or of another time");
}

void LogReader::make_durable() const {
  if (!used_.empty()) used_.back().make_durable(last_bytes_, last_end_);
}

}  // namespace carillon::queue
