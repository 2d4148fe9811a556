// Attempts: when a job whose attempt has failed comes again, when it is dead, and its story.
//
//   RetryPolicy policy{.max_attempts = 5, .backoff = 1'000, .backoff_max = 3'600'000};
//   engine.set_tube(now, "mail", {.retry = policy});        // or PutOrder::retry, of one job
//   ...
//   engine.fail(worker, now, id, {.error = "disk full"});   // again in 1 s, 2 s, 4 s, ...
//   engine.story(now, id);                                  // each attempt: when, who, and why
//
// An attempt begins with a reserve. It has *failed* if its worker says so, if the job's ttr is
// over, or, if the policy says so, if the worker's connection is lost. A release, a bury, or the
// end of the server is no failure. Failed attempts are counted durably. After `max_attempts` of
// them the job is *dead*: buried, with the reason. A kick, a reserve by id, or a patch of its due
// time takes it out of its burial, and gives it all its attempts anew.
//
// Thread safety: these are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/job.h"

namespace carillon::queue {

// Returns how long after its `failed`th failed attempt (from 1) the job comes again, in ms; 0: at
// once. The jitter is drawn from the id and `failed`, so that an engine stays deterministic.
Millis delay_after(const RetryPolicy& policy, JobId id, std::uint32_t failed);

// A story has at most kMaxStory attempts, the last ones. Longer texts are cut to the sizes below.
inline constexpr std::size_t kMaxStory = 10;
inline constexpr std::size_t kMaxError = 1'000;
inline constexpr std::size_t kMaxWorkerName = 100;

// How an attempt ended.
enum class Ending : std::uint8_t {
  kFailed = 1,    // its worker said so
  kTimedOut = 2,  // the ttr was over
  kLost = 3,      // the worker's connection was lost
};

// One failed attempt of a job.
struct Attempt {
  UtcMs at = 0;  // its end
  Ending ending = Ending::kFailed;
  std::string worker;  // the name of the client: Engine::connect
  std::string error;   // what its worker said

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// What a worker says about a failed attempt. Fields that are not given follow from the job and its
// policy.
struct Failure {
  std::string_view error = {};
  std::optional<Priority> priority = {};
  std::optional<Millis> delay = {};                // instead of the back-off, in ms
  std::optional<std::uint32_t> max_attempts = {};  // instead of the policy's
};

}  // namespace carillon::queue
