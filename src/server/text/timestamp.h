// RFC 3339 timestamps, converted to and from UTC milliseconds since 1970-01-01.
//
//   parse_timestamp("2030-01-01T09:00:00Z")
//   parse_timestamp("2030-01-01T09:00:00.25+02:00")
//
// Source: RFC 3339, section 5.6 (date-time). It allows lower-case t and z, and a space instead of
// T. The offset from UTC is required: without it, the same text means different moments on
// different machines. A leap second (23:59:60 UTC on the last day of a month) counts as the second
// after it, as in POSIX. Whether that month really had a leap second is not checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace carillon::server {

// Accepts any offset, and times from 1970 to 9999 in UTC. A fraction finer than a millisecond is
// rounded up, so that a job due then is never early; the range applies to the rounded time. Throws
// std::invalid_argument with a text that starts with the value in quotes:
// `"2030-01-01T09:00:00": lacks its offset from UTC; …`.
std::uint64_t parse_timestamp(std::string_view text);

// A number of milliseconds since 1970 from kFirstSeconds on and before kFirstMillis was meant as
// seconds: as seconds these are moments from 2001 to 2969, as milliseconds they lie in 1970.
inline constexpr std::uint64_t kFirstSeconds = 1'000'000'000;
inline constexpr std::uint64_t kFirstMillis = 31'536'000'000;

// Returns the time in UTC with milliseconds: 2030-01-01T07:00:00.250Z.
// REQUIRES: utc_ms <= 253402300799999, the end of the year 9999.
std::string format_timestamp(std::uint64_t utc_ms);

}  // namespace carillon::server
