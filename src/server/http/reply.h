// What a request is answered, and its bytes on the wire (RFC 9112).
//
//   Reply reply{.status = 201, .body = R"({"id":17})", .headers = {{"Location", "/v1/jobs/17"}}};
//   head_of(reply, true, now.utc_ns);     // "HTTP/1.1 201 Created\r\nDate: ... \r\n\r\n"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "server/net/bodies.h"

namespace carillon::server::http {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kProblemJson = "application/problem+json";

// A stored body that is larger than a piece (queue::kBodyPiece). Reply::body is the first piece;
// the session reads and sends the others.
struct LargeReply {
  queue::JobId job = 0;
  BodyName next;  // which piece is next
  std::uint64_t bytes = 0;
  std::uint64_t sent = 0;
};

struct Reply {
  unsigned status = 200;
  std::string_view type = kJson;  // of the body; not sent if there is none
  std::string body = {};
  std::vector<std::pair<std::string_view, std::string>> headers = {};
  // The reply may leave once the store's appends up to here are durable.
  queue::Sequence durable_at = 0;
  std::optional<LargeReply> large = {};
};

// Returns the status line and the headers, with the empty line. The connection closes after the
// reply unless it is to be kept. `utc_ns` is now, in ns since 1970.
std::string head_of(const Reply& reply, bool keep_alive, std::uint64_t utc_ns);

// The same for events without an end (text/event-stream), which the end of the connection ends.
std::string head_of_events(std::uint64_t utc_ns);

}  // namespace carillon::server::http
