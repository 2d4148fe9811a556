// If-Match and If-None-Match (RFC 9110, 13.1) for a thing without an entity tag, such as a
// schedule: a PUT may ask that it makes one, or that it changes one.
//
//   require_preconditions(x.request, before.has_value(), "the schedule report");
//
// `If-None-Match: *` is for a thing that is not there, `If-Match: *` for one that is; no thing has
// a tag that If-Match names. For jobs, which have tags, see jobs.h.
#pragma once

#include <string_view>

#include "server/api/request.h"

namespace carillon::server {

// Throws Problem (412) unless the request may be carried out.
void require_preconditions(const Request& request, bool is_there, std::string_view what);

}  // namespace carillon::server
