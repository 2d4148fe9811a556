// The Store on disk: RocksDB, embedded, in one data directory. There is nothing to install and
// nothing to set up.
//
//   RocksStore store("carillon-data");        // makes the directory if it is not there
//   Engine engine(store, {}, now);
//
// It adds to the contract of Store:
// - *A crash of the process* loses nothing that was appended, even without a `sync` (but see
//   `journal_bytes`). A crash of the machine loses nothing that was synced. Of what was not synced
//   it keeps a first part: the last changes may be lost, but none before them, and no change is
//   kept by half.
// - *A full disk* fails the append at once, before anything is written. The next append works as
//   soon as there is room; reads work all the time. After a failed sync, or a failed write into
//   space that was already taken, nobody knows what the disk holds. Then the store refuses all
//   syncs and appends until it is opened anew.
// - *Damage* is found by checksums and reported; what cannot be read is never skipped silently.
//   There is one exception: if the last synced changes before a crash of the process are damaged,
//   this looks like a write that the crash cut short.
//
// Complexity: `append` of a put is one write to RocksDB's log (about 4 us), `sync` one fdatasync of
// it. With a journal `append` makes no system call, and `sync` is one write that is durable when it
// returns. Opening reads what was appended since RocksDB last flushed its memory to sorted files:
// at most about `write_buffer` bytes, whatever the number of jobs.
//
// Thread safety: as for every Store (store.h). A directory can be open once at a time, on one
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/store.h"

namespace carillon::queue {

// A good size of a journal, in bytes: enough for 2,000 small syncs between two syncs of RocksDB's
// own log, and little to read at a start.
constexpr std::size_t kJournalBytes = 16 << 20;
constexpr std::size_t kSmallestJournal = 512 << 10;
constexpr std::size_t kLargestJournal = 256 << 20;

struct RocksStoreOptions {
  // Bytes of recent changes in memory; up to three times as many while the disk is slow.
  std::size_t write_buffer = 64 << 20;
  // Bytes of memory for blocks that were read from files.
  std::size_t read_cache = 64 << 20;
  // Bodies of at least this many bytes are kept in files of their own, so that they are not copied
  // when RocksDB merges its sorted files.
  std::size_t large_body = 4 << 10;

  // Journal size in bytes, from kSmallestJournal to kLargestJournal (else StoreError); 0 disables
  // it. Small changes that are synced one by one go to the journal first, and later to RocksDB,
  // many at once. Fastest when every change is synced. Cost: changes that were not synced are lost
  // if the process is killed, as they are if the machine crashes. The size may differ at each
  // start.
  std::size_t journal_bytes = 0;
};

class RocksStore final : public Store {
 public:
  // Opens the store in the directory at `path`, and makes both if they are not there. Throws
  // StoreError, with one line that names the directory, if the directory is in use, not writable,
  // not a directory, damaged, of another program, or of a newer version.
  explicit RocksStore(const std::string& path, const RocksStoreOptions& options = {});
  // Makes durable all that was appended. It cannot report an error: call `sync` before to see it.
  ~RocksStore() override;

  Sequence append(const Changes& changes) override;
  Sequence sync() override;
  void write() override {}
  std::string failure() const override { return {}; }

  Recovered recover() const override;
  std::optional<JobRecord> find(JobId id) const override;
  std::string body(JobId id) const override;
  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override;
  std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                     std::size_t limit) const override;

  // Returns one line for the operator if opening left out the end of the log, which was cut off by
  // a crash and had never been synced; else an empty string.
  const std::string& opening_warning() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carillon::queue
