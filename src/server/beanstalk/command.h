// The parser of beanstalk command lines: a line without its CR LF becomes a Command. The session
// (session.cpp) calls parse_command() for each line that a client sends.
//
//   Command c = parse_command("put 0 10 60 5");     // the line without its CR LF
//   c.verb == Verb::kPut; c.delay == 10'000; c.ttr == 60'000; c.bytes == 5;
//
// Pure: no state, no allocation, O(length of the line). It accepts exactly what beanstalkd 1.13
// accepts, because clients and their tests rely on it:
//   - The first prefix in the order of the table in command.cpp wins. So `quitfoo` quits,
//     `peek-readyx` is a malformed `peek-ready`, `stats-job` without its space is a malformed
//     `stats`, and `pause-tubea 1` pauses the tube `a`.
//   - Spaces before a number are skipped. Bytes after the last number make the line malformed,
//     except that `reserve-with-timeout` and `kick` ignore them.
//   - `kick` reads its number as strtoul does: white space and a sign may come first, and the
//     number is taken modulo 2^32.
//   - A NUL anywhere makes the line malformed, whatever the command.
// Carillon's own verbs (`put-ms`, `put-at`, `release-ms`, `reserve-with-timeout-ms`) take u64
// milliseconds (a time-out: at most 2^31 - 1 seconds) and allow no trailing bytes. A verb with a
// body is malformed without its space, and not unknown (`put-job`). The verbs that name keys and
// options may have longer lines; job_options.h reads the options. All times in a Command are
// milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "carillon/queue/job.h"
#include "carillon/queue/retry.h"
#include "server/api/names.h"
#include "server/text/timestamp.h"

namespace carillon::server::beanstalk {

// The end of each line.
inline constexpr std::string_view kEnd = "\r\n";
// The longest line in bytes, with its CR LF.
inline constexpr std::size_t kMaxLine = 224;
// The longest line of a verb that names its options.
inline constexpr std::size_t kMaxLongLine = 1'024;

// The beginning of the reply to a command that the client's token does not allow.
inline constexpr std::string_view kForbidden = "FORBIDDEN ";

enum class Verb : std::uint8_t {
  kUnknown,
  kPut,
  kPutMs,
  kPutAt,
  kPeek,
  kPeekReady,
  kPeekDelayed,
  kPeekBuried,
  kReserve,
  kReserveWithTimeout,
  kReserveWithTimeoutMs,
  kReserveJob,
  kDelete,
  kRelease,
  kReleaseMs,
  kBury,
  kKick,
  kKickJob,
  kTouch,
  kStats,
  kStatsJob,
  kStatsTube,
  kUse,
  kWatch,
  kIgnore,
  kListTubes,
  kListTubeUsed,
  kListTubesWatched,
  kPauseTube,
  kPutJob,
  kPatchJob,
  kCancelJob,
  kPeekJob,
  kFailJob,
  kTouchJob,
  kNameClient,
  kPutJobs,
  kReserveJobs,
  kDeleteJobs,
  kReleaseJobs,
  kAuth,
  kQuit,
};
inline constexpr std::size_t kVerbs = static_cast<std::size_t>(Verb::kQuit) + 1;

// Whether the line can be carried out.
enum class Form : std::uint8_t {
  kGood,
  // Answered BAD_FORMAT.
  kBad,
  // Answered BAD_FORMAT too. But the numbers were understood, so beanstalkd counts the command in
  // its `cmd-…` statistics, and so does Carillon.
  kCountedBad,
};

struct Command {
  Verb verb = Verb::kUnknown;
  Form form = Form::kGood;

  // The verb says which of these are used; the others are 0 or empty.
  queue::JobId id = 0;
  queue::Priority priority = 0;
  queue::Millis delay = 0;    // put, put-ms, release, release-ms; pause-tube: the pause's length
  queue::UtcMs due_at = 0;    // put-at
  queue::Millis ttr = 0;      // put, put-ms, put-at: as sent, even if it is 0
  queue::Millis timeout = 0;  // reserve-with-timeout, reserve-with-timeout-ms
  // What follows the line, also if the form is not good.
  enum class Body : std::uint8_t {
    kNone,
    kCounted,  // a body of `bytes`
    kUnknown,  // a body, but the line does not say of what size
  };
  Body body = Body::kNone;
  std::uint32_t bytes = 0;
  std::uint32_t bound = 0;  // kick, reserve-jobs
  // These point into the line. name-client, auth: `tube` is the name, or the token.
  std::string_view tube;
  // The key, if the verb names a job by its key. Points like `tube`.
  std::string_view key;
  std::string_view options;  // name=value, separated by spaces (job_options.h); as `tube`
};

// Returns the longest line that a command which begins with `bytes` may have, with its CR LF.
std::size_t longest_line(std::string_view bytes);

// Returns true if the command is a put-at with its due time in seconds. The client should get an
// error: in milliseconds the moment is long past, and the job would be ready at once.
constexpr bool is_in_seconds(const Command& command) {
  return command.verb == Verb::kPutAt && command.due_at >= kFirstSeconds &&
         command.due_at < kFirstMillis;
}

// Never fails: a line that is no command gives Verb::kUnknown, a malformed one Form::kBad.
// REQUIRES: `line` contains no CR LF.
Command parse_command(std::string_view line);
// The same for the first bytes of a line that is too long. It is malformed; its body is that of the
// whole line.
Command parse_long_line(std::string_view start);

}  // namespace carillon::server::beanstalk
