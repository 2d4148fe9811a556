// The header Retry-After: seconds, or a date (RFC 9110, section 10.2.3).
//
//   parse_retry_after("120", now) == 120'000
//
// Thread safety: pure.
#pragma once

#include <optional>
#include <string_view>

#include "carillon/queue/job.h"

namespace carillon::server::push {

// An endpoint cannot ask for more than an hour.
inline constexpr queue::Millis kLongestRetryAfter = 3'600'000;

// Returns how long to wait from `now` on, in ms, at most kLongestRetryAfter; 0 for a date that has
// passed; none if it is neither a number nor a date.
std::optional<queue::Millis> parse_retry_after(std::string_view text, queue::UtcMs now);

}  // namespace carillon::server::push
