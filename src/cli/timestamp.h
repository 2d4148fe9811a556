// Points in time as RFC 3339 writes them, to and from UTC milliseconds since 1970-01-01.
//
//   parse_timestamp("2030-01-01T09:00:00Z")            parse_timestamp("2030-01-01T09:00:00.25+02:00")
//
// Source: RFC 3339, section 5.6 (date-time), which lets T and Z be lower case and the T be a space.
// The offset is required: a time without one means a different moment on every machine. A leap
// second (23:59:60 UTC on the last day of a month) is the second after it, as POSIX counts; which
// months had one is not checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace carillon::cli {

/// The years 0 to 9999 in any offset; what is before 1970 becomes 0, which is past as well. A
/// fraction finer than a millisecond is rounded up: a job that is due then must not be early.
/// Throws std::invalid_argument, whose text starts with the value in quotes:
/// `"2030-01-01T09:00:00": lacks its offset from UTC; …`.
std::uint64_t parse_timestamp(std::string_view text);

/// In UTC, with milliseconds: 2030-01-01T07:00:00.250Z. REQUIRES: not after the year 9999,
/// 253402300799999.
std::string format_timestamp(std::uint64_t utc_ms);

}  // namespace carillon::cli
