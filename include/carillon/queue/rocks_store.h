// The Store on disk: RocksDB, embedded, in one data directory, with nothing to install or to set
// up.
//
//   RocksStore store("carillon-data");        // made if it is not there
//   Engine engine(store, {}, now);
//
// What it adds to the contract of Store:
// - *A crash of the process* loses nothing that was appended, not even without `sync` (but see
//   `journal`). A crash of the machine loses nothing that was synced; of what was not it keeps a
//   beginning: changes are lost from the end only, and never by halves.
// - *A full disk* fails the append at once, before anything was written, and the next append works
//   as soon as there is room. Reads go on working meanwhile. Not so after a failed sync, or a
//   failed write to space that was there: what the disk holds is unknown then, and all that follows
//   is refused until the store is opened anew.
// - *Damage* is found by checksums, and reported: what cannot be read is never passed over in
//   silence. The one exception are the last synced changes before a crash of the process, whose
//   loss looks like that of a write which the crash cut short.
//
// Cost: `append` of a put is one write to the log (about 4 us), `sync` one fdatasync of it; with a
// journal `append` is no system call, and `sync` one write that is durable when it returns. Opening
// reads what was appended since the last flush to sorted files, at most about `write_buffer` bytes,
// whatever the number of jobs.
//
// Thread safety: as for every Store. A directory is open once at a time, on one machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/store.h"

namespace carillon::queue {

// Enough for 2,000 small syncs between two of the database's own log, and of little weight at a
// start.
constexpr std::size_t kJournalBytes = 16 << 20;
constexpr std::size_t kSmallestJournal = 512 << 10;
constexpr std::size_t kLargestJournal = 256 << 20;

struct RocksStoreOptions {
  // Bytes of recent changes in memory; up to three times as many while disks are slow.
  std::size_t write_buffer = 64 << 20;
  std::size_t read_cache = 64 << 20;  // bytes of blocks read from files
  std::size_t large_body =
      4 << 10;  // bodies of at least so many bytes are kept apart, and not moved as other jobs go

  // Of a journal; 0: none. Small changes that are synced one by one go to it first, and to the
  // database behind it, many at once. For who syncs after each change: that is then the fastest way
  // to the disk. The price: what was appended and not synced is lost when the process is killed, as
  // it is when the machine crashes. From kSmallestJournal to kLargestJournal, else StoreError; it
  // may be another one at each start.
  std::size_t journal_bytes = 0;
};

class RocksStore final : public Store {
 public:
  // Opens the store in the directory at `path`, and makes both if they are not there. Throws
  // StoreError, with one line that names the directory, when it is in use, not writable, not a
  // directory, damaged, somebody else's, or of a newer version.
  explicit RocksStore(const std::string& path, const RocksStoreOptions& options = {});
  // Makes durable all that was appended. Errors have nowhere to go: `sync` before, to see them.
  ~RocksStore() override;

  Sequence append(const Changes& changes) override;
  Sequence sync() override;

  Recovered recover() const override;
  std::optional<JobRecord> find(JobId id) const override;
  std::string body(JobId id) const override;
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override;
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override;

  // What an operator should know of how it was opened, in one line: that a crash had cut off
  // unsynced changes. Mostly empty.
  const std::string& opening_note() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carillon::queue
