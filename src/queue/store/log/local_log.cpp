// Segments and windows: where a record goes, and what can be read again.

#include "queue/store/log/local_log.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

#include "carillon/queue/store.h"
#include "carillon/require.h"

namespace carillon::queue {

namespace {

std::uint64_t random_life() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random() | 1;
}

// Removes what an interrupted make() has left: a log without any record.
void remove_empty(const base::Directory& directory, const std::string& name) {
  const LogSegment segment = LogSegment::open(directory, name, LogWrites::kBuffered);
  const bool began = segment.serial() > 1 || segment.first() > 1;
  if (began || segment.is_written_from(segment.read(), 1))
    throw StoreError("the directory " + directory.path() + " has a log, in " + name +
                     ", and no state: the files of the state are gone");
  directory.unlink(name);
}

NewestFile::Segment newest_of(const LogSegment& segment) {
  return {.life = segment.use().life,
          .serial = segment.serial(),
          .number = LogSegment::number_of(segment.name()).value_or(0)};
}

// Calls `each` for the names in the directory.
template <typename Each>
void for_each_name(const base::Directory& directory, Each&& each) {
  std::vector<std::string> names;
  if (const int error = directory.list(names); error != 0) {
    throw StoreError("the log in " + directory.path() +
                     " cannot be read: " + std::generic_category().message(error));
  }
  for (const std::string& name : names) each(name);
}

}  // namespace

// --- Opening and reading.

// A state that has no log is refused when it is opened: its newest changes were lost. So a log has
// a segment from the beginning, with only a header, and newest.data, which names it.
void LocalLog::make(const base::Directory& directory, std::uint64_t identity,
                    const LogPosition& after) {
  for_each_name(directory, [&](const std::string& name) {
    if (LogSegment::number_of(name)) remove_empty(directory, name);
  });
  LogSegment segment =
      LogSegment::make(directory, LogSegment::name_of(1), identity, 1, LogWrites::kBuffered);
  segment.begin({.life = random_life(),
                 .serial = 1,
                 .first = after.number + 1,
                 .before = chain_of(after.mark).value_or(0)});
  segment.write_header();
  NewestFile::make(directory, identity, newest_of(segment));
}

LocalLog::LocalLog(const base::Directory& directory, std::uint64_t identity,
                   const LocalLogOptions& options)
    : directory_(directory), identity_(identity), options_(options), life_(random_life()) {}

LocalLog::~LocalLog() {
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (making_thread_.joinable()) making_thread_.join();
}

void LocalLog::read(const LogPosition& after, const Each& each) {
  CARILLON_REQUIRE(reader_ == nullptr && !newest_ && last_ == 0, after.number, last_);
  for_each_name(directory_, [this](const std::string& name) {
    if (!name.ends_with(LogSegment::kUnfinished)) return;
    const std::string_view made(name.data(), name.size() - LogSegment::kUnfinished.size());
    if (LogSegment::number_of(made)) directory_.unlink(name);
  });
  LogReader reader(directory_, identity_, options_.boot, LogReader::Damage::kThrow,
                   options_.writes);
  reader_ = &reader;
  reader.read(after, each);
  reader_ = nullptr;
  reader.make_durable();
  newest_.emplace(directory_, identity_);
  take_over(reader);
}

void LocalLog::take_over(LogReader& reader) {
  const Lock lock(mutex_);
  last_ = handed_ = durable_ = reader.last();
  chain_ = reader.chain();
  dropped_ = reader.dropped();
  used_ = std::move(reader.used());
  free_ = std::move(reader.unused());
  free_.remove_if([this](const LogSegment& segment) {
    return segment.blocks() != usual_blocks() && directory_.unlink(segment.name()) == 0;
  });
  for (const Segments* segments : {&used_, &free_}) {
    for (const LogSegment& segment : *segments)
      last_file_ = std::max(last_file_, LogSegment::number_of(segment.name()).value_or(0));
  }
  for (const LogSegment& segment : used_) used_bytes_ += segment.bytes();
  last_serial_ = used_.back().serial();
}

std::optional<std::string> LocalLog::mark() const {
  if (reader_ != nullptr) return mark_of(reader_->chain());
  const Lock lock(mutex_);
  return mark_of(chain_);
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

// Makes sure that the open window and a change of `bytes` bytes fit into memory and into a free
// segment.
void LocalLog::make_room(std::size_t bytes, Lock& lock) {
  while (true) {  // another thread may close the window while this one does without the lock
    const std::size_t window = open_.bytes() + LogWindow::bytes_of(bytes);
    const std::size_t blocks = log_blocks(window);
    if (!open_.empty() && 1 + blocks > usual_blocks()) {
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

// Opens a segment in which a record of `blocks` blocks has room, waits for the one that is being
// made, or makes one.
void LocalLog::add_free_segment(std::size_t blocks, Lock& lock) {
  for (LogSegment& segment : free_) {
    if (1 + blocks <= segment.blocks()) return segment.open_to_write();
  }
  const auto wanted = std::max(usual_blocks(), static_cast<std::uint32_t>(1 + blocks));
  if (wants_segment_ && wanted == usual_blocks())
    return changed_.wait(lock, [this] { return !wants_segment_; });
  const std::size_t open = used_.empty() ? 0 : used_.back().bytes();  // cannot be trimmed
  if (used_bytes_ - open >= options_.most_bytes) {
    throw StoreError("the log in " + directory_.path() + " is full: " +
                     std::to_string(used_bytes_) + " bytes of it are still needed, and it may " +
                     "have " + std::to_string(options_.most_bytes));
  }
  const std::uint64_t number = ++last_file_;
  lock.unlock();
  Segments made;
  try {
    made.push_back(make_segment(wanted, number));
  } catch (const LogSegment::Shortage&) {
    throw;  // nothing has changed
  } catch (const StoreError& why) {
    lock.lock();
    fail(why);
  }
  lock.lock();
  free_.splice(free_.end(), made);
}

std::uint32_t LocalLog::usual_blocks() const {
  return static_cast<std::uint32_t>(options_.segment_bytes / kLogBlock);
}

LogSegment LocalLog::make_segment(std::uint32_t blocks, std::uint64_t number) const {
  return LogSegment::make(directory_, LogSegment::name_of(number), identity_, blocks,
                          options_.writes);
}

// An append that finds no segment waits for a disk that may take seconds. So does an append that
// must write the window first, because it is full. While this returns false, the owner lets nobody
// append, and does other things; writing the window is one of them. It returns true only if one
// segment has room for the change, in one record with the window or without it.
bool LocalLog::has_room() const {
  constexpr std::size_t kEnough = 128 << 10;  // for what a command appends, most of the time
  const Lock lock(mutex_);
  if (!failure_.empty()) return true;
  const std::size_t blocks =
      log_blocks(open_.bytes() + std::min(kEnough, options_.segment_bytes / 4));
  if (1 + blocks > usual_blocks()) return false;
  if (next_block_ != 0 && next_block_ + blocks <= used_.back().blocks()) return true;
  return !free_.empty() || !wants_segment_;
}

// --- The thread that makes segments.

// Asks the thread to make a segment if none is free.
void LocalLog::make_ahead() {
  if (!making_thread_runs_ || !free_.empty()) return;
  wants_segment_ = true;
  changed_.notify_all();
}

// A segment that cannot be made is no failure yet: the append that needs it tries again.
void LocalLog::run() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || wants_segment_; });
    if (closing_) return;
    const std::uint64_t number = ++last_file_;
    lock.unlock();
    Segments made;
    try {
      made.push_back(make_segment(usual_blocks(), number));
    } catch (const std::exception&) {
      made.clear();
    }
    lock.lock();
    free_.splice(free_.end(), made);
    wants_segment_ = false;
    changed_.notify_all();
  }
}

// Without the thread, an append makes the segment that it needs.
void LocalLog::begin_thread() {
  if (making_thread_.joinable()) return;
  try {
    making_thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return;
  }
  const Lock lock(mutex_);
  making_thread_runs_ = true;
}

// --- Again the thread that appends.

LogNumber LocalLog::last() const {
  const Lock lock(mutex_);
  return last_;
}

std::size_t LocalLog::bytes() const {
  const Lock lock(mutex_);
  return used_bytes_ + open_.bytes();
}

// The last segment that holds a record is never trimmed: it says which change was durable.
void LocalLog::trim(const LogPosition& flushed) {
  const LogNumber number = flushed.number;
  Segments odd;
  begin_thread();
  {
    const Lock lock(mutex_);
    CARILLON_REQUIRE(number <= durable_, number, durable_);
    while (used_.size() > 1 && std::next(used_.begin())->first() <= std::min(number + 1, handed_)) {
      LogSegment& first = used_.front();
      first.close();
      used_bytes_ -= first.bytes();
      Segments& to = first.blocks() == usual_blocks() ? free_ : odd;
      to.splice(to.end(), used_, used_.begin());
    }
    make_ahead();
  }
  for (const LogSegment& segment : odd) directory_.unlink(segment.name());
}

// A free segment that is open stays: an append may count on it. newest.data names no free segment,
// because the newest one is never trimmed.
void LocalLog::give_back() {
  Segments gone;
  {
    const Lock lock(mutex_);
    for (auto at = free_.begin(); at != free_.end() && free_.size() > 1;) {
      const auto segment = at++;
      if (!segment->is_open()) gone.splice(gone.end(), free_, segment);
    }
  }
  for (const LogSegment& segment : gone) directory_.unlink(segment.name());
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
// next segment. The segment cannot be trimmed meanwhile: that needs a flush of the state, which
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
  std::uint32_t checksum = 0;
  or_fail(lock, [&] { checksum = write_closed(*writing); });
  lock.lock();
  handed_ = writing->last;
  chain_ = checksum;
  handed_to_ = writing->segment;
  if (writing->before != nullptr) writing->before->close();
  if (options_.writes == LogWrites::kDurable) durable_ = handed_;
}

std::uint32_t LocalLog::write_closed(const Writing& writing) {
  if (writing.before != nullptr) writing.before->sync();
  if (writing.block == 1) {
    writing.segment->write_header();
    newest_->write(newest_of(*writing.segment));
  }
  return writing.segment->write(closed_.data(), writing.size, writing.block);
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

// Closes the open window and chooses its blocks, in a new segment if it must. Returns nothing if
// the window is empty.
std::optional<LocalLog::Writing> LocalLog::close_window() {
  if (open_.empty()) return std::nullopt;
  closed_.clear();
  std::swap(open_, closed_);
  Writing writing{.last = last_};
  const LogNumber first = last_ - closed_.count() + 1;
  const std::size_t blocks = log_blocks(closed_.bytes());
  if (next_block_ == 0 || next_block_ + blocks > used_.back().blocks())
    writing.before = roll(blocks, first);
  writing.size = closed_.finish({.first = first, .durable = durable_, .before = chain_});
  writing.segment = &used_.back();
  writing.block = next_block_;
  next_block_ += static_cast<std::uint32_t>(blocks);
  return writing;
}

// Goes on in a free segment. Returns the segment before, which must be made durable first: after a
// crash of the machine only the last segment may have lost anything.
LogSegment* LocalLog::roll(std::size_t blocks, LogNumber first) {
  const auto fits = [blocks](const LogSegment& segment) {
    return segment.is_open() && 1 + blocks <= segment.blocks();
  };
  const auto found =
      std::find_if(free_.begin(), free_.end(), fits);  // append() has made sure of it
  LogSegment* const before = used_.empty() ? nullptr : &used_.back();
  used_.splice(used_.end(), free_, found);  // throws nothing: a closed window must be written
  used_bytes_ += used_.back().bytes();
  used_.back().begin({.life = life_,
                      .life_before = before == nullptr ? 0 : before->use().life,
                      .boot = options_.boot,
                      .serial = ++last_serial_,
                      .first = first,
                      .before = chain_});
  next_block_ = 1;
  make_ahead();
  return before;
}

}  // namespace carillon::queue
