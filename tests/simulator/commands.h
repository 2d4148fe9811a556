// What a simulated client sends, and how a reply reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/job.h"
#include "carillon/queue/job_listing.h"
#include "carillon/queue/limits.h"
#include "carillon/queue/retry.h"
#include "carillon/queue/schedule.h"

namespace carillon::simulator {

enum class Verb : std::uint8_t {
  kPut,
  kPutJob,
  kPutJobs,
  kPatchJob,
  kCancelJob,
  kBuryJob,
  kReserve,
  kReserveJob,
  kReserveJobs,
  kDelete,
  kDeleteJobs,
  kRelease,
  kReleaseJobs,
  kBury,
  kTouch,
  kTouchJob,
  kFailJob,
  kPeek,
  kPeekJob,
  kPeekReady,
  kPeekDelayed,
  kPeekBuried,
  kKick,
  kKickJob,
  kUse,
  kWatch,
  kIgnore,
  kPause,
  kSetTube,  // and of a group
  kStatsGroup,
  kNameClient,
  kSetSchedule,
  kDeleteSchedule,
  kPauseSchedule,
  kResumeSchedule,
  kTriggerSchedule,
  kShowSchedule,
  kListSchedules,
  kStatsJob,
  kShowJob,  // with its story
  kStatsTube,
  kListJobs,
  kListGroups,
  kDueCounts,
  kCancelJobs,
  kRetryJobs,
  kMoveJobs,
  kSpreadJobs,
  kShowChange,  // an operation that changes many jobs
  kCheckpoint,
  kOther,    // is answered OK and a text, or by one word
  kGarbage,  // is answered UNKNOWN_COMMAND or BAD_FORMAT, or closes the connection
  kRefused,  // is answered by `refusal`
  kQuit,
};

inline bool changes_many(Verb verb) {
  return verb == Verb::kCancelJobs || verb == Verb::kRetryJobs || verb == Verb::kMoveJobs ||
         verb == Verb::kSpreadJobs;
}

// The options of a policy that a put-job or a patchTube names.
struct PolicyOptions {
  std::optional<std::uint32_t> max_attempts = {};
  std::optional<queue::Millis> backoff = {};
  queue::Millis backoff_max = 0;  // if there is a backoff
  std::optional<std::uint32_t> jitter = {};
  std::optional<bool> lost_fails = {};

  bool names_any() const { return max_attempts || backoff || jitter || lost_fails; }
  void apply(queue::RetryPolicy& policy) const {
    policy.max_attempts = max_attempts.value_or(policy.max_attempts);
    if (backoff) policy.backoff_max = backoff_max;
    policy.backoff = backoff.value_or(policy.backoff);
    policy.jitter = jitter.value_or(policy.jitter);
    policy.lost_fails = lost_fails.value_or(policy.lost_fails);
  }
};

// The limits that a patchTube names.
struct LimitOptions {
  std::optional<std::uint64_t> max_running = {};
  std::optional<std::uint64_t> rate = {};
  queue::Millis period = 0;  // if there is a rate, and it is not 0
  std::optional<std::uint64_t> burst = {};

  void apply(queue::Limits& limits) const {
    limits.max_running = max_running.value_or(limits.max_running);
    if (rate) {
      limits.rate = *rate;
      limits.period = period;
      limits.burst = *rate == 0 ? 0 : std::max<std::uint64_t>(limits.burst, 1);
    }
    limits.burst = burst.value_or(limits.burst);
  }
};

// When a job expires, and what becomes of it then, as a put-job or a patch-job names it.
struct ExpiryOptions {
  std::optional<queue::Millis> in = {};
  std::optional<queue::UtcMs> at = {};  // or queue::kNeverExpires
  std::optional<queue::AtExpiry> then = {};
};

struct Command {
  Verb verb = Verb::kOther;
  std::string bytes = {};  // as they are sent
  bool by_http = false;
  queue::JobId id = 0;
  queue::Priority priority = 0;
  queue::Millis delay = 0;                  // put, release, pause
  std::optional<queue::UtcMs> due_at = {};  // put
  queue::Millis ttr = 0;                    // put
  // put, patch-job; fail-job: the error; of commands for many jobs: the data
  std::string body = {};
  std::string key = {};  // put-job; or names the job, instead of `id`
  queue::OnConflict on_conflict = queue::OnConflict::kReject;  // put-job
  queue::Millis key_window = 0;                                // put-job
  queue::Millis spread = 0;                                    // put-job
  bool buried = false;                                         // put-job
  ExpiryOptions expiry = {};                                   // put-job, patch-job
  // patch-job, without its body and expiry; buryJob, release-jobs: the priority
  queue::Patch patch = {};
  bool has_body = false;                        // patch-job
  PolicyOptions policy = {};                    // put-job, patchTube
  LimitOptions limits = {};                     // patchTube
  LimitOptions put_rate = {};                   // patchTube
  std::string group = {};                       // put-job, patchTube, getGroup
  std::optional<std::string> attributes = {};   // put-job, patch-job
  std::optional<std::uint32_t> weight = {};     // patchTube of a group
  std::optional<bool> refuses_puts = {};        // patchTube
  std::optional<queue::Millis> retention = {};  // patchTube
  queue::Failure failure = {};                  // fail-job, without its error
  bool asks = false;                            // cancel-job
  std::optional<queue::Millis> timeout = {};    // reserve
  std::uint64_t bound = 0;                      // kick, listJobs, of many
  std::vector<Command> jobs = {};      // put-jobs: each as a put-job that names all options
  std::vector<queue::JobId> ids = {};  // delete-jobs, release-jobs
  std::string once = {};               // put-jobs
  queue::Millis window = 0;            // put-jobs
  std::uint64_t batch = 0;             // put-jobs: tells its line and data from others
  std::string tube = {};               // use, watch, ignore, pause, stats-tube, and by HTTP
  // listJobs, cancelJobs, retryJobs, moveJobs, spreadJobs
  queue::JobFilter filter = {};
  queue::Millis over = 0;  // a spread; or the width of the spans of due counts
  // For a page that follows on another one: the jobs of the pages before, and the last append when
  // the first page was made. 0: it is not known what they had.
  bool goes_on = false;
  std::set<queue::JobId> listed = {};
  std::uint64_t listed_at = 0;
  std::string to = {};         // moveJobs
  bool dry_run = false;        // for commands that change many jobs
  std::string schedule = {};   // all about schedules but list-schedules: the name
  queue::Schedule asked = {};  // putSchedule
  std::string after = {};      // where a list or a change goes on
  std::string refusal = {};    // kRefused

  // A put that changes nothing when another job has its key.
  bool gives_way() const {
    return on_conflict == queue::OnConflict::kReject || on_conflict == queue::OnConflict::kIgnore;
  }
};

// What a trace shows of it: its line; by HTTP also the body.
std::string shown(const Command& command);

// One reply: a line, and perhaps a text behind it.
struct Reply {
  std::string_view line;     // without its CR LF
  std::string_view word;     // the first word of the line
  std::uint64_t number = 0;  // the second one, if it is a number
  std::string_view text;     // of RESERVED, FOUND and OK; of JOBS and ALREADY: all jobs
  bool alone = false;        // the only job of a JOBS, which has a large body
};

// Takes the first reply off `bytes`. Returns nothing if it is not there as a whole.
std::optional<Reply> take_reply(std::string_view& bytes);

// Returns the replies that follow each other in the text of a JOBS or ALREADY.
std::vector<Reply> replies_in(std::string_view text);

// Takes off `bytes` the line of a reply whose body is a large one (queue::kBodyPiece), which comes
// in pieces. Returns the size of the body, and the reply without it; nothing if there is no such
// reply at the front.
struct LargeHead {
  Reply reply;
  std::uint64_t size = 0;
};
std::optional<LargeHead> take_large_head(std::string_view& bytes);

// The number in the line "NAME: number" of a text, or nothing.
std::optional<std::uint64_t> field_of(std::string_view text, std::string_view name);

}  // namespace carillon::simulator
