// The answer to a request, before it becomes bytes.
//
//   Reply reply{.status = 201, .body = R"({"id":17})", .headers = {{"Location", "/v1/jobs/17"}}};
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "server/net/bodies.h"

namespace carillon::server {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kBytesType = "application/octet-stream";
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
  std::string_view type = kJsonType;  // the type of the body; not sent without a body
  std::string body = {};
  std::vector<std::pair<std::string_view, std::string>> headers = {};
  // The reply may leave when the store's appends up to this one are durable.
  queue::Sequence durable_at = 0;
  std::optional<LargeReply> large = {};
};

}  // namespace carillon::server
