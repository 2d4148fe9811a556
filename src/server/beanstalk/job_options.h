// The options of verbs that have options: name=value, separated by spaces, in any order.
//
//   JobOptions options = parse_job_options("delay=30s key=invoice-7 pri=0", OptionsOf::kPut);
//   options.delay == 30'000; options.key == "invoice-7"; options.priority == 0;
//
//   option         value                                                         of
//   pri            0 (most urgent) to 4294967295                                 put patch fail
//                                                                                release
//   delay          a duration from now (text/duration.h): 250ms, 3s, 1h30m, 40d  put patch fail
//                                                                                release
//   due            a moment: milliseconds since 1970, or RFC 3339                put patch
//                  (server/text/timestamp.h)
//   ttr            a duration of 1s to 4294967295s                               put patch
//   spread         a duration: due later by a part of it                         put
//   expires-in     a duration from now                                           put patch
//   expires-at     a moment, as due, or never                                    put patch
//   at-expiry      drop or dead                                                  put patch
//   key            kKeyRule (server/api/names.h)                                 put
//   on-conflict    reject, ignore, replace, keep-due or debounce                 put
//   key-window     a duration                                                    put
//   group          as a key                                                      put
//   attributes     a JSON object without a space (server/api/job.h)              put patch
//   body           how many bytes the new body has, which follows                patch
//   max-attempts   0 (no last one) to 4294967295                                 put fail
//   backoff        a duration, or the first and the longest: 1s..1h              put
//   jitter         0% to 100%                                                    put
//   lost           fails or returns                                              put
//   buried         yes or no                                                     put
//   reserved       refuse or ask                                                 cancel
//   once           as a key                                                      batch
//   window         a duration                                                    batch
//   timeout        a duration                                                    reserve
//
// (put: put-job, and each job of put-jobs; batch: the line of put-jobs, which has those of put-job
// but `key`, too; patch: patch-job; fail: fail-job; release: release-jobs; cancel: cancel-job;
// reserve: reserve-jobs.) Nothing is clamped: a value out of its range is refused, as is an option
// that is not known, comes twice, or does not go with another one. Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "carillon/queue/job.h"

namespace carillon::server::beanstalk {

struct JobOptions {
  std::optional<queue::Priority> priority = {};
  std::optional<queue::Millis> delay = {};
  std::optional<queue::UtcMs> due = {};
  std::optional<queue::Millis> ttr = {};
  std::optional<queue::Millis> spread = {};
  std::optional<queue::Millis> expires_in = {};
  std::optional<queue::UtcMs> expires_at = {};
  std::optional<queue::AtExpiry> at_expiry = {};
  std::string_view key = {};  // points into the text
  std::optional<queue::OnConflict> on_conflict = {};
  std::optional<queue::Millis> key_window = {};
  std::string_view group = {};  // points into the text
  std::optional<std::uint32_t> body = {};
  struct Backoff {
    queue::Millis first = 0;
    queue::Millis longest = 0;
  };
  std::string_view attributes = {};  // points into the text
  std::optional<std::uint32_t> max_attempts = {};
  std::optional<Backoff> backoff = {};
  std::optional<std::uint32_t> jitter = {};
  std::optional<bool> lost_fails = {};
  std::optional<bool> buried = {};
  std::optional<bool> ask = {};
  std::string_view once = {};  // points into the text
  std::optional<queue::Millis> window = {};
  std::optional<queue::Millis> timeout = {};
};

// Returns what the options of a put ask for. The key and the group point to the same bytes as those
// of the options.
queue::PutOrder put_order(const JobOptions& options);

enum class OptionsOf : std::uint8_t {
  kPut = 1,
  kPatch = 2,
  kFail = 4,
  kCancel = 8,
  kBatch = 16,
  kReserve = 32,
  kRelease = 64,
};

// Throws std::invalid_argument with one line that names the option, its value, and what is allowed.
JobOptions parse_job_options(std::string_view text, OptionsOf of);

// For a job of a batch: sets in `options` what `defaults` names and they do not. REQUIRES:
// `defaults` are options of kBatch.
void set_defaults(std::string_view defaults, JobOptions& options);

// --- Options of a command, name=value, and the types of values that several commands have.
//
//   std::string_view text = "cron=\"30 8 * * MON-FRI\" ttr=2m";
//   take_option(text) is cron and 30 8 * * MON-FRI; take_option(text) is ttr and 2m; then none
//
//   options := [option (SP+ option)*]
//   option  := name "=" value
//   value   := bytes without SP                  the first one is not a double quote
//            | '"' bytes without '"' '"'         which may have spaces
//
// A value outside its range is refused; nothing is clamped. All functions throw
// std::invalid_argument with one line that names what is wrong, and what is allowed. Thread safety:
// pure.

struct OptionText {
  std::string_view name;
  std::optional<std::string_view> value;  // without its quotes
};

// Takes the first option from the front of `text`. Returns none at the end of the text.
std::optional<OptionText> take_option(std::string_view& text);

[[noreturn]] void refuse_option(const std::string& why);

// Returns the text, shortened, with a ? for each byte that is not printable.
std::string quoted(std::string_view text);
// Returns a text that fits into one line of a reply.
std::string printable(std::string_view text);

std::uint32_t number_u32(std::string_view text);
bool yes(std::string_view text);  // or no
// Milliseconds (server/text/duration.h).
queue::Millis duration(std::string_view text);
// The name of a group, with the rule of keys.
std::string_view group(std::string_view text);
// A duration from queue::kMinTtr to queue::kMaxTtr.
queue::Millis ttr(std::string_view text);
// Milliseconds since 1970, or RFC 3339 (server/text/timestamp.h).
queue::UtcMs moment(std::string_view text);

}  // namespace carillon::server::beanstalk
