// Changes that are synced into the journal, and written to the database behind it, many at once and
// by another thread.
//
//   const auto behind = WriteBehind::open(database, directory, kJournalBytes);
//   Sequence sequence = behind->append(changes);
//   behind->sync();                        // durable, but mostly not in the database yet
//   Overlay* over = behind->settle();      // in the database: database.get(..., over) reads it
//
// Changes come in *windows*, each ended by a sync. A small one goes to the journal: its changes
// join an open batch, and its sync writes what it has added there as one record. Once the open
// batch is large enough, and all of it in records, it is closed and handed to the thread that
// writes. A window that grows too large, or something in it that is to be read, goes to the
// database: the open batch is written at once, the rest of the window straight to the database, and
// its sync is one of the database's log. So a large window costs what it would without a journal.
//
// After a crash the database may have lost the end of what was written to it and not synced there.
// What was acknowledged of that is in the journal. Each batch stores the number of the last journal
// record begun before it. A start applies only later records. So when a batch is written, each of
// its changes must be in a record already begun, or never get into one; otherwise an older value
// could overwrite a newer one. Each record also stores the database's own count of entries at the
// last sync of a large window there. A database with a smaller count is damaged.
//
// A full disk. Room in the database's log is taken before a batch is begun. Should the database
// refuse a closed batch still, it is kept, and so is the next one, until that is full; then every
// `append` tries again, and fails until it has succeeded. Reads go on meanwhile: the batches are
// laid over the database.
//
// Thread safety: one thread appends, settles and reads; `sync` may run in another at the same time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "carillon/queue/store.h"
#include "queue/store/apart.h"
#include "queue/store/batch.h"
#include "queue/store/journal.h"
#include "queue/store/overlay.h"
#include "queue/store/rocks_database.h"

namespace carillon::queue {

class WriteBehind {
 public:
  // Applies what the directory's journal has and the database has not. After that there is a
  // journal of so many bytes, or if that is 0 none, and nothing is returned. Throws StoreError.
  static std::unique_ptr<WriteBehind> open(RocksDatabase& database, const std::string& directory,
                                           std::size_t bytes);
  // Brings all that was appended into the database. If that refuses it, what was not synced is
  // lost.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // As Store's, but not visible in the database before `settle`.
  Sequence append(const Changes& changes);
  Sequence sync();

  // Brings all that was appended into the database, and returns nothing; or if the database refuses
  // it, returns what is to be laid over it, which lives until the next call.
  Overlay* settle();
  // The body of a job, if it is not in the database yet.
  std::optional<std::string> body(JobId id) const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  enum class Window : std::uint8_t { kJournal, kDatabase };
  enum class Closed : std::uint8_t { kNone, kWaits, kIsWritten, kFailed };

  WriteBehind(RocksDatabase& database, std::unique_ptr<Journal> journal, std::uint64_t identity);

  void add_to_open(const Changes& changes);
  void make_room(std::size_t bytes, Lock& lock);
  void begin_batch(Lock& lock);
  void finish_closed(Lock& lock);
  void settle(Lock& lock);
  void write(const Batch& batch);
  void write(const Batch& batch, std::optional<std::uint64_t> note);
  void write_record();
  void checkpoint();
  void run();
  void write_closed(Lock& lock);

  RocksDatabase& database_;
  const std::unique_ptr<Journal> journal_;
  const std::uint64_t identity_;  // of the journal
  const std::size_t changes_;     // of a batch that is to be closed,
  const std::size_t bytes_;       // or so many bytes

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_:
  Sequence appended_ = 0;
  Sequence durable_ = 0;
  Window window_ = Window::kJournal;
  Batch open_;
  std::string record_;  // of this window: its head, and the entries that it added to the open batch
  std::uint64_t begun_ = 0;  // the number of the last record that was begun
  Batch direct_;             // of one append to the database
  Batch closed_;             // the thread's while it is written
  Closed closed_is_ = Closed::kNone;
  std::uint64_t closed_noted_ = 0;
  std::uint64_t noted_ = 0;   // with the last batch that was written
  std::uint64_t needed_ = 0;  // of the database: its count when a large window was last synced
  bool wants_checkpoint_ = false;
  bool stopping_ = false;

  std::optional<Overlay> overlay_;
  std::string writing_;  // the record that is being written: whose thread syncs
  Apart apart_;          // whose thread appends
  std::thread thread_;
};

}  // namespace carillon::queue
