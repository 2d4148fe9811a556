// If-Match and If-None-Match (RFC 9110, 13.1) for things without entity tags, such as schedules.
// With them a PUT only creates, or only changes.
//
//   require_preconditions(x.request, before.has_value(), "the schedule report");
//
// `If-None-Match: *` is for a thing that is not there, `If-Match: *` for one that is; no thing has
// a tag that If-Match names. For jobs, which have tags, see jobs.h.
#pragma once

#include <string_view>

#include "server/api/request.h"

namespace carillon::server {

// Throws Problem (412) if a precondition fails.
void require_preconditions(const Request& request, bool is_there, std::string_view what);

}  // namespace carillon::server
