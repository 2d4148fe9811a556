// Segments and windows: where a record goes, and what can be read again.

#include "queue/store/local_log.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "carillon/queue/store.h"

namespace carillon::queue {

namespace {

constexpr std::size_t kBlock = LogSegment::kBlock;
constexpr std::string_view kPrefix = "log-";
constexpr LogNumber kNoEnd = std::numeric_limits<LogNumber>::max();

// The number in a segment's name, or nothing if the file is no segment.
std::optional<std::uint64_t> file_number(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole ? std::optional(number) : std::nullopt;
}

// Calls `each` for the changes of a record. Returns false if they are not as the head says.
template <typename Each>
bool for_each_change(const LogSegment::Record& record, Each&& each) {
  std::string_view bytes = record.changes;
  for (std::uint32_t n = 0; n < record.head.count; ++n) {
    std::uint32_t size = 0;
    if (bytes.size() < sizeof size) return false;
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (bytes.size() < size) return false;
    each(record.head.first + n, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return bytes.empty();
}

}  // namespace

// --- Opening and reading.

LocalLog::LocalLog(std::string directory, std::uint64_t identity, const LocalLogOptions& options)
    : directory_(std::move(directory)), identity_(identity), options_(options) {
  open_segments();
}

LocalLog::~LocalLog() = default;

std::string LocalLog::path_of(std::uint64_t file) const {
  return directory_ + "/" + std::string(kPrefix) + std::to_string(file);
}

void LocalLog::open_segments() {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path path = entry->path();
    const std::string name = path.filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(LogSegment::kUnfinished))
      ::unlink(path.c_str());
    const auto number = file_number(name);
    if (!number) continue;
    last_file_ = std::max(last_file_, *number);
    LogSegment segment = LogSegment::open(path.string(), identity_, options_.writes);
    if (segment.serial() != 0) {
      used_bytes_ += segment.bytes();
      used_.push_back(std::move(segment));
    } else {
      ::unlink(path.c_str());  // it was never used
    }
  }
  if (error) throw StoreError("the log in " + directory_ + " cannot be read: " + error.message());
  used_.sort([](const LogSegment& a, const LogSegment& b) { return a.serial() < b.serial(); });
  if (!used_.empty()) last_serial_ = used_.back().serial();
}

void LocalLog::read(LogNumber after, const Each& each) {
  last_ = after;
  for (auto segment = used_.begin(); segment != used_.end(); ++segment) {
    const auto next = std::next(segment);
    const LogNumber end = next == used_.end() ? kNoEnd : next->first();
    if (end > after + 1) read_segment(*segment, end, each);
  }
  refuse_if_behind(after);
  handed_ = durable_ = last_;
}

// Changes up to `after` were durable in the log before anybody could say that they are not needed;
// and what a header or a record says was durable must have been read.
void LocalLog::refuse_if_behind(LogNumber after) const {
  if (known_durable_ > last_) missing(directory_);
  if (after <= known_durable_) return;
  throw StoreError(
      "the log in " + directory_ + " is damaged or of another time: it ends at change " +
      std::to_string(known_durable_) + ", and the state has change " + std::to_string(after));
}

// Reads the changes of a segment from last_ + 1 up to `end`, not included.
void LocalLog::read_segment(LogSegment& segment, LogNumber end, const Each& each) {
  const std::string bytes = segment.read();
  known_durable_ = std::max(known_durable_, segment.first() - 1);
  std::uint32_t block = 1;
  while (last_ + 1 < end && block < segment.blocks()) {
    const auto record = segment.record_at(bytes, block);
    if (!record) {  // the end, or damage to what is not needed any more
      ++block;
      continue;
    }
    block += static_cast<std::uint32_t>(LogSegment::blocks_for(record->head.size));
    // A crash may come before all writes have reached the disk, and leave a record behind a gap. It
    // is left out; but what it says was durable must be there.
    const bool behind_gap = record->head.first > last_ + 1;
    known_durable_ =
        std::max(known_durable_, behind_gap ? record->head.durable : record->head.last());
    if (behind_gap) continue;
    const bool whole = for_each_change(*record, [&](LogNumber number, std::string_view change) {
      if (number <= last_) return;
      each(number, change);
      last_ = number;
    });
    if (!whole) throw StoreError("the log " + segment.path() + " is damaged");
  }
  if (end != kNoEnd && last_ + 1 < end) missing(segment.path());
}

void LocalLog::missing(const std::string& where) const {
  throw StoreError("the log " + where + " is damaged: change " + std::to_string(last_ + 1) +
                   ", which was durable, is missing");
}

// --- The thread that appends.

void LocalLog::refuse_if_failed() const {
  if (!failure_.empty()) throw StoreError(failure_);
}

std::string LocalLog::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

LogNumber LocalLog::append(std::string_view change, const Apply& apply) {
  Lock lock(mutex_);
  refuse_if_failed();
  make_room(change.size(), lock);
  apply(last_ + 1);
  open_.append(change);
  return ++last_;
}

// Makes sure that the open window, with a change of so many bytes more, fits into memory and into a
// segment that is there.
void LocalLog::make_room(std::size_t bytes, Lock& lock) {
  while (true) {  // another thread may close the window while this one does without the lock
    const std::size_t window = open_.bytes() + LogWindow::bytes_of(bytes);
    const std::size_t blocks = LogSegment::blocks_for(window);
    if (!open_.empty() && (1 + blocks) * kBlock > options_.segment_bytes) {
      lock.unlock();  // only a single change may take a segment of its own
      write();
      lock.lock();
      refuse_if_failed();
      continue;
    }
    open_.reserve(bytes);
    if (has_room(blocks)) return;
    add_free_segment(blocks, lock);
    refuse_if_failed();
  }
}

bool LocalLog::has_room(std::size_t blocks) const {
  if (next_block_ != 0 && next_block_ + blocks <= used_.back().blocks()) return true;
  return std::any_of(free_.begin(), free_.end(), [blocks](const LogSegment& segment) {
    return segment.is_open() && 1 + blocks <= segment.blocks();
  });
}

// Opens or makes a segment that takes a record of so many blocks.
void LocalLog::add_free_segment(std::size_t blocks, Lock& lock) {
  for (LogSegment& segment : free_) {
    if (1 + blocks <= segment.blocks()) return segment.open_to_write();
  }
  const std::size_t wanted = std::max(options_.segment_bytes / kBlock, 1 + blocks);
  const std::size_t open = used_.empty() ? 0 : used_.back().bytes();  // cannot be trimmed
  if (used_bytes_ - open >= options_.most_bytes) {
    throw StoreError("the log in " + directory_ + " is full: " + std::to_string(used_bytes_) +
                     " bytes of it are still needed, and it may have " +
                     std::to_string(options_.most_bytes));
  }
  lock.unlock();
  Segments made;
  try {
    made.push_back(LogSegment::make(path_of(++last_file_), identity_,
                                    static_cast<std::uint32_t>(wanted), options_.writes));
  } catch (const LogSegment::Shortage&) {
    throw;  // nothing has changed
  } catch (const StoreError& why) {
    lock.lock();
    fail(why);
  }
  lock.lock();
  free_.splice(free_.end(), made);
}

LogNumber LocalLog::last() const {
  const Lock lock(mutex_);
  return last_;
}

std::size_t LocalLog::bytes() const {
  const Lock lock(mutex_);
  return used_bytes_ + open_.bytes();
}

// The last segment that holds a record is never trimmed: it says which change was durable.
void LocalLog::trim(LogNumber number) {
  Segments large;
  {
    const Lock lock(mutex_);
    while (used_.size() > 1 && std::next(used_.begin())->first() <= std::min(number + 1, handed_)) {
      LogSegment& first = used_.front();
      first.close();
      used_bytes_ -= first.bytes();
      Segments& to = first.bytes() > options_.segment_bytes ? large : free_;
      to.splice(to.end(), used_, used_.begin());
    }
  }
  for (const LogSegment& segment : large) ::unlink(segment.path().c_str());
}

// --- The thread that syncs.

LogNumber LocalLog::sync() {
  const std::lock_guard one_at_a_time(syncing_);
  write();
  Lock lock(mutex_);
  if (durable_ < handed_) sync_handed(lock);
  return durable_;
}

// Other windows may be written meanwhile: write() waits for the disk only when it goes on in the
// next segment. The segment stays, because a flush of the state, without which nothing is trimmed,
// waits for a sync() first.
void LocalLog::sync_handed(Lock& lock) {
  const LogNumber handed = handed_;
  const LogSegment& segment = *handed_to_;
  lock.unlock();
  {
    const std::lock_guard one_at_a_time(fdatasync_);
    or_fail(lock, [&] { segment.sync(); });
  }
  lock.lock();
  refuse_if_failed();
  durable_ = std::max(durable_, handed);
}

void LocalLog::write() {
  const std::lock_guard one_at_a_time(writing_);
  Lock lock(mutex_);
  refuse_if_failed();
  const std::optional<Writing> writing = close_window();
  if (!writing) return;
  lock.unlock();
  // Held until the segment before is closed: another thread may be about to sync it.
  std::unique_lock one_sync_at_a_time(fdatasync_, std::defer_lock);
  if (writing->before != nullptr) one_sync_at_a_time.lock();
  or_fail(lock, [&] { write_closed(*writing); });
  lock.lock();
  handed_ = writing->last;
  handed_to_ = writing->segment;
  if (writing->before != nullptr) writing->before->close();
  if (options_.writes == LogWrites::kDurable) durable_ = handed_;
}

void LocalLog::write_closed(const Writing& writing) {
  if (writing.before != nullptr) writing.before->sync();
  if (writing.block == 1) writing.segment->write_header();
  writing.segment->write(closed_.data(), writing.size, writing.block);
}

// After a failure nothing may be written behind the hole, so `failure_` is set before another
// thread may write.
template <typename Action>
void LocalLog::or_fail(Lock& lock, Action action) {
  try {
    action();
  } catch (const std::exception& why) {
    lock.lock();
    fail(why);
  }
}

void LocalLog::fail(const std::exception& why) {
  failure_ = why.what();
  throw StoreError(failure_);
}

// Closes the open window and finds its blocks, if need be in a new segment. Returns nothing if the
// window is empty.
std::optional<LocalLog::Writing> LocalLog::close_window() {
  if (open_.empty()) return std::nullopt;
  closed_.clear();
  std::swap(open_, closed_);
  Writing writing{.last = last_};
  const LogNumber first = last_ - closed_.count() + 1;
  const std::size_t blocks = LogSegment::blocks_for(closed_.bytes());
  if (next_block_ == 0 || next_block_ + blocks > used_.back().blocks())
    writing.before = roll(blocks, first);
  writing.size = closed_.finish({.first = first, .durable = durable_});
  writing.segment = &used_.back();
  writing.block = next_block_;
  next_block_ += static_cast<std::uint32_t>(blocks);
  return writing;
}

// Goes on in a free segment. Returns the one before, which is to be made durable first: after a
// crash of the machine only the last segment may have lost anything.
LogSegment* LocalLog::roll(std::size_t blocks, LogNumber first) {
  const auto fits = [blocks](const LogSegment& segment) {
    return segment.is_open() && 1 + blocks <= segment.blocks();
  };
  const auto found = std::find_if(free_.begin(), free_.end(), fits);  // append() has seen to it
  LogSegment* const before = used_.empty() ? nullptr : &used_.back();
  used_.splice(used_.end(), free_, found);  // throws nothing: a window that is closed is written
  used_bytes_ += used_.back().bytes();
  used_.back().begin(++last_serial_, first);
  next_block_ = 1;
  return before;
}

}  // namespace carillon::queue
