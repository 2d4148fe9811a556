// RocksState: the state of a queue in RocksDB, as a checkpoint of the log.
//
//   RocksState state(directory, {});
//   log.read(state.flushed_position(), [&](LogNumber number, std::string_view bytes) {
//     state.apply(bytes, number);
//   });
//   ...
//   state.apply(bytes, number);                // visible; only in memory
//   if (enough) state.begin_flush(mark);        // REQUIRES: what was applied is durable there
//   ...
//   log.trim(state.flushed_position());
//
// RocksDB has no log of its own here. A change is applied to its memtables. A flush writes all
// families at once, with the number of the last change, so its files are the state after that
// change. If the process dies, changes that were not flushed are lost here, and a start applies
// them again from the log. (Applying a change twice, in the order of the log, does no harm: it
// writes whole records.)
//
// *The files never run ahead of the log.* A flush begins only by begin_flush(), when everything
// that was applied is durable in the log. RocksDB never flushes by itself here: its memtables have
// no limit, and it is told not to recover from errors on its own.
//
// *The files are in the directory that was opened*, even if its path leads elsewhere later: RocksDB
// gets a path that goes through the descriptor.
//
// Thread safety: one thread; any other may call broken(), look_at_path(), link_files(), get(),
// get_at_hand() and scan() at the same time, and calls what on_failure() was given.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/log.h"
#include "carillon/queue/store.h"
#include "queue/store/damage/around_damage.h"
#include "queue/store/damage/tables_apart.h"
#include "queue/store/state/data_directory.h"
#include "queue/store/state/flush_watch.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/rocks_troubles.h"
#include "queue/store/state/space_saver.h"
#include "queue/store/state/state_options.h"

namespace carillon::queue {

class RocksState {
 public:
  // Records of the directory itself, in kMeta.
  static constexpr std::string_view kIdentityKey = "i";  // identity:u64
  static constexpr std::string_view kPositionKey = "n";
  // Its value is number:u64 mark. Returns nothing if it is shorter.
  static std::optional<LogPosition> position_of(std::string_view value);

  // Opens the state in the directory. Makes both and their log if they are not there. Throws
  // StoreError, with one line that names the directory.
  RocksState(const std::string& path, const DiskStoreOptions& options, const LogSource& logs);
  // The same, with a log in the directory.
  RocksState(const std::string& path, const DiskStoreOptions& options);
  ~RocksState();
  RocksState(const RocksState&) = delete;
  RocksState& operator=(const RocksState&) = delete;

  // A random number that belongs to this directory and its log.
  std::uint64_t identity() const { return identity_; }
  // The number of the last change that was applied.
  LogNumber number() const { return number_; }

  // Applies a change (change_codec.h), all of it or nothing. Throws StoreError with nothing
  // changed. REQUIRES: number == this->number() + 1.
  void apply(std::string_view change, LogNumber number);

  // About how many bytes were applied since the last flush began; in_memory() adds those being
  // flushed.
  std::size_t unflushed() const { return unflushed_; }
  std::size_t in_memory() const { return unflushed_ + being_flushed_; }
  // Returns true while compaction is far behind, and more files would make reads slow. Throws
  // StoreError if compactions fail.
  bool behind() const;
  // Begins to write all that was applied to files, by another thread. Throws StoreError. REQUIRES:
  // everything that was applied is durable in the log, whose mark() is `mark`; no other flush is
  // under way.
  void begin_flush(std::string_view mark);
  // Returns true from begin_flush() until the files are durable.
  bool flushing();
  // The number of the last change that is durable in files.
  LogNumber flushed() const { return flushed_.number; }
  const LogPosition& flushed_position() const { return flushed_; }
  // Makes RocksDB give back the space of erased entries soon, or stops that (space_saver.h). Call
  // it about once a second with true, and then with false until it returns true.
  bool save_space(bool save) { return space_saver_->save(save); }
  // Flushes all that was applied and waits for it. Throws StoreError. REQUIRES: as begin_flush(),
  // but another flush may be under way.
  void flush(std::string_view mark);

  // Returns true if a flush has failed for a reason that may pass, such as a lack of space or
  // descriptors. Nothing can be applied until resume().
  bool stopped() const;
  // Another thread tries to go on. Throws StoreError if it cannot, or cannot yet: then call it
  // again. REQUIRES: as begin_flush(), because what was applied is flushed.
  void resume(std::string_view mark);
  // Returns true if that thread is at work: resume() throws until it has ended.
  bool resuming() const;
  // Checks whether the directory is still at its path. If not, the state is broken.
  void look_at_path();
  // If nobody knows what the files hold, returns why: nothing may be applied any more.
  std::optional<std::string> broken() const;
  // As Store::on_failure().
  void on_failure(const std::function<void()>& call) { troubles_->on_broken(call); }

  // Writes the records of tubes and the watermarks to RocksDB's memory, so that get() and scan()
  // find them in kMeta. Throws StoreError.
  void write_small_records();

  // Makes the directory `path`, an absolute path, with links to all files. Nothing is flushed.
  // Throws StoreError; there is no such directory then. REQUIRES: no flush and no resume()
  // meanwhile.
  void link_files(const std::string& path) const;

  // The value under `key`, or nothing. What fails its checksum is read once more, from the disk.
  std::optional<std::string> get(Family family, std::string_view key) const;
  // The same without a wait for the disk. What fails its checksum counts as on the disk.
  enum class AtHand { kFound, kNone, kOnDisk };
  AtHand get_at_hand(Family family, std::string_view key, std::string& value) const;
  // An iterator at the first key >= `from`, if it is < `end`, which must outlive the iterator.
  // Under NoWait (no_wait_files.h) the iterator ends, with a bad status, where it would have to
  // wait.
  std::unique_ptr<rocksdb::Iterator> scan(Family family, std::string_view from,
                                          const rocksdb::Slice& end) const;
  // The same, but it goes around what is damaged, and notes that in damages(). If a damaged table
  // hides entries of other tables, it returns those that the state still names: an index key if the
  // pointer of its job names it, the key of a job that is gone if its record does. Their values may
  // lack the latest change.
  std::unique_ptr<rocksdb::Iterator> scan_around(Family family, std::string_view from,
                                                 const rocksdb::Slice& end) const;
  const DamageList& damages() const { return damages_; }
  // Notes in damages() that a scan from `from` on begins at `to`, because nothing that can be read
  // lies between them.
  void note_left_out(Family family, std::string_view from, std::string_view to) const {
    damages_.note_left_out(family, from, to);
  }
  // The same as scan(), but only for what is in memory: some of the latest in_memory() bytes. The
  // iterator ends, with the status Incomplete, where it would have to pass kMostErased erased
  // entries.
  static constexpr std::uint64_t kMostErased = 4'096;
  std::unique_ptr<rocksdb::Iterator> scan_memory(Family family, std::string_view from,
                                                 const rocksdb::Slice& end) const;
  void check(const rocksdb::Iterator& iterator) const;
  // About how many bytes of files there are from each of the keys on and before the next one.
  // REQUIRES: two keys or more, which rise.
  std::vector<double> sizes_in_files(Family family, const std::vector<IndexKey>& keys) const;

  // A line for each file of large bodies that was gone or damaged at the start.
  const std::vector<std::string>& notes() const { return notes_; }
  const base::Directory& files() const { return directory_.files(); }
  // "data directory PATH WHAT", for errors.
  std::string message(const std::string& what) const { return directory_.message(what); }

 private:
  struct Opened {
    std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families{};
    std::unique_ptr<rocksdb::DB> database;
    ~Opened();
  };

  void open(const DiskStoreOptions& options);
  void check_format(const LogSource& logs);
  void check_bodies();
  void begin_flush(std::string_view mark, bool wait);
  std::unique_ptr<rocksdb::Iterator> scan(Family family, std::string_view from,
                                          const rocksdb::Slice& end, rocksdb::ReadTier tier) const;
  std::unique_ptr<rocksdb::Iterator> iterator(Family family, const rocksdb::Slice& end,
                                              rocksdb::ReadTier tier) const;
  std::unique_ptr<rocksdb::Iterator> scan_beneath(Family family, std::string_view from,
                                                  std::string_view to) const;
  bool is_named(Family family, std::string_view key) const;
  void make(const LogSource& logs);
  LogPosition position_in_files() const;
  rocksdb::Status write(rocksdb::WriteBatch& batch, const std::function<void()>& then);
  void keep_small_records(std::string_view change);
  rocksdb::DB& database() const { return *opened_.database; }
  rocksdb::ColumnFamilyHandle* family(Family family) const { return opened_.families[family]; }
  [[noreturn]] void fail_read(const rocksdb::Status& status) const;
  StoreError error(const std::string& what, const rocksdb::Status& status) const;
  StoreError cannot_open(const rocksdb::Status& status) const;

  DataDirectory directory_;
  std::shared_ptr<RocksTroubles> troubles_;
  Opened opened_;
  std::optional<SpaceSaver> space_saver_;
  std::uint64_t identity_ = 0;
  std::vector<std::string> notes_;
  LogNumber number_ = 0;
  LogPosition flushed_;
  std::optional<LogNumber> flushing_;  // with the changes up to here
  std::size_t unflushed_ = 0;
  std::size_t being_flushed_ = 0;
  FlushWatch flush_watch_;
  // The entries of kMeta since the last flush, by key; an empty value erases. Almost every change
  // has the counts of its tube. In a memtable they would be an entry of their own, which costs as
  // much as the job's.
  std::map<std::string, std::string, std::less<>> small_;
  rocksdb::WriteBatch batch_;
  mutable DamageList damages_;
  mutable TablesApart tables_apart_;
};

}  // namespace carillon::queue
