// One line of the beanstalk protocol, read: which command it is, and its numbers and names.
//
//   Command c = parse_command("put 0 10 60 5");     // the line without its CR LF
//   c.verb == Verb::kPut; c.delay == 10'000; c.ttr == 60'000; c.bytes == 5;
//
// Pure: no state, no allocation, O(length of the line). What is accepted is what beanstalkd 1.13
// accepts, byte for byte, because clients and their tests lean on it:
//   - The first prefix in the order of the table in command.cpp wins. So `quitfoo` quits,
//     `peek-readyx` is a malformed `peek-ready`, `stats-job` without its space is a malformed
//     `stats`, and `pause-tubea 1` pauses the tube `a`.
//   - Spaces before a number are skipped. What follows the last number makes the line malformed,
//     except for `reserve-with-timeout` and `kick`, which do not look.
//   - `kick` reads its number as strtoul does: white space and a sign may come first, and it is
//     taken modulo 2^32.
//   - A NUL anywhere makes the line malformed, whatever the command.
// Carillon's own verbs (`put-ms`, `put-at`, `release-ms`, `reserve-with-timeout-ms`) take u64
// milliseconds and allow no trailing bytes. All times in a Command are milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "carillon/queue/job.h"

namespace carillon::server::beanstalk {

// A line with its CR LF has at most this many bytes, and a tube's name this many.
inline constexpr std::size_t kMaxLine = 224;
inline constexpr std::size_t kMaxTubeName = 200;

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
  kQuit,
};
inline constexpr std::size_t kVerbs = static_cast<std::size_t>(Verb::kQuit) + 1;

// Whether the line can be carried out.
enum class Form : std::uint8_t {
  kGood,
  kBad,  // BAD_FORMAT
  kCountedBad,  // BAD_FORMAT too, but after the numbers were understood: counted in the `cmd-…` statistics, as
                // beanstalkd does
};

struct Command {
  Verb verb = Verb::kUnknown;
  Form form = Form::kGood;

  // Which of these mean something depends on the verb; the others are 0 or empty.
  queue::JobId id = 0;
  queue::Priority priority = 0;
  queue::Millis delay = 0;    // put, put-ms, release, release-ms; the length of a pause
  queue::UtcMs due_at = 0;    // put-at
  queue::Millis ttr = 0;      // put, put-ms, put-at: as asked for, 0 too
  queue::Millis timeout = 0;  // reserve-with-timeout, reserve-with-timeout-ms
  std::uint32_t bytes =
      0;  // put…: of the body. Valid in Form::kCountedBad too: too big a body is swallowed then too
  std::uint32_t bound = 0;  // kick
  std::string_view tube;    // points into the line
};

// REQUIRES: `line` contains no CR LF. Never fails: a line that is no command is Verb::kUnknown, one
// that is malformed Form::kBad.
Command parse_command(std::string_view line);

}  // namespace carillon::server::beanstalk
