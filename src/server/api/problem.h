// The answer to a request that failed: RFC 9457, application/problem+json.
//
//   throw Problem(kNotFound, "there is no job 17");
//
//   HTTP/1.1 404 Not Found
//   Content-Type: application/problem+json
//
//   {"type":"/docs#not-found","title":"There is no such thing",
//    "status":404,"detail":"there is no job 17"}
//
// If fields are wrong, `errors` names each by its JSON pointer (RFC 6901), with the allowed values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::server {

// A kind of problem. `slug` is the last part of its type; docs/http.md and docs.html describe it.
struct ProblemKind {
  unsigned status;
  std::string_view slug;
  std::string_view title;
};

inline constexpr ProblemKind kBadRequest{400, "bad-request", "The request cannot be understood"};
inline constexpr ProblemKind kBadField{400, "bad-field", "A field of the request is wrong"};
inline constexpr ProblemKind kNoToken{401, "no-token", "The request needs a token"};
inline constexpr ProblemKind kForbidden{403, "forbidden", "The token does not allow it"};
inline constexpr ProblemKind kForeignPage{403, "foreign-page",
                                          "A page of another site has sent the request"};
inline constexpr ProblemKind kNotFound{404, "not-found", "There is no such thing"};
inline constexpr ProblemKind kWrongMethod{405, "wrong-method", "The method does not fit the path"};
inline constexpr ProblemKind kConflict{409, "conflict", "The state does not allow it"};
inline constexpr ProblemKind kLeaseOver{409, "lease-over", "The lease is over"};
inline constexpr ProblemKind kInFlight{409, "in-flight",
                                       "The first request with the Idempotency-Key is in flight"};
inline constexpr ProblemKind kChanged{412, "changed", "It is not what the request expects"};
inline constexpr ProblemKind kNoPrecondition{412, "no-precondition",
                                             "The request takes no such precondition"};
inline constexpr ProblemKind kTooLarge{413, "too-large", "The body is too large"};
inline constexpr ProblemKind kEncoded{415, "encoded", "The body of the request is encoded"};
inline constexpr ProblemKind kWrongType{415, "wrong-type", "The body is of a wrong type"};
inline constexpr ProblemKind kWrongHost{421, "wrong-host", "The server does not have this name"};
inline constexpr ProblemKind kOtherRequest{422, "other-request",
                                           "The Idempotency-Key is that of another request"};
inline constexpr ProblemKind kTooFast{429, "too-fast", "Jobs are put too fast"};
inline constexpr ProblemKind kTooManyListeners{429, "too-many-listeners",
                                               "Too many clients listen to events"};
inline constexpr ProblemKind kLongHeader{431, "long-header", "The header is too long"};
inline constexpr ProblemKind kFailed{500, "failed", "The store has failed"};
inline constexpr ProblemKind kDamaged{500, "damaged", "What is stored is damaged"};
inline constexpr ProblemKind kNoMemory{503, "no-memory", "The server is short of memory"};
inline constexpr ProblemKind kNoSpace{503, "no-space", "The server is short of room for jobs"};
inline constexpr ProblemKind kDraining{503, "draining", "The server takes no new jobs"};
inline constexpr ProblemKind kUnavailable{503, "unavailable", "The server cannot write its log"};

// A wrong field of a JSON body, or a wrong name in the query, whose pointer is ?name.
struct FieldFault {
  std::string pointer;
  std::string detail;
};

// Readers of requests and the functions that answer them throw this. Nothing was changed.
class Problem {
 public:
  explicit Problem(const ProblemKind& kind, std::string detail, std::vector<FieldFault> faults = {})
      : kind_(kind), detail_(std::move(detail)), faults_(std::move(faults)) {}

  // Adds a header to the reply.
  Problem&& with(std::string_view header, std::string value) && {
    headers_.emplace_back(header, std::move(value));
    return std::move(*this);
  }

  // Adds `state`: the state of the job that is in the way.
  Problem&& in_state(std::string_view state) && {
    state_ = state;
    return std::move(*this);
  }

  // The reply reports no change, so it does not wait until one is durable.
  Problem&& at_once() && {
    waits_ = false;
    return std::move(*this);
  }

  const ProblemKind& kind() const { return kind_; }
  bool waits() const { return waits_; }
  const std::string& detail() const { return detail_; }
  const std::vector<std::pair<std::string_view, std::string>>& headers() const { return headers_; }
  // Returns the document for a request of this path.
  std::string json(std::string_view path) const;

 private:
  ProblemKind kind_;
  std::string detail_;
  std::string state_;
  std::vector<FieldFault> faults_;
  std::vector<std::pair<std::string_view, std::string>> headers_;
  bool waits_ = true;
};

// Service::refuses_commands(), or a step of a request has met the outage.
inline Problem unavailable() {
  return Problem(kUnavailable, "the log of the server takes nothing now; try again").at_once();
}

}  // namespace carillon::server
