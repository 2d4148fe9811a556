// The place where jobs are kept: the few methods that the queue engine needs from a disk, a memory
// or a database.
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
// Group commit lies between the first and the others: one sync serves everything that was appended
// meanwhile, and clients get their answers only after it.
//
// Errors: every method throws StoreError if the medium fails, and StoreDamage if the data that it
// reads is missing or damaged. A failed read or append leaves the store as it was.
//
// Thread safety: one thread appends, reads and calls `write`; `sync` may run in one other thread at
// the same time, `body` may run in one other thread after body_at_hand() has returned none; and any
// thread may call `failure`.
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

// Counts the appends of one store since it was opened, from 1. 0 means no append, and is always
// durable.
using Sequence = std::uint64_t;

// Says in words what could not be read or written, and why.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Data is missing or damaged. Reading it again fails the same way; any other error of a read may
// pass.
class StoreDamage : public StoreError {
 public:
  using StoreError::StoreError;
};

// The log of the store lies elsewhere, and takes nothing now. Nothing is lost: the same sync may be
// tried again.
class LogUnavailable : public StoreError {
 public:
  using StoreError::StoreError;
};

// Another server owns that log by now. What this store has appended, and is not durable, never will
// be: it must be opened anew.
class Deposed : public StoreError {
 public:
  using StoreError::StoreError;
};

// Fields of a record that a newer version of Carillon has written, as their bytes. This version
// keeps them, and writes them again with the record.
using NewerFields = detail::Rare<std::string>;

// The settings of a tube.
struct TubeSettings {
  // The policy of jobs without a policy of their own.
  RetryPolicy retry = {};
  // Clients may not put jobs, because the tube is being drained. Its schedules may.
  bool refuses_puts = false;
  // How many of its jobs run at once, and how fast they go out.
  Limits limits = {};
  // How fast clients may put jobs, without `max_running`. Schedules, moves and retries are free.
  Limits put_rate = {};
  // Dead jobs are deleted this many ms after their death. 0: never.
  Millis retention = 0;
  // Only for a group: GroupSettings::weight.
  std::uint32_t weight = 1;

  friend bool operator==(const TubeSettings&, const TubeSettings&) = default;
};

inline constexpr std::uint32_t kMostWeight = 1'000'000;

// The settings of a group of a tube.
struct GroupSettings {
  // A group with twice the weight gets twice as many turns. 1 to kMostWeight.
  std::uint32_t weight = 1;
  // Limits of this group. The tube's limits cover all its groups together.
  Limits limits = {};

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};

// The record, decoded, of a tube that has a job, the key of a job that is gone, or settings. It is
// stored with every change to them, so that a start need not count jobs. The jobs of a group are in
// a tube of their own, a *lane*.
struct TubeRecord {
  // Replaces the name in records and keys.
  std::uint32_t number = 0;
  // 1 to 200 bytes. In a lane: the group's name.
  std::string name;
  // How many of the tube's jobs are not buried, and how many are.
  std::uint64_t scheduled = 0;
  std::uint64_t buried = 0;
  // How many keys still count though their jobs are gone.
  std::uint64_t ended_keys = 0;
  // In a lane: the number of the tube that has the group. That tube has the keys of the lane's
  // jobs, too.
  std::uint32_t head = 0;
  // How many lanes of the tube are stored.
  std::uint32_t lanes = 0;
  detail::Rare<TubeSettings> settings = {};
  NewerFields newer = {};

  // Returns true if nothing about the tube needs to be stored.
  bool empty() const {
    return scheduled == 0 && buried == 0 && ended_keys == 0 && lanes == 0 && !settings;
  }

  friend bool operator==(const TubeRecord&, const TubeRecord&) = default;
};

// The wall clock was set forward by a second or more, or a boot has moved it
// (src/queue/engine/state/clock_rises.h). All in ms.
struct ClockRise {
  // What the wall clock showed last before the rise, and first after it.
  UtcMs shown = 0;
  UtcMs to = 0;
  // How far the wall clock was ahead of uptime before.
  std::int64_t ahead = 0;
  // The uptime when it was noticed.
  Millis noticed = 0;
  // How much steady time has gained by it; only for a boot.
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
  // What the wall clock showed, at most about a second before the last change.
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
  // When the wall clock was last set back: the moment from which on schedules had decided by a
  // wrong clock; 0 if they never had.
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
  // The body of a new job, or of a job whose body_id() changes: its earlier body is deleted.
  // Ignored for other changes, which keep the body.
  std::string_view body;

  bool has_new_body() const { return after && (!before || before->body_id() != after->body_id()); }
};

// Replaces the number of a tube in the records of tokens. No tube has it.
inline constexpr std::uint32_t kTokens = 0;

// Says which job of a tube has a key, or had it last. Or, under kTokens, has the answer to the
// batch that was put with a token (BatchOrder::once).
struct KeyRecord {
  std::uint32_t tube = 0;
  // 1 to kMaxKey bytes.
  std::string key;
  JobId id = 0;
  // 0 while the job is there. Afterwards, and for a token: the key still counts until steady time
  // (docs/queue.md#time) reaches this, in ms.
  UtcMs until = 0;
  detail::Rare<BatchAnswer> batch = {};  // only for a token

  friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

// One key's record before and after a change, or none.
struct KeyChange {
  std::optional<KeyRecord> before;
  std::optional<KeyRecord> after;
};

// The new story of the job, in place of the one before; empty: the story is deleted.
struct StoryChange {
  JobId id = 0;
  std::vector<Attempt> story;
};

// A reservation that outlives the server: whoever has the secret holds the job, until steady time
// (docs/queue.md#time) reaches `until`, in ms, but after a start not for longer than `time`: right
// after a boot, nobody knows how long the machine was off.
struct LeaseRecord {
  JobId job = 0;
  // Any bytes, random. Leases with one secret have one worker.
  std::string secret = {};
  // The worker's name, for stories.
  std::string worker = {};
  UtcMs until = 0;
  Millis time = 0;

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

// The lease of a job after a change.
struct LeaseChange {
  JobId job = 0;
  // None if it is over.
  std::optional<LeaseRecord> after;
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

// A larger body is stored in pieces of this many bytes; the last one may be shorter. They are put
// one by one before their job, so that no change is large.
inline constexpr std::size_t kBodyPiece = 256 << 10;

// Returns the number of pieces of a body of `body_bytes` bytes.
constexpr std::uint32_t pieces_of(std::uint32_t body_bytes) {
  constexpr auto kPiece = static_cast<std::uint32_t>(kBodyPiece);
  return body_bytes <= kPiece ? 1 : (body_bytes - 1) / kPiece + 1;
}

struct BodyPiece {
  JobId id = 0;
  std::uint32_t number = 0;  // from 0
  std::string_view bytes;
};

// A body that is put in pieces, and whose job does not exist yet.
struct UnfinishedBody {
  JobId id = 0;
  std::uint32_t bytes = 0;  // bytes of the whole body

  friend bool operator==(const UnfinishedBody&, const UnfinishedBody&) = default;
};

// What one command changes. A store applies all of it, or nothing.
struct Changes {
  std::vector<JobChange> jobs;
  std::vector<KeyChange> keys = {};
  std::vector<StoryChange> stories = {};
  std::vector<LeaseChange> leases = {};
  std::vector<ScheduleChange> schedules = {};
  std::vector<EndpointChange> endpoints = {};
  // The body comes in pieces; the change that puts its job, without a body, completes it.
  std::optional<UnfinishedBody> begun = {};
  std::optional<BodyPiece> piece = {};
  // No job will be put: delete the pieces.
  std::optional<UnfinishedBody> given_up = {};
  // The tubes as they are after the change. A tube that is empty() is deleted.
  std::vector<TubeRecord> tubes;
  std::optional<Watermarks> watermarks;

  // Forgets all of it. The vectors keep their memory for the next command.
  void clear() {
    jobs.clear();
    keys.clear();
    stories.clear();
    leases.clear();
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
  // To be given up: the clients that put their pieces are gone.
  std::vector<UnfinishedBody> unfinished = {};
  // In any order.
  std::vector<ScheduleRecord> schedules = {};
  Endpoints endpoints = {};
  // In any order. The job of one may be gone, and the time of one may be over.
  std::vector<LeaseRecord> leases = {};
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

  // Returns true if append() takes the next change at once. If not, append() may block its thread
  // until the disk is ready: a caller that can wait should sync or write what it has appended, and
  // ask again every few milliseconds. Throws nothing: a store that has failed throws in append().
  virtual bool has_room() { return true; }

  // Makes everything durable that was appended before the call, and returns the last sequence
  // number that is known to be durable. Once it has thrown, changes that were not durable yet may
  // be lost, and the caller must not acknowledge them. After LogUnavailable none is lost: the same
  // sync may be tried again, and the caller acknowledges what a later one returns.
  virtual Sequence sync() = 0;

  // Returns true if other servers read the log of the store, and one of them may own it from now
  // on. Then a reply, also one that reports no change, waits for an append that was made after its
  // command ran.
  virtual bool is_shared() const { return false; }

  // Hands everything that was appended before the call to the operating system: the death of the
  // process loses none of it, a crash of the machine may. Only Watermarks::next_id is durable when
  // it returns, so that no crash makes a queue give an id twice. Throws as `sync` does.
  virtual void write() = 0;

  // Returns why the store cannot go on until it is opened anew, or an empty string. Such a store
  // refuses every append and sync, and every read of a body, because a job that is handed out could
  // not be deleted. A write in the background can fail too, so this may come at any time.
  virtual std::string failure() const = 0;

  // When a thread of the store meets a failure, that thread calls `call`; if it has met one
  // already, `call` is called at once. An empty `call` ends that: when this returns, the earlier
  // one is not called any more. `call` must not throw, and must not call the store.
  virtual void on_failure(const std::function<void()>& /*call*/) {}

  // Makes everything durable that was appended, and prepares a quick start. Throws nothing:
  // failure() says whether it worked. REQUIRES: after it, only failure() is called.
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

  // As scan_due(), for many tubes. The numbers in `tubes` ascend. Returns for each tube
  // its jobs that are not buried and due before `end`, and the first job after them; at most
  // `limit` for each tube, in order of (tube, due, id). O(tubes * log jobs + result). This
  // implementation calls scan_due() for each tube.
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

  // Grows with each scan that has gone around damaged records: its result may lack jobs.
  virtual std::uint64_t scans_around_damage() const { return 0; }

  // Returns the records of the tube's buried jobs, from burial number `from` (inclusive) on, in the
  // order of their burials, at most `limit` of them. O(log jobs + result).
  virtual std::vector<JobRecord> scan_buried(std::uint32_t tube, std::uint64_t from,
                                             std::size_t limit) const = 0;

  // Returns which job of the tube has the key, or had it; none if the key is free. O(log keys).
  virtual std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view key) const = 0;

  // Returns the records of keys whose jobs are gone and that end at `from` or later, by (until,
  // tube, key), at most `limit` of them. O(log keys + result).
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
