// Idempotency-Key (idempotency.h).
#include "server/api/idempotency.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/text/fingerprint.h"

namespace carillon::server {

namespace {

constexpr std::string_view kHeader = "idempotency-key";

// The headers in it describe a job whose body is the request's, or are preconditions. Their order
// does not count.
std::string fingerprint_of(const Request& request) {
  std::map<std::string_view, std::string_view> describing;
  for (const auto& [name, value] : request.headers)
    if (name.starts_with("carillon-") || name == "content-type" || name == "if-match" ||
        name == "if-none-match")
      describing.emplace(name, value);
  Fingerprint fingerprint;
  fingerprint.add(request.method);
  fingerprint.add(request.path);
  fingerprint.add(request.body);
  for (const auto& [name, value] : describing) {
    fingerprint.add(name);
    fingerprint.add(value);
  }
  for (const auto& [name, value] : request.query) {
    fingerprint.add("?" + name);
    fingerprint.add(value);
  }
  return fingerprint.bytes();
}

// Returns the key without quotes and without parameters behind them (RFC 8941, 3.1.2), which are
// ignored here. Returns the whole header if it is not a string in quotes.
std::string_view without_quotes(std::string_view header) {
  if (!header.starts_with('"')) return header;
  const std::size_t end = header.find('"', 1);
  const std::string_view rest = header.substr(std::min(end, header.size() - 1) + 1);
  const bool is_string = end != std::string_view::npos && (rest.empty() || rest.starts_with(';'));
  return is_string ? header.substr(1, end - 1) : header;
}

std::uint64_t mono_ms(const RequestContext& x) {
  return x.now().mono_ns / 1'000'000;
}

// Returns true if a put had this key in the last 24 h.
bool was_put(RequestContext& x, const Once& once) {
  return x.service().engine().knows_token(once.own_key);
}

Problem other_request(std::string_view key) {
  return Problem(kOtherRequest,
                 fmt::format("the key {} came with another request in the last 24 h", key));
}

}  // namespace

std::optional<Once> once_of(RequestContext& x) {
  const std::string_view header = x.request.header(kHeader);
  if (header.empty()) return std::nullopt;
  const std::string_view key = without_quotes(header);
  if (!is_key(key) || key.find('"') != std::string_view::npos) {
    throw Problem(kBadRequest, fmt::format("Idempotency-Key: {}: write \"KEY\", with 1 to {} bytes "
                                           "and no space or control character in it",
                                           key, queue::kMaxKey));
  }
  std::string own_key = x.caller().own_key(key);
  std::string fingerprint = fingerprint_of(x.request);
  RequestsInFlight& requests = x.service().requests_in_flight();
  auto claim = requests.claim(own_key, fingerprint, x.service().durable());
  if (!claim && requests.fingerprint_of(own_key) != fingerprint) throw other_request(key);
  if (!claim) {
    throw Problem(kInFlight, fmt::format("the request with the key {} is still carried out", key))
        .with("Retry-After", "1")
        .at_once();
  }
  const auto* first = x.service().idempotency_cache().find(own_key, mono_ms(x));
  if (first != nullptr && first->fingerprint != fingerprint) throw other_request(key);
  return Once{.key = std::string(key),
              .own_key = std::move(own_key),
              .fingerprint = std::move(fingerprint),
              .claim = std::move(*claim)};
}

queue::BatchOrder order_of(const std::optional<Once>& once) {
  queue::BatchOrder order{.tells_job = true};
  if (!once) return order;
  order.once = once->own_key;
  order.fingerprint = once->fingerprint;
  return order;
}

void note_answer(std::optional<Once>& once, const queue::BatchOutcome& outcome) {
  using Result = queue::BatchOutcome::Result;
  if (outcome.result == Result::kOtherBatch) throw other_request(once->key);
  if (once && outcome.result == Result::kPut) once->claim.answered(outcome.durable_at);
}

std::optional<Reply> kept_answer(RequestContext& x, const std::optional<Once>& once) {
  if (!once) return std::nullopt;
  const auto* first = x.service().idempotency_cache().find(once->own_key, mono_ms(x));
  if (first == nullptr) return std::nullopt;
  x.outcome = "answered again";
  Reply reply = first->reply;
  reply.headers.emplace_back("Idempotent-Replayed", "true");
  return reply;
}

std::optional<Reply> first_answer(RequestContext& x, const std::optional<Once>& once) {
  if (once && was_put(x, *once)) throw other_request(once->key);
  return kept_answer(x, once);
}

void keep_answer(RequestContext& x, std::optional<Once>& once, const Reply& reply) {
  if (!once || reply.status >= 300 || x.changed_nothing) return;
  once->claim.answered(reply.durable_at);
  x.service().idempotency_cache().keep(once->own_key, once->fingerprint, reply, mono_ms(x));
}

}  // namespace carillon::server
