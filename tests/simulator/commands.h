// What a simulated client sends, and how a reply reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/commands.h"
#include "carillon/queue/job.h"

namespace carillon::simulator {

enum class Verb : std::uint8_t {
  kPut,
  kPutJob,
  kPatchJob,
  kCancelJob,
  kReserve,
  kReserveJob,
  kDelete,
  kRelease,
  kBury,
  kTouch,
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
  kStatsJob,
  kStatsTube,
  kCheckpoint,
  kOther,    // is answered OK and a text, or by one word
  kGarbage,  // is answered UNKNOWN_COMMAND or BAD_FORMAT, or closes the connection
  kRefused,  // is answered by `refusal`
  kQuit,
};

struct Command {
  Verb verb = Verb::kOther;
  std::string bytes = {};  // as they are sent
  queue::JobId id = 0;
  queue::Priority priority = 0;
  queue::Millis delay = 0;                  // put, release, pause
  std::optional<queue::UtcMs> due_at = {};  // put
  queue::Millis ttr = 0;                    // put
  std::string body = {};                    // put, patch-job
  std::string key = {};                     // put-job; or names the job, instead of `id`
  queue::OnConflict on_conflict = queue::OnConflict::kReject;  // put-job
  queue::Millis key_window = 0;                                // put-job
  queue::Patch patch = {};                                     // patch-job, without its body
  bool has_body = false;                                       // patch-job
  std::optional<queue::Millis> timeout = {};                   // reserve
  std::uint64_t bound = 0;                                     // kick
  std::string tube = {};     // use, watch, ignore, pause, stats-tube
  std::string refusal = {};  // kRefused
};

// One reply: a line, and perhaps a text behind it.
struct Reply {
  std::string_view line;     // without its CR LF
  std::string_view word;     // the first word of the line
  std::uint64_t number = 0;  // the second one, if it is a number
  std::string_view text;     // of RESERVED, FOUND, OK and CHECKPOINT
};

// Takes the first reply off `bytes`. Returns nothing if it is not there as a whole.
std::optional<Reply> take_reply(std::string_view& bytes);

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
