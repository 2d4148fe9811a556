// The options of put-job and patch-job: name=value, separated by spaces, in any order.
//
//   JobOptions options = parse_job_options("delay=30s key=invoice-7 pri=0", OptionsOf::kPut);
//   options.delay == 30'000; options.key == "invoice-7"; options.priority == 0;
//
//   option         value
//   pri            0 (most urgent) to 4294967295
//   delay          a duration from now (server/duration.h): 250ms, 3s, 1h30m, 40d
//   due            a moment: milliseconds since 1970, or RFC 3339 (server/timestamp.h)
//   ttr            a duration of 1s to 4294967295s
//   key            1 to 200 bytes, none of them a space or below                   put-job alone
//   on-conflict    reject, ignore, replace, keep-due or debounce                   put-job alone
//   key-window     a duration                                                      put-job alone
//   body           how many bytes the new body has, which follows                  patch-job alone
//
// Nothing is clamped: a value out of its range is refused, as is an option that is not known, comes
// twice, or does not go with another one. Thread safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "carillon/queue/engine.h"

namespace carillon::server::beanstalk {

struct JobOptions {
  std::optional<queue::Priority> priority = {};
  std::optional<queue::Millis> delay = {};
  std::optional<queue::UtcMs> due = {};
  std::optional<queue::Millis> ttr = {};
  std::string_view key = {};  // points into the text
  std::optional<queue::OnConflict> on_conflict = {};
  std::optional<queue::Millis> key_window = {};
  std::optional<std::uint32_t> body = {};
};

enum class OptionsOf : std::uint8_t { kPut, kPatch };

// Throws std::invalid_argument with one line that names the option, its value, and what is allowed.
JobOptions parse_job_options(std::string_view text, OptionsOf of);

// Returns how many bytes of a body follow options that were refused, as far as they say so.
std::optional<std::uint32_t> body_bytes_in(std::string_view text);

}  // namespace carillon::server::beanstalk
