// A request to the API and the answer to it, independent of the connection that brought it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "server/net/bodies.h"

namespace carillon::server {

struct Request {
  std::string method;  // in capital letters: GET
  // The path as it came: names in it may be percent-encoded (decoded()).
  std::string path;
  // The names and values after the question mark, decoded.
  std::vector<std::pair<std::string, std::string>> query;
  // Names are in small letters.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // The client wants to send another request through the connection.
  bool keep_alive = true;

  // Returns about how many bytes of memory the request takes.
  std::size_t memory() const;
  // These return the value of the header, or of the name in the query; an empty text if the request
  // has no such header or name. `name` is in small letters.
  std::string_view header(std::string_view name) const;
  // Returns true if the Content-Type without its parameters is this one.
  bool is_of_type(std::string_view type) const;
  // Returns the Content-Type without its parameters.
  std::string_view media_type() const;
  std::string_view asked(std::string_view name) const;
};

// --- The answer to a request, before it becomes bytes.
//
//   Reply reply{.status = 201, .body = R"({"id":17})", .headers = {{"Location", "/v1/jobs/17"}}};

inline constexpr std::string_view kJsonType = "application/json";
// What curl -d sends if nobody has named a type: it says nothing of the body.
inline constexpr std::string_view kFormType = "application/x-www-form-urlencoded";
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
  // The reply may leave when the store's appends up to this one are durable, and behind the barrier
  // (ReplyQueue).
  queue::Sequence durable_at = 0;
  // It waits for nothing, because it describes only this server at this moment.
  bool at_once = false;
  std::optional<LargeReply> large = {};
};

}  // namespace carillon::server
