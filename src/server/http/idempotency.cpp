// Idempotency-Key (idempotency.h).
#include "server/http/idempotency.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "server/beanstalk/command.h"
#include "server/fingerprint.h"
#include "server/http/problem.h"

namespace carillon::server::http {

namespace {

constexpr std::string_view kHeader = "idempotency-key";

// The headers describe the job if the body is the job's own.
std::string fingerprint_of(const Request& request) {
  Fingerprint fingerprint;
  fingerprint.add(request.method);
  fingerprint.add(request.path);
  fingerprint.add(request.body);
  for (const auto& [name, value] : request.headers) {
    if (!name.starts_with("carillon-") && name != "content-type") continue;
    fingerprint.add(name);
    fingerprint.add(value);
  }
  return fingerprint.bytes();
}

}  // namespace

std::optional<Once> once_of(Exchange& x) {
  std::string_view key = x.request.header(kHeader);
  if (key.empty()) return std::nullopt;
  const bool is_quoted = key.size() > 2 && key.front() == '"' && key.back() == '"';
  if (is_quoted) key = key.substr(1, key.size() - 2);
  if (!beanstalk::is_key(key) || key.find('"') != std::string_view::npos) {
    throw Problem(kBadRequest, fmt::format("Idempotency-Key: {}: write \"KEY\", with 1 to {} bytes "
                                           "and no space or control character in it",
                                           key, queue::kMaxKey));
  }
  std::string own_key = x.caller().own_key(key);
  std::string fingerprint = fingerprint_of(x.request);
  PutsInFlight& puts = x.service().puts_in_flight();
  auto claim = puts.claim(own_key, fingerprint, x.service().durable());
  if (!claim && puts.fingerprint_of(own_key) != fingerprint) throw other_request(key);
  if (!claim) {
    throw Problem(kInFlight, fmt::format("the request with the key {} is still carried out", key))
        .with("Retry-After", "1")
        .at_once();
  }
  return Once{.key = std::string(key),
              .own_key = std::move(own_key),
              .fingerprint = std::move(fingerprint),
              .claim = std::move(*claim)};
}

void Once::answered(const queue::BatchOutcome& outcome) {
  if (outcome.result == queue::BatchOutcome::Result::kPut) claim.answered(outcome.durable_at);
}

Problem other_request(std::string_view key) {
  return Problem(kOtherRequest,
                 fmt::format("the key {} came with another request in the last 24 h", key));
}

}  // namespace carillon::server::http
