// The bytes of an answer on the wire (RFC 9112).
//
//   Reply reply{.status = 201, .body = R"({"id":17})", .headers = {{"Location", "/v1/jobs/17"}}};
//   head_of(reply, true, now.utc_ns);     // "HTTP/1.1 201 Created\r\nDate: ... \r\n\r\n"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/request.h"

namespace carillon::server::http {

// Returns the status line, the headers and the empty line. Without keep_alive the connection closes
// after the reply. `utc_ns` is now, in ns since 1970.
std::string head_of(const Reply& reply, bool keep_alive, std::uint64_t utc_ns);

// The same for a stream of events (text/event-stream), which ends when the connection closes.
std::string head_of_events(std::uint64_t utc_ns);

}  // namespace carillon::server::http
