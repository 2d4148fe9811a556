// Windows, batches and records; the thread that writes; what a start does.

#include "queue/store/write_behind.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/rocks_store.h"
#include "queue/store/record_codec.h"

namespace carillon::queue {

namespace {

using rocksdb::WriteBatch;

constexpr const char* kFile = "/journal";

// The most bytes that a window may have and still go to the journal. For a larger one, a sync of
// the database's log costs as little.
constexpr std::size_t kLargestWindow = 32 << 10;

// A batch closes at N changes or M bytes, once all its changes are in records. At 125 % it is
// written immediately, even if some are not. Batches are large because each one wakes the writing
// thread: the scheduler then moves threads, and a client and a server that shared a processor no
// longer share it. They are not larger because a read may have to wait for a batch. The journal
// must have room for the records of two batches, for one more record, and for what is left over at
// its end.
constexpr std::size_t changes_for(std::size_t blocks) {
  return std::min<std::size_t>(blocks / 5, 800);
}
constexpr std::size_t bytes_for(std::size_t blocks) {
  return std::min<std::size_t>(blocks * 128, 512 << 10);
}
constexpr bool have_room(std::size_t blocks) {
  constexpr std::size_t kWindow = kLargestWindow / Journal::kBlock + 1;
  // Each takes the rest of a block more; the few bytes of its heads are as nothing.
  const std::size_t batch = changes_for(blocks) + bytes_for(blocks) / Journal::kBlock;
  return 2 * (batch * 5 / 4 + kWindow) + 2 * kWindow < blocks;
}
static_assert(have_room(kSmallestJournal / Journal::kBlock) &&
              have_room(kJournalBytes / Journal::kBlock) &&
              have_room(kLargestJournal / Journal::kBlock));

// A record is this, then entries (entries.h).
struct Head {
  std::uint64_t needs = 0;  // the database's count
};

Head head_of(const std::string& record) {
  Head head;
  std::memcpy(&head, record.data(), sizeof head);
  return head;
}

void put_note(const RocksDatabase& database, const JournalPosition& note, WriteBatch& batch) {
  batch.Put(database.family(kMeta), slice(kJournalKey), slice(encode_journal_position(note)))
      .PermitUncheckedError();
}

void apply(RocksDatabase& database, const std::string& record, const JournalPosition& note) {
  WriteBatch batch = database.batch(std::string_view(record).substr(sizeof(Head)));
  put_note(database, note, batch);
  database.write(batch);
}

// Brings over what the database lacks.
void apply_all(RocksDatabase& database, Journal& journal, JournalPosition note) {
  const std::vector<std::string> records = journal.take_recovered();
  // All of them before the first is applied, which adds to the count.
  for (const std::string& record : records) {
    if (record.size() >= sizeof(Head) && database.count() >= head_of(record).needs) continue;
    throw StoreError(database.message("is damaged: changes that had been synced are missing"));
  }
  for (const std::string& record : records) {
    ++note.number;
    apply(database, record, note);
  }
  database.sync();
  journal.release(note.number);
}

// Makes a journal, and then has the database say so, whatever should happen to its log.
JournalPosition take_up(RocksDatabase& database, const std::string& path, std::uint32_t blocks) {
  std::random_device random;
  const JournalPosition note{.identity = (std::uint64_t{random()} << 32) | random(), .number = 0};
  Journal::make(path, note.identity, blocks);
  WriteBatch change = database.batch();
  database.put_format(true, change);
  put_note(database, note, change);
  database.write(change);
  database.sync();
  database.flush(kMeta);
  return note;
}

// REQUIRES: all of it is in the database, durably.
void give_up(RocksDatabase& database, const std::string& path) {
  WriteBatch change = database.batch();
  database.put_format(false, change);
  change.Delete(database.family(kMeta), slice(kJournalKey)).PermitUncheckedError();
  database.write(change);
  database.sync();
  ::unlink(path.c_str());  // should it stay, nothing refers to it
}

}  // namespace

std::unique_ptr<WriteBehind> WriteBehind::open(RocksDatabase& database,
                                               const std::string& directory, std::size_t bytes) {
  if (bytes != 0 && (bytes < kSmallestJournal || bytes > kLargestJournal)) {
    throw StoreError("a journal cannot have " + std::to_string(bytes) + " bytes: from " +
                     std::to_string(kSmallestJournal) + " to " + std::to_string(kLargestJournal) +
                     " are allowed");
  }
  const auto blocks = static_cast<std::uint32_t>(bytes / Journal::kBlock);
  const std::string path = directory + kFile;
  JournalPosition note;
  std::unique_ptr<Journal> journal;
  if (const auto value = database.get(kMeta, kJournalKey)) {
    note = decode_journal_position(*value);
    journal = std::make_unique<Journal>(path, note.identity, note.number);
    apply_all(database, *journal, note);
    if (journal->blocks() != blocks) {
      journal.reset();
      give_up(database, path);
    }
  }
  if (blocks == 0) return nullptr;
  if (!journal) {
    note = take_up(database, path, blocks);
    journal = std::make_unique<Journal>(path, note.identity, note.number);
  }
  return std::unique_ptr<WriteBehind>(new WriteBehind(database, std::move(journal), note.identity));
}

WriteBehind::WriteBehind(RocksDatabase& database, std::unique_ptr<Journal> journal,
                         std::uint64_t identity)
    : database_(database),
      journal_(std::move(journal)),
      identity_(identity),
      changes_(changes_for(journal_->blocks())),
      bytes_(bytes_for(journal_->blocks())),
      record_(sizeof(Head), '\0'),
      begun_(journal_->last()),
      noted_(begun_),
      thread_([this] { run(); }) {}

WriteBehind::~WriteBehind() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  Lock lock(mutex_);
  try {
    settle(lock);
  } catch (const std::exception&) {
    // What was synced is in the journal.
  }
}

// --- The thread that appends.

Sequence WriteBehind::append(const Changes& changes) {
  Lock lock(mutex_);
  database_.refuse_if_failed();
  if (window_ == Window::kJournal) make_room(Batch::bytes_at_most(changes), lock);
  if (window_ == Window::kDatabase) {
    direct_.clear();
    direct_.add(changes);
    write(direct_);
  } else {
    add_to_open(changes);
  }
  return ++appended_;
}

void WriteBehind::add_to_open(const Changes& changes) try {
  const std::size_t before = open_.entries().size();
  open_.add(changes);
  record_.append(open_.entries().substr(before));
} catch (const std::exception& why) {  // no memory: half a change may be in it
  database_.fail_for_good(StoreError(why.what()));
  throw;
}

// Makes the open batch ready for a change of so many bytes at the most, or turns the window over to
// the database.
void WriteBehind::make_room(std::size_t bytes, Lock& lock) {
  const auto has = [this](std::size_t quarters) {
    return 4 * open_.changes() >= quarters * changes_ ||
           4 * open_.entries().size() >= quarters * bytes_;
  };
  const bool recorded = record_.size() == sizeof(Head);
  if (record_.size() + bytes > kLargestWindow || (has(5) && !recorded)) {
    settle(lock);
    window_ = Window::kDatabase;
  } else if (open_.empty() || (has(4) && recorded)) {
    begin_batch(lock);
  }
}

// REQUIRES: each change of the open batch is in a record that was begun.
void WriteBehind::begin_batch(Lock& lock) {
  finish_closed(lock);
  database_.reserve(open_.entries().size() + 2 * bytes_ + kLargestWindow);
  if (!open_.empty()) {
    std::swap(open_, closed_);
    closed_is_ = Closed::kWaits;
    closed_noted_ = begun_;
    apart_.keep_off_here(thread_);
    changed_.notify_all();
  }
  open_.clear();
}

// Waits until the closed batch is written, and writes it if the thread has failed to.
void WriteBehind::finish_closed(Lock& lock) {
  changed_.wait(lock,
                [this] { return closed_is_ == Closed::kNone || closed_is_ == Closed::kFailed; });
  if (closed_is_ == Closed::kNone) return;
  write(closed_, closed_noted_);
  noted_ = closed_noted_;
  closed_is_ = Closed::kNone;
}

Overlay* WriteBehind::settle() {
  Lock lock(mutex_);
  overlay_.reset();
  try {
    settle(lock);
  } catch (const std::exception&) {  // the next append meets it, too
    overlay_.emplace(database_);
    if (closed_is_ != Closed::kNone) overlay_->add(closed_.entries());
    overlay_->add(open_.entries());
  }
  return overlay_ ? &*overlay_ : nullptr;
}

void WriteBehind::settle(Lock& lock) {
  finish_closed(lock);
  if (open_.empty()) return;
  write(open_);
  open_.clear();
  if (record_.size() == sizeof(Head)) return;
  // These changes must not get into a record any more.
  record_.assign(sizeof(Head), '\0');
  window_ = Window::kDatabase;
}

void WriteBehind::write(const Batch& batch) {
  write(batch, begun_ > noted_ ? std::optional(begun_) : std::nullopt);
  noted_ = begun_;
}

void WriteBehind::write(const Batch& batch, std::optional<std::uint64_t> note) {
  WriteBatch all = database_.batch(batch.entries());
  if (note) put_note(database_, {identity_, *note}, all);
  database_.write(all);
}

std::optional<std::string> WriteBehind::body(JobId id) const {
  const Lock lock(mutex_);
  auto body = open_.body(id);
  if (!body && closed_is_ != Closed::kNone) body = closed_.body(id);
  return body ? std::optional<std::string>(*body) : std::nullopt;
}

// --- The thread that syncs.

Sequence WriteBehind::sync() {
  Lock lock(mutex_);
  database_.refuse_if_failed();
  const Sequence sequence = appended_;
  if (sequence == durable_) return sequence;
  if (std::exchange(window_, Window::kJournal) == Window::kDatabase) {
    const std::uint64_t count = database_.count();
    lock.unlock();
    checkpoint();
    lock.lock();
    needed_ = count;
  } else {
    ++begun_;
    std::swap(record_, writing_);
    record_.assign(sizeof(Head), '\0');
    const Head head{.needs = needed_};
    std::memcpy(writing_.data(), &head, sizeof head);
    lock.unlock();
    write_record();
    lock.lock();
    if (journal_->nearly_full()) {
      wants_checkpoint_ = true;
      changed_.notify_all();
    }
  }
  return durable_ = sequence;
}

void WriteBehind::write_record() try {
  if (!journal_->has_room(writing_.size())) checkpoint();
  journal_->write(writing_);
} catch (const std::exception& why) {
  database_.fail_for_good(StoreError(why.what()));
  throw;
}

// Makes durable what is in the database, so that the records of that are no longer needed.
void WriteBehind::checkpoint() {
  Lock lock(mutex_);
  const std::uint64_t noted = noted_;
  lock.unlock();
  database_.sync();
  lock.lock();
  journal_->release(noted);
}

// --- The thread that writes.

void WriteBehind::run() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(
        lock, [this] { return closed_is_ == Closed::kWaits || wants_checkpoint_ || stopping_; });
    if (closed_is_ == Closed::kWaits) {
      write_closed(lock);
    } else if (std::exchange(wants_checkpoint_, false)) {
      lock.unlock();
      try {
        checkpoint();
      } catch (const StoreError&) {
        // The database has failed for good, and says so to whoever comes next.
      }
      lock.lock();
    } else {
      return;
    }
  }
}

void WriteBehind::write_closed(Lock& lock) {
  closed_is_ = Closed::kIsWritten;
  lock.unlock();
  bool written = true;
  try {
    write(closed_, closed_noted_);
  } catch (const std::exception&) {
    written = false;  // whoever appends next tries again, and is told
  }
  lock.lock();
  if (written) noted_ = closed_noted_;
  closed_is_ = written ? Closed::kNone : Closed::kFailed;
  changed_.notify_all();
}

}  // namespace carillon::queue
