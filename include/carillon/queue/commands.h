// What the commands of an engine are asked, and what they answer. engine.h names the headers
// that have the commands.
//
//   PutOrder order{.priority = 0, .due_in = 3'000, .ttr = 60'000, .key = "order 17"};
//   PutOutcome put = engine.put(client, now, order, "hello");
//   if (put.done()) ...                       // tell the client of put.id, once it may know
//
// An answer reports what was appended to the store. Its `durable_at` says up to which append the
// store must be durable before a client may get the answer.
//
// Thread safety: these are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "carillon/queue/batch_answer.h"
#include "carillon/queue/job.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

using ClientId = std::uint64_t;

// Thrown if a client asks for more than a limit of the engine's options allows. Nothing was
// changed.
class OverLimit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a put with a key does if another job of the tube has the key. A job that is reserved is
// never changed. While the key of a job that is done still counts, it stops only kReject and
// kIgnore.
enum class OnConflict : std::uint8_t {
  kReject,    // nothing; of a batch, nothing is put
  kIgnore,    // nothing; the other jobs of a batch are put
  kReplace,   // the other job becomes what was put, and keeps its id
  kKeepDue,   // as kReplace, but it stays due when it was, if it was not buried
  kDebounce,  // as kReplace, but it is due no earlier than it was
};

// What a put asks for, apart from the body. If `due_at` is given, `due_in` is ignored.
struct PutOrder {
  Priority priority = 0;
  // Milliseconds from now; 0: the job is ready at once.
  Millis due_in = 0;
  // By the wall clock. A moment in the past: the job is ready at once.
  std::optional<UtcMs> due_at = {};
  // Milliseconds, limited to kMinTtr .. kMaxTtr.
  Millis ttr = 60'000;
  // A name that the caller gives the job, of up to kMaxKey bytes: no other job of the tube has it.
  // Empty: the job has no key.
  std::string_view key = {};
  OnConflict on_conflict = OnConflict::kReject;
  // How long the key still counts when the job is done, in ms. A job that was cancelled, that has
  // expired or was dead is not done: its key is free when it is gone (Engine::remove).
  Millis key_window = 0;
  // Groups of a tube take turns, by weight (Engine::set_group): up to kMaxGroup bytes. Jobs without
  // a group take turns as one group of weight 1.
  std::string_view group = {};
  // If it is not RetryPolicy(), it replaces the tube's policy.
  RetryPolicy retry = {};
  // JobExtras::attributes: at most kMaxAttributes bytes.
  std::string_view attributes = {};
  // When the job expires (JobExtras::expires): `expires_in` ms from now, if that is not 0; or at
  // the moment `expires_at` by the wall clock, which goes first.
  Millis expires_in = 0;
  std::optional<UtcMs> expires_at = {};
  AtExpiry at_expiry = AtExpiry::kDrop;
  // The job is due later by a part of `spread`, in ms, that follows from its id. due time +
  // `spread` must not be after kLastDue.
  Millis spread = 0;
  // The job is buried from the start, behind the buried jobs of its tube: no worker gets it.
  bool buried = false;
};

// The answer to a command. It may leave for the client once the store's appends up to `durable_at`
// are durable, because it tells the client about them.
struct Outcome {
  // False if no such job is in a state that the command works on. Nothing was changed then.
  bool done = false;
  Sequence durable_at = 0;
};

struct Leased {
  // Those that have a lease now, in the order of the call.
  std::vector<JobId> jobs;
  Sequence durable_at = 0;  // 0 if no job has one
};

// A client that has held leases since before the start.
struct FormerWorker {
  ClientId client = 0;
  std::string secret;
};

// A body of more than kBodyPiece bytes that is being put in pieces.
struct LargeBody {
  // The id of the job that will have it.
  JobId id = 0;
  // Bytes of the whole body, and bytes that were put so far.
  std::uint32_t bytes = 0;
  std::uint32_t put = 0;
};

// The owner of the key of a put: the state of the job that has it, or kDone if the job that had it
// is done.
enum class KeyOwner : std::uint8_t {
  kNone = 0,  // the put has met no key
  kDelayed = 1,
  kReady = 2,
  kReserved = 3,
  kBuried = 4,
  kDead = 5,
  kDone = 6,  // the job is gone, and the window of its key is not over
};

struct PutOutcome {
  enum class Result : std::uint8_t {
    kInserted,
    kReplaced,  // the job with the key, `id`, was changed
    kExists,    // nothing was changed: the job `id` has the key, or had it and is done
    kReserved,  // nothing was changed: the job `id` has the key, and is reserved
    kTooFar,    // nothing was changed: the job would be due or expire after kLastDue
    kDraining,  // nothing was changed: TubeSettings::refuses_puts
    kTooFast,   // nothing was changed: TubeSettings::put_rate has no token, before `wait`
    kTooMany,   // only for a batch; nothing was changed: that rate never lets in this many at once
  };
  Result result = Result::kTooFar;
  JobId id = 0;  // 0 for kTooFar and the results after it
  Sequence durable_at = 0;
  // For kTooFast: after this many ms there are enough tokens, if nobody else takes them.
  Millis wait = 0;
  // For kExists or kReserved: the state of the job `id`.
  KeyOwner owner = KeyOwner::kNone;

  // Returns true if the store has the body now.
  bool done() const { return result == Result::kInserted || result == Result::kReplaced; }
};

// A job of a batch. The body has at most kBodyPiece bytes.
struct NewJob {
  PutOrder order;
  std::string_view body;
};

// How a batch is put.
struct BatchOrder {
  // A token that the caller chooses for this batch, of up to kMaxKey bytes; empty: no token. For
  // `window` ms, a batch with the same token is not put again, but gets the answer of the first
  // one. Tokens belong to the whole queue, and have nothing to do with the keys of jobs.
  std::string_view once = {};
  Millis window = 86'400'000;
  // Tells batches apart: bytes of a hash of everything in the batch, at most kMaxFingerprint.
  // Empty: every batch with the token counts as this one.
  std::string_view fingerprint = {};
  // If the batch has one job, its answer has the job as it was put (BatchOutcome::job).
  bool tells_job = false;
};

struct BatchOutcome {
  enum class Result : std::uint8_t {
    kPut,
    kAlready,     // nothing was changed: this is the answer to the first batch with the token
    kOtherBatch,  // nothing was changed: a batch with another fingerprint has the token
    kRefused,     // nothing was changed: the job at `stopper` stood in the way
  };
  Result result = Result::kPut;
  // The outcome of each job, in their order; for kRefused, only up to the job at `stopper`. If that
  // one is kTooFast, it is the first job without a token, and its `wait` counts for the whole
  // batch.
  std::vector<PutOutcome> jobs = {};
  std::size_t stopper = 0;
  Sequence durable_at = 0;
  // The one job, if it was put and BatchOrder::tells_job asked for it; else none.
  detail::Rare<JobAsPut> job = {};
};

// What a patch changes in a job. Fields that are not given stay. If `due_at` is given, `due_in` is
// ignored.
struct Patch {
  std::optional<Priority> priority = {};
  std::optional<Millis> ttr = {};             // ms, limited to kMinTtr .. kMaxTtr
  std::optional<Millis> due_in = {};          // ms from now
  std::optional<UtcMs> due_at = {};           // by the wall clock; the past is now
  std::optional<std::string_view> body = {};  // of at most kBodyPiece bytes
  // When it expires, as in PutOrder; `expires_at` may be kNeverExpires.
  std::optional<Millis> expires_in = {};
  std::optional<UtcMs> expires_at = {};
  std::optional<AtExpiry> at_expiry = {};
  std::optional<std::string_view> attributes = {};
};

// The answer to a command for a job that no client may have reserved.
struct ChangeOutcome {
  enum class Result : std::uint8_t {
    kDone,
    kAsked,     // the job is deleted when its reservation ends, and its worker may learn of it
    kReserved,  // nothing was changed
    kNone,      // there is no such job
    kTooFar,    // nothing was changed: the job would be due or expire after kLastDue
  };
  Result result = Result::kNone;
  Sequence durable_at = 0;
};

// What happens to a job whose attempt has failed.
struct FailOutcome {
  enum class Result : std::uint8_t {
    kAgain,      // it comes again after `delay`
    kDead,       // it is buried: it had all its attempts
    kCancelled,  // it was deleted, because its cancel was asked for
    kNone,       // the client does not hold it
  };
  Result result = Result::kNone;
  std::uint32_t attempts = 0;  // how many have failed
  Millis delay = 0;            // ms
  Sequence durable_at = 0;
};

// A kick that is under way.
struct Kick {
  // The most jobs that may become ready.
  std::uint64_t bound = 0;
  // How many jobs have become ready.
  std::uint64_t kicked = 0;
  Sequence durable_at = 0;
  // Nothing is left to do.
  bool done = false;
  // Why it has stopped half-way: jobs that are kicked stay so.
  std::string error = {};

  // Internal: what the first step has found, and where the next step resumes. Otherwise each step
  // would pass all kicked jobs again.
  bool begun = false;
  bool buried = false;
  std::uint32_t lane = 0;  // the lane of a group; 0: the jobs without a group
  std::uint64_t next_burial = 0;
  std::uint64_t burials_before = 0;  // a job that is buried later stays buried
  DueKey next_due{};
};

// What a client gets to know about a job. Store::body() and whole_body() have its body.
struct JobView {
  JobId id = 0;
  JobId body_id = 0;
  Priority priority = 0;
  std::uint32_t body_bytes = 0;
  Sequence durable_at = 0;
};

// A peek at the delayed job that is due first, under way.
struct DelayedPeek {
  // None if there is no such job.
  std::optional<JobView> found;
  // Nothing is left to do.
  bool done = false;

  // Internal: where the next step resumes, and the first job that was found so far, if the tube has
  // groups. `any`: that job has left meanwhile, so the next one found is good enough.
  std::uint32_t lane = 0;
  DueKey next{};
  DueKey best{};
  bool any = false;
};

// How long a list of all tubes is.
struct TubeListSize {
  std::uint64_t tubes = 0;
  // The bytes of their names.
  std::uint64_t name_bytes = 0;
};

// How a reserve ends.
struct Delivery {
  enum class Kind : std::uint8_t {
    // The client has reserved `job` for its ttr.
    kReserved,
    // The ttr of a job that the client holds has less than kSafetyMargin left, and no watched tube
    // has a ready job.
    kDeadlineSoon,
    // The time-out is over, or `stop_waiting` was called.
    kTimedOut,
  };
  ClientId client = 0;
  Kind kind = Kind::kTimedOut;
  JobView job;
};

}  // namespace carillon::queue
