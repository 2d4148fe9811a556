// Where jobs are kept: the few verbs that the queue engine needs of a disk, a memory, or a
// database.
//
//   RocksStore store("carillon-data");          // or MemoryStore store;
//   Engine engine(store, {}, now);              // reads store.recover(), then appends
//   ...
//   Sequence durable = store.sync();            // from any one other thread: what is acknowledged must be <= durable
//
// Two promises make up the contract. *Visible*: once `append` has returned, every read sees the
// whole of it. *Durable*: once a `sync` that was called after the append has returned, no crash of
// the process or the machine undoes it. Between the two lies group commit: one sync serves all that
// was appended meanwhile, and no client is answered before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/job.h"

namespace carillon::queue {

// Counts the appends of one store since it was opened, from 1. 0: nothing, which is always durable.
using Sequence = std::uint64_t;

// What could not be read or written, with the cause in words.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A tube that holds at least one job. Its counts are stored with every change, so that a start
// needs no look at the jobs.
struct TubeRecord {
  std::uint32_t number = 0;     // stands for the name in records and keys
  std::string name;             // 1 to 200 bytes
  std::uint64_t scheduled = 0;  // jobs that are not buried
  std::uint64_t buried = 0;

  friend bool operator==(const TubeRecord&, const TubeRecord&) = default;
};

// Upper bounds that must survive a crash. They run ahead in blocks, so that few changes carry them.
struct Watermarks {
  JobId next_id = 1;              // every id below may have been given
  std::uint64_t next_burial = 1;  // every burial number below may have been given
  UtcMs time = 0;                 // the engine's clock has been here: it never starts before it

  friend bool operator==(const Watermarks&, const Watermarks&) = default;
};

// A job's record as it stands in the store, and as it shall stand.
struct JobChange {
  std::optional<JobRecord> before;  // none: the job is new
  std::optional<JobRecord> after;   // none: the job goes, and its body with it
  std::string_view body;            // of a new job; later changes leave the body alone
};

// What one command changes: all of it or nothing.
struct Changes {
  std::vector<JobChange> jobs;
  std::vector<TubeRecord> tubes;  // as they shall stand; a tube without any job is forgotten
  std::optional<Watermarks> watermarks;
};

// A place in a tube's jobs by (due, id).
struct DueKey {
  UtcMs due = 0;
  JobId id = 0;

  friend auto operator<=>(const DueKey&, const DueKey&) = default;
};

// What a start needs to know. O(tubes), whatever the number of jobs.
struct Recovered {
  std::vector<TubeRecord> tubes;  // in any order
  Watermarks watermarks;
};

// Thread safety: one thread appends and reads; `sync` may run in another at the same time.
// Every verb throws StoreError when the medium fails.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Applies `changes` atomically and returns their sequence number. When it throws, nothing has
  // changed.
  virtual Sequence append(const Changes& changes) = 0;

  // Returns once all that was appended before the call is durable; the result is the last sequence
  // number known to be so. After it has thrown once, what was not yet durable may be lost: the
  // caller must acknowledge none of it.
  virtual Sequence sync() = 0;

  virtual Recovered recover() const = 0;

  // The job's record, or nothing when there is no such job. O(log jobs).
  virtual std::optional<JobRecord> find(JobId id) const = 0;

  // REQUIRES: the job exists.
  virtual std::string body(JobId id) const = 0;

  // The tube's jobs that are not buried, from `from` (inclusive) on, in order of (due, id), `limit`
  // at the most.
  virtual std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                          std::size_t limit) const = 0;

  // The tube's buried jobs, from burial number `from` (inclusive) on, in order of burial, `limit`
  // at the most.
  virtual std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                             std::size_t limit) const = 0;
};

}  // namespace carillon::queue
