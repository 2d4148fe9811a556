// What a job is, in beanstalkd's words: its identity, its states, and the record of it that a store
// keeps.
//
// A *job* has a body and lives in a *tube*, which is a queue with a name. A job is delayed, ready,
// reserved or buried. A worker reserves a ready job for its *ttr* (time to run). Then the worker
// deletes the job, releases it (with a delay, if it likes) or buries it. If the worker does none of
// these before the ttr is over, the job is ready again.
//
//   JobRecord job{.id = 1, .tube = 1, .priority = 0, .due = now + 3'000, .ttr = 60'000};
//
// A time in this header is either a distance in milliseconds (`Millis`) or a moment in UTC
// milliseconds (`UtcMs`).
//
// Thread safety: these are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "carillon/queue/detail/rare.h"

namespace carillon::queue {

// Names a job for ever. Ids rise from 1. No id is ever given twice, not even after a restart.
using JobId = std::uint64_t;

// The last id that a queue gives: 2^43 - 1. JavaScript's numbers hold 53 bits exactly: the other 10
// are left for the number of a shard.
inline constexpr JobId kLastId = (JobId{1} << 43) - 1;

// A smaller number is more urgent. The ready jobs of a tube go out by (priority, id).
using Priority = std::uint32_t;

// A duration in milliseconds.
using Millis = std::uint64_t;

// A moment: milliseconds since 1970-01-01T00:00:00Z.
using UtcMs = std::uint64_t;

// The last moment at which a job may be due: 9999-12-31T23:59:59.999Z, the last one that RFC 3339
// can write. A put that would be due later is refused.
inline constexpr UtcMs kLastDue = 253'402'300'799'999;

// Means "no lead": see JobRecord::lead.
inline constexpr std::int64_t kNoLead = INT64_MIN;

// The smallest ttr. A smaller one becomes this.
inline constexpr Millis kMinTtr = 1'000;
// The largest ttr: 2^32 - 1 seconds, beanstalkd's limit. A larger one becomes this.
inline constexpr Millis kMaxTtr = 4'294'967'295'000;
// In this last part of a job's ttr, a client that holds the job and asks for another one gets
// DEADLINE_SOON.
inline constexpr Millis kSafetyMargin = 1'000;

// Ready jobs with a priority below this count as urgent.
inline constexpr Priority kUrgentBelow = 1'024;

enum class JobState : std::uint8_t { kDelayed, kReady, kReserved, kBuried };

// How often each event happened to a job. Reserves and time-outs are written to the store only
// along with the next change. So after a crash, or when a job that was reserved before its time
// leaves memory, `reserves` and `timeouts` may be too small.
struct JobHistory {
  std::uint32_t reserves = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t releases = 0;
  std::uint32_t buries = 0;
  std::uint32_t kicks = 0;

  friend bool operator==(const JobHistory&, const JobHistory&) = default;
};

// The longest key of a job, in bytes.
inline constexpr std::size_t kMaxKey = 200;
// The most bytes of a fingerprint (BatchOrder).
inline constexpr std::size_t kMaxFingerprint = 32;

// The longest name of a tube, and of a group, in bytes.
inline constexpr std::size_t kMaxTubeName = 200;
inline constexpr std::size_t kMaxGroup = 200;

// The most bytes of JobExtras::attributes.
inline constexpr std::size_t kMaxAttributes = 512;

// What happens to a job when an attempt to do its work has failed (retry.h).
struct RetryPolicy {
  // Bury the job after this many failed attempts. 0: no limit.
  std::uint32_t max_attempts = 0;
  // The job comes again this many ms after the first failed attempt, and twice as many after each
  // further one, up to `backoff_max`. If that is smaller, always after `backoff`.
  Millis backoff = 0;
  Millis backoff_max = 0;
  // Up to this many percent are added to that, a different part for each job: so jobs that failed
  // together do not come again together. 0 to 100.
  std::uint32_t jitter = 0;
  // Whether an attempt fails when its worker's connection is lost.
  bool lost_fails = false;
  // Use this policy, not the tube's, even if all fields above are 0: no attempt is the last one.
  bool counts_empty = false;

  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

// Why a job is dead: the queue has buried it, not a worker.
enum class Death : std::uint8_t {
  kNone = 0,
  kAttempts = 1,  // RetryPolicy::max_attempts have failed
  kExpired = 2,   // it had expired: JobExtras::expires
};

// What happens to a job that has expired.
enum class AtExpiry : std::uint8_t {
  kDrop = 0,  // it is deleted
  kDead = 1,  // it is buried
};

// The expiry of a job that does not expire.
inline constexpr UtcMs kNeverExpires = UINT64_MAX;

// Fields that few jobs have.
struct JobExtras {
  // A name that the caller gives the job, and no other job of the tube has; empty: no key.
  std::string key;
  // How long the key still counts when the job is gone, in ms.
  Millis key_window = 0;
  // The id under which the body is stored, if the job got another body after its put.
  JobId body = 0;
  // If it is not RetryPolicy(), it replaces the tube's policy.
  RetryPolicy retry = {};
  // How many attempts have failed since the job was put, or began anew.
  std::uint32_t attempts = 0;
  Death death = Death::kNone;
  // When the job died, by the wall clock, and the lead then (JobRecord::lead).
  UtcMs died = 0;
  std::int64_t died_lead = kNoLead;
  // The store has a story of the job.
  bool has_story = false;
  // The job must be deleted when its reservation ends.
  bool cancel_asked = false;
  // From this moment on, by the wall clock, no worker gets the job: if it is ready then, or becomes
  // ready later, `at_expiry` says what happens to it. 0: it does not expire.
  UtcMs expires = 0;
  // The lead when `expires` was counted from the time of a command; kNoLead if a client has named
  // the moment. See JobRecord::lead.
  std::int64_t expires_lead = kNoLead;
  AtExpiry at_expiry = AtExpiry::kDrop;
  // Data that the caller keeps with the job. The queue does not read it.
  std::string attributes = {};
  // Fields of the record that a newer version of Carillon has written, as their bytes. This version
  // keeps them, and writes them again with the record.
  std::string newer = {};

  friend bool operator==(const JobExtras&, const JobExtras&) = default;
};

// A job's record, decoded: everything that is stored about a job except its body. Two states are
// not stored:
// - Ready. A job that is not buried and whose due time has passed *is* ready. So becoming ready
//   costs no write.
// - Reserved. A reservation ends with the server that gave it, unless it is a lease (LeaseRecord).
struct JobRecord {
  JobId id = 0;
  // Number of the job's tube, or of the lane of its group: see TubeRecord.
  std::uint32_t tube = 0;
  Priority priority = 0;
  // The job is ready from this moment on; not before, but perhaps later: see `lead`.
  UtcMs due = 0;
  // Position in the order in which the tube's jobs were buried, from 1; 0 if the job is not buried.
  std::uint64_t burial = 0;
  // From kMinTtr to kMaxTtr.
  Millis ttr = kMinTtr;
  // As the last put or release asked.
  Millis delay = 0;
  // The moment of the put.
  UtcMs created = 0;
  // If `due` was counted from the time of a command, by a clock that may have been wrong: how many
  // milliseconds the wall clock was ahead of steady time then (docs/queue.md#time). kNoLead if a
  // client has named the moment.
  std::int64_t lead = kNoLead;
  // The era of steady time in which the lead was taken. A new era begins when the machine boots,
  // and when steady time turns out to have gained too much by a boot.
  std::uint32_t era = 0;
  std::uint32_t body_bytes = 0;
  JobHistory history;
  detail::Rare<JobExtras> extras = {};

  bool buried() const { return burial != 0; }
  // The job is not buried any more; if it was dead, it begins anew. The caller sets `due`.
  void revive(bool has_expired) {
    burial = 0;
    if (extras->death != Death::kNone) begin_anew(has_expired);
  }
  // The job gets all its attempts anew, and is not dead. If it was dead because it had expired, it
  // does not expire again, unless it was given an expiry that is still to come.
  void begin_anew(bool has_expired) {
    if (extras->attempts == 0 && extras->death == Death::kNone) return;
    JobExtras alive = *extras;
    alive.attempts = 0;
    if (alive.death == Death::kExpired && has_expired) alive.expires = 0;
    alive.death = Death::kNone;
    alive.died = 0;
    alive.died_lead = kNoLead;
    extras = detail::Rare(std::move(alive));
  }
  // Names the body in the store.
  JobId body_id() const { return extras->body != 0 ? extras->body : id; }

  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

}  // namespace carillon::queue
