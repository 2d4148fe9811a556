// Where jobs are kept: the few methods that the queue engine needs of a disk, a memory or a
// database.
//
//   DiskStore store("carillon-data");           // or MemoryStore store;
//   Engine engine(store, {}, now);              // reads store.recover(), then appends
//   ...
//   Sequence durable = store.sync();            // in any one other thread
//   ... replies about appends up to `durable` may leave.
//
// A store promises three things:
// - *Visible*: once `append` has returned, every read sees the whole of it.
// - *Written*: once a `write` that was called after the append has returned, no crash of the
//   process undoes the append.
// - *Durable*: once a `sync` that was called after the append has returned, no crash of the process
//   or the machine undoes the append.
// Group commit lies between the first and the others: one sync serves all that was appended
// meanwhile, and no client is answered before it.
//
// Errors: every method throws StoreError if the medium fails, and StoreDamage if what it reads is
// missing or damaged. A failed read or append leaves the store as it was.
//
// Thread safety: one thread appends, reads and calls `write`; `sync` may run in one other thread at
// the same time, `body` in one other thread if body_at_hand() has returned none, and any thread may
// call `failure`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/batch_answer.h"
#include "carillon/queue/detail/rare.h"
#include "carillon/queue/endpoint.h"
#include "carillon/queue/job.h"
#include "carillon/queue/limits.h"
#include "carillon/queue/retry.h"
#include "carillon/queue/schedule.h"

namespace carillon::queue {

// Counts the appends of one store since it was opened, from 1. 0 stands for no append, and is
// always durable.
using Sequence = std::uint64_t;

// Says in words what could not be read or written, and why.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What should be there is missing or damaged. To read it again brings the same; any other error of
// a read may pass.
class StoreDamage : public StoreError {
 public:
  using StoreError::StoreError;
};

// Fields of a record that a newer version of Carillon has written, as their bytes. This version
// keeps them, and writes them again with the record.
using NewerFields = detail::Rare<std::string>;

// What the owner of a queue has set for a tube.
struct TubeSettings {
  // Of jobs that have no policy of their own.
  RetryPolicy retry = {};
  // Clients put no jobs: the tube is being drained. Its schedules do.
  bool refuses_puts = false;
  // How many of its jobs run at once, and how fast they go out.
  Limits limits = {};
  // How fast clients may put jobs, without `max_running`. Schedules, moves and retries are free.
  Limits put_rate = {};
  // So many ms after their death its dead jobs are deleted. 0: never.
  Millis retention = 0;
  // Of a group alone: GroupSettings::weight.
  std::uint32_t weight = 1;

  friend bool operator==(const TubeSettings&, const TubeSettings&) = default;
};

inline constexpr std::uint32_t kMostWeight = 1'000'000;

// What the owner of a queue has set for a group of a tube.
struct GroupSettings {
  // A group with twice the weight gets twice as many turns. 1 to kMostWeight.
  std::uint32_t weight = 1;
  // Of the group alone; those of its tube hold for all groups together.
  Limits limits = {};

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};

// The record, decoded, of a tube that has a job, the key of a job that is gone, or settings. It is
// stored with every change to them, so that a start need not count jobs. The jobs of a group of a
// tube are in a tube of their own, a *lane*.
struct TubeRecord {
  // Stands for the name in records and keys.
  std::uint32_t number = 0;
  // 1 to 200 bytes. Of a lane: the group's.
  std::string name;
  // How many of the tube's jobs are not buried, and how many are.
  std::uint64_t scheduled = 0;
  std::uint64_t buried = 0;
  // How many keys still count though their jobs are gone.
  std::uint64_t ended_keys = 0;
  // Of a lane: the number of the tube that has the group. It has the keys of the lane's jobs, too.
  std::uint32_t head = 0;
  // How many lanes of the tube are stored.
  std::uint32_t lanes = 0;
  detail::Rare<TubeSettings> settings = {};
  NewerFields newer = {};

  // Returns true if nothing of the tube needs to be stored.
  bool empty() const {
    return scheduled == 0 && buried == 0 && ended_keys == 0 && lanes == 0 && !settings;
  }

  friend bool operator==(const TubeRecord&, const TubeRecord&) = default;
};

// The wall clock was set forward by a second or more, or a boot has moved it
// (src/queue/engine/state/clock_rises.h). All in ms.
struct ClockRise {
  // What the wall clock has shown last before that, and first after it.
  UtcMs shown = 0;
  UtcMs to = 0;
  // How far the wall clock was ahead of uptime before.
  std::int64_t ahead = 0;
  // The uptime when it was noticed.
  Millis noticed = 0;
  // How much of it steady time has gained: of a boot alone.
  Millis gained = 0;

  friend bool operator==(const ClockRise&, const ClockRise&) = default;
};

// What an engine must know after a crash. The stored bounds run ahead in blocks, so that only a few
// changes have to carry them.
struct Watermarks {
  // Every id below this one may have been given.
  JobId next_id = 1;
  // Every burial number below this one may have been given.
  std::uint64_t next_burial = 1;
  // What the wall clock has shown; at most about a second before the last change.
  UtcMs time = 0;
  // The boot of the machine during which this was stored (EngineOptions::boot), and as of then, the
  // wall clock and steady time (docs/queue.md#time), each minus the monotonic clock, in ns.
  // kNoLead: not known.
  std::string boot = {};
  std::int64_t wall_ns = kNoLead;
  std::int64_t steady_ns = kNoLead;
  // The highest lead, in ms, that the wall clock had during that boot, and the highest that is in
  // the record of a job.
  std::int64_t boot_lead = kNoLead;
  std::int64_t job_lead = kNoLead;
  // How much steady time has gained, perhaps in error, over the boot, in ns.
  std::int64_t gained_ns = 0;
  // The era of steady time (JobRecord::era), and the one that began with that boot.
  std::uint32_t era = 0;
  std::uint32_t boot_era = 0;
  // Uptime minus the monotonic clock, in ns, and the rises of the wall clock that still matter.
  std::int64_t up_ns = kNoLead;
  std::vector<ClockRise> rises = {};
  // When the wall clock was set back last: the moment from which on schedules have decided by a
  // wrong clock; 0 if there was none.
  UtcMs wrong_since = 0;
  NewerFields newer = {};

  friend bool operator==(const Watermarks&, const Watermarks&) = default;
};

// One job's record before and after a change.
struct JobChange {
  // None if the job is new.
  std::optional<JobRecord> before;
  // None if the job is deleted, and its body with it.
  std::optional<JobRecord> after;
  // The body of a new job, and of one whose body_id() changes: the body before goes then. Ignored
  // for other changes, which leave the body as it is.
  std::string_view body;

  bool has_new_body() const { return after && (!before || before->body_id() != after->body_id()); }
};

// Stands for a tube in the records of tokens. No tube has it.
inline constexpr std::uint32_t kTokens = 0;

// Which job of a tube has a key, or had it last. Or, under kTokens: the answer to the batch that
// was put with a token (BatchOrder::once).
struct KeyRecord {
  std::uint32_t tube = 0;
  // 1 to kMaxKey bytes.
  std::string key;
  JobId id = 0;
  // 0 while the job is there. Then, and of a token: it still counts until steady time
  // (docs/queue.md#time) comes to this, in ms.
  UtcMs until = 0;
  detail::Rare<BatchAnswer> batch = {};  // of a token

  friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

// One key's record before and after a change, or none.
struct KeyChange {
  std::optional<KeyRecord> before;
  std::optional<KeyRecord> after;
};

// The story of a job, in place of the one before; empty: there is none any more.
struct StoryChange {
  JobId id = 0;
  std::vector<Attempt> story;
};

// The record of a schedule after a change.
struct ScheduleChange {
  std::string name;
  // None if it is deleted.
  std::optional<ScheduleRecord> after;
};

// An endpoint after a change.
struct EndpointChange {
  std::string name;
  // None if it is deleted.
  std::optional<Endpoint> after;
};

// A body of more bytes than this is stored in pieces of so many, of which the last may be shorter.
// They are put one by one and before their job, so that no change is large.
inline constexpr std::size_t kBodyPiece = 256 << 10;

// Returns the number of pieces of a body of so many bytes.
constexpr std::uint32_t pieces_of(std::uint32_t body_bytes) {
  constexpr auto kPiece = static_cast<std::uint32_t>(kBodyPiece);
  return body_bytes <= kPiece ? 1 : (body_bytes - 1) / kPiece + 1;
}

struct BodyPiece {
  JobId id = 0;
  std::uint32_t number = 0;  // from 0
  std::string_view bytes;
};

// A body of which pieces are put, and whose job is not there yet.
struct UnfinishedBody {
  JobId id = 0;
  std::uint32_t bytes = 0;  // of the whole body

  friend bool operator==(const UnfinishedBody&, const UnfinishedBody&) = default;
};

// What one command changes. A store applies all of it or nothing.
struct Changes {
  std::vector<JobChange> jobs;
  std::vector<KeyChange> keys = {};
  std::vector<StoryChange> stories = {};
  std::vector<ScheduleChange> schedules = {};
  std::vector<EndpointChange> endpoints = {};
  // The body comes in pieces; the change that puts its job, without a body, ends that.
  std::optional<UnfinishedBody> begun = {};
  std::optional<BodyPiece> piece = {};
  // No job will be put: the pieces go.
  std::optional<UnfinishedBody> given_up = {};
  // As they stand after the change. A tube that is empty() is forgotten.
  std::vector<TubeRecord> tubes;
  std::optional<Watermarks> watermarks;

  // Forgets all of it. The vectors keep their memory for the next command.
  void clear() {
    jobs.clear();
    keys.clear();
    stories.clear();
    schedules.clear();
    endpoints.clear();
    begun.reset();
    piece.reset();
    given_up.reset();
    tubes.clear();
    watermarks.reset();
  }
};

// The order of a tube's jobs that are not buried: by (due, id).
struct DueKey {
  UtcMs due = 0;
  JobId id = 0;

  friend auto operator<=>(const DueKey&, const DueKey&) = default;
};

// What a start needs to know.
struct Recovered {
  // In any order.
  std::vector<TubeRecord> tubes;
  Watermarks watermarks;
  // To be given up: whoever put their pieces is gone.
  std::vector<UnfinishedBody> unfinished = {};
  // In any order.
  std::vector<ScheduleRecord> schedules = {};
  Endpoints endpoints = {};
};

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // Applies `changes` atomically and returns their sequence number. When it throws, nothing has
  // changed. O(changes).
  virtual Sequence append(const Changes& changes) = 0;

  // Returns true if append() takes the next change at once. If not, it may keep its thread waiting
  // for the disk; whoever can should have what it has appended synced or written, and ask again
  // every few milliseconds. Throws nothing: a store that has failed throws when it is to append.
  virtual bool has_room() { return true; }

  // Makes all that was appended before the call durable, and returns the last sequence number that
  // is known to be durable. Once it has thrown, what was not durable yet may be lost, and the
  // caller must acknowledge none of it.
  virtual Sequence sync() = 0;

  // Hands all that was appended before the call to the operating system: the death of the process
  // loses none of it, a crash of the machine may. Only Watermarks::next_id is durable when it
  // returns, so that no crash makes a queue give an id twice. Throws as `sync` does.
  virtual void write() = 0;

  // Returns why the store cannot go on until it is opened anew, or an empty string. Such a store
  // refuses every append and sync, and every read of a body, because a job that is handed out could
  // not be deleted. A write in the background can fail too, so this may come at any time.
  virtual std::string failure() const = 0;

  // Has `call` called when a thread of the store's own meets a failure, by that thread, or at once
  // if it has met one. An empty `call` ends that: when this returns, the one before is not called
  // any more. `call` must not throw, and must not call the store.
  virtual void on_failure(const std::function<void()>& /*call*/) {}

  // Makes all that was appended durable, and does what makes the next start quick. Throws nothing:
  // failure() tells whether it worked. REQUIRES: no other call is made after it but failure().
  virtual void close() {}

  // O(tubes + schedules), whatever the number of jobs.
  virtual Recovered recover() const = 0;

  // Returns the job's record, or none if there is no such job. O(log jobs).
  virtual std::optional<JobRecord> find(JobId id) const = 0;

  // Returns the body with this JobRecord::body_id(); of a body of more than kBodyPiece bytes one
  // piece, from 0. Throws StoreDamage if it is not there; of a job that was deleted lately it may
  // still be returned. O(log jobs + bytes).
  virtual std::string body(JobId id, std::uint32_t piece = 0) const = 0;

  // The same, or none if body() would have to wait for a disk. Throws as body() does.
  virtual std::optional<std::string> body_at_hand(JobId id, std::uint32_t piece = 0) const {
    return body(id, piece);
  }

  // Returns the records of the tube's jobs that are not buried, from `from` (inclusive) on, in
  // order of (due, id), at most `limit` of them. O(log jobs + result).
  virtual std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                          std::size_t limit) const = 0;

  // As scan_due() for many tubes. Of each of `tubes`, whose numbers ascend, returns the records of
  // the jobs that are not buried and due before `end`, and the first one after them; at most
  // `limit` of each tube, in order of (tube, due, id). O(tubes * log jobs + result). This one calls
  // scan_due() for each tube.
  virtual std::vector<JobRecord> scan_due_of_each(const std::vector<std::uint32_t>& tubes,
                                                  UtcMs end, std::size_t limit) const {
    std::vector<JobRecord> found;
    for (const std::uint32_t tube : tubes) {
      for (JobRecord& job : scan_due(tube, {}, limit)) {
        const bool is_last = job.due >= end;
        found.push_back(std::move(job));
        if (is_last) break;
      }
    }
    return found;
  }

  // Grows with each scan that has gone around damaged records: jobs may be missing in what it
  // returned.
  virtual std::uint64_t scans_around_damage() const { return 0; }

  // Returns the records of the tube's buried jobs, from burial number `from` (inclusive) on, in the
  // order of their burials, at most `limit` of them. O(log jobs + result).
  virtual std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                             std::size_t limit) const = 0;

  // Returns which job of the tube has the key, or had it; none if the key is free. O(log keys).
  virtual std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view key) const = 0;

  // Returns the records of the keys whose jobs are gone and which end at `from` or later, by
  // (until, tube, key), at most `limit` of them. O(log keys + result).
  virtual std::vector<KeyRecord> scan_ended_keys(UtcMs from, std::size_t limit) const = 0;

  // Returns the story of the job, from the earliest attempt on, or nothing. O(log jobs).
  virtual std::vector<Attempt> story(JobId id) const = 0;
};

// Returns the whole body of a job, whatever its size. Throws as Store::body() does.
inline std::string whole_body(const Store& store, JobId id, std::uint32_t body_bytes) {
  std::string body = store.body(id);
  while (body.size() < body_bytes)
    body += store.body(id, static_cast<std::uint32_t>(body.size() / kBodyPiece));
  return body;
}

}  // namespace carillon::queue
