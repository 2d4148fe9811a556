// Durations as people write them on a command line: 250ms, 3s, 1.5h, 1h30m, 40d.
//
//   parse_duration("1h30m") == 90min
//   parse_duration("0.25s") == 250ms
//   parse_duration("40d") == 960h
//
// The grammar: one or more parts, the larger unit first, each unit at most once.
//
//   duration = part { part } | "0"
//   part     = digits [ "." digits ] unit
//   unit     = "ms" | "s" | "m" | "h" | "d"          a day is 24 hours
//
// A number without a unit is refused, except 0: beanstalkd counts seconds, other tools count
// milliseconds, and a user does not notice at once that a guess is wrong by a factor of 1000.
// Nothing is rounded or clamped: a duration is also refused if it is not a whole number of
// milliseconds, the resolution of Carillon, or if it does not fit into the result.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace carillon::server {

// Returns 0 to 2^63-1 ms (292 million years). Throws std::invalid_argument with a text that starts
// with the value in quotes: `"3 parsecs": not a duration; use e.g. 250ms, 3s, 2h, 40d`.
std::chrono::milliseconds parse_duration(std::string_view text);

// Returns the duration as the API shows it, in whole seconds if it can: 90s, 250ms.
std::string shown_duration(std::uint64_t ms);

// Returns the duration for logs and messages, cut to its two largest units: 0.05s, 2.35s, 1m40s,
// 3h20m, 40d00h. A negative duration gives 0.00s.
std::string short_duration(std::chrono::milliseconds duration);

}  // namespace carillon::server
