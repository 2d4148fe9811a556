// Endpoints: set, shown, paused, tried out and deleted (routes.h). A secret is told once, by the
// answer to the request that has made it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/endpoint.h"
#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/http/filters.h"
#include "server/http/job_fields.h"
#include "server/api/preconditions.h"
#include "server/http/routes.h"
#include "server/push/pusher.h"
#include "server/push/signature.h"
#include "server/push/target_url.h"
#include "server/push/webhook.h"
#include "server/text/json_text.h"
#include "server/text/timestamp.h"

namespace carillon::server::http {

namespace {

namespace json = boost::json;

using queue::Endpoint;

// Secrets of one endpoint, and headers.
constexpr std::size_t kMostSecrets = 8;
constexpr std::size_t kMostHeaders = 32;
// How long the secret before signs, too, after a change: usually, and at most.
constexpr queue::Millis kUsualOverlap = 86'400'000;
constexpr queue::Millis kMostOverlap = 30 * kUsualOverlap;

constexpr std::array<std::string_view, 3> kFormats = {"standard", "cloudevents",
                                                      "cloudevents-json"};

const std::string& endpoint_name_of(const RequestContext& x) {
  const std::string& name = x.names.front();
  if (is_tube_name(name)) return name;
  throw Problem(
      kBadRequest,
      fmt::format("\"{}\": the name of an endpoint is like that of a tube: 1 to {} letters, "
                  "digits and any of -+/;.$_(), and no - in front",
                  name, kMaxTubeName));
}

// Throws Problem if there is none, or if the caller's token is not good for its tube.
const Endpoint& endpoint_of(RequestContext& x) {
  const auto& all = x.engine().endpoints();
  const auto found = all.find(x.names.front());
  if (found == all.end())
    throw Problem(kNotFound, fmt::format("there is no endpoint {}", x.names.front()));
  x.require_tube_of("the endpoint " + x.names.front(), found->second.tube);
  return found->second;
}

// --- what is asked for

// Returns none if it is wrong.
std::optional<std::string> read_secret(Fields& fields, std::string_view name,
                                       const json::value& secret) {
  try {
    if (!secret.is_string()) throw std::invalid_argument("a secret is a string");
    const auto& text = secret.get_string();
    return push::decode_secret({text.data(), text.size()});
  } catch (const std::invalid_argument& error) {
    fields.fault(name, error.what());
    return std::nullopt;
  }
}

void read_secrets(Fields& fields, Endpoint& endpoint) {
  const json::array* const secrets = fields.array("secrets");
  if (secrets == nullptr) return;
  endpoint.secrets.clear();
  if (secrets->empty() || secrets->size() > kMostSecrets)
    return fields.fault("secrets", fmt::format("1 to {} secrets", kMostSecrets));
  for (const json::value& secret : *secrets)
    if (auto bytes = read_secret(fields, "secrets", secret))
      endpoint.secrets.push_back(std::move(*bytes));
}

bool is_header_name(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || kMarks.find(byte) != std::string_view::npos;
  });
}

void read_headers(Fields& fields, Endpoint& endpoint) {
  const json::object* const headers = fields.object("headers");
  if (headers == nullptr) return;
  if (headers->size() > kMostHeaders)
    return fields.fault("headers", fmt::format("at most {} headers", kMostHeaders));
  for (const auto& [key, value] : *headers) {
    const std::string name(key);
    const std::string text(value.is_string() ? std::string_view(value.get_string()) : "");
    if (!is_header_name(name)) {
      fields.fault("headers", fmt::format("\"{}\": not the name of a header", name));
    } else if (push::is_own_header(name)) {
      fields.fault("headers", fmt::format("{}: is set by the server", name));
    } else if (!value.is_string() || !std::all_of(text.begin(), text.end(), [](char byte) {
                 return byte >= ' ' && byte <= '~';
               })) {
      fields.fault("headers", fmt::format("{}: a value is a string of printable ASCII", name));
    } else {
      endpoint.headers.emplace_back(name, text);
    }
  }
}

Endpoint read_endpoint(RequestContext& x) {
  FieldFaults faults;
  const json::object object = x.object();
  Fields fields(object, "", faults);
  Endpoint endpoint;
  endpoint.url = fields.text("url").value_or("");
  try {
    const std::string host = push::parse_target(endpoint.url).host;
    if (const push::Pusher* const pusher = x.service().pusher())
      pusher->guard().require_allowed(host);
  } catch (const std::invalid_argument& error) {
    fields.fault("url", error.what());
  }
  endpoint.tube = fields.text("tube").value_or("");
  if (!is_tube_name(endpoint.tube))
    fields.fault("tube", fmt::format("\"{}\": not the name of a tube", endpoint.tube));
  read_secrets(fields, endpoint);
  if (const auto format = fields.choice("format", {kFormats[0], kFormats[1], kFormats[2]}))
    endpoint.format = static_cast<Endpoint::Format>(*format);
  if (const auto most = fields.number("concurrency", 1, push::kMostConcurrency))
    endpoint.concurrency = static_cast<std::uint32_t>(*most);
  endpoint.timeout = fields.duration("timeout").value_or(endpoint.timeout);
  if (endpoint.timeout < push::kLeastTimeout || endpoint.timeout > push::kMostTimeout)
    fields.fault("timeout", fmt::format("{} ms: {} to {} are allowed", endpoint.timeout,
                                        push::kLeastTimeout, push::kMostTimeout));
  read_headers(fields, endpoint);
  fields.finish();
  faults.throw_if_any();
  return endpoint;
}

// --- what there is

json::array secrets_of(const Endpoint& endpoint, queue::UtcMs now) {
  json::array secrets;
  for (const std::string& secret : push::secrets_at(endpoint, now)) {
    json::object told{{"fingerprint", push::fingerprint_of(secret)}};
    if (!secrets.empty() && endpoint.other_secrets_until != 0)
      told["until"] = format_timestamp(endpoint.other_secrets_until);
    secrets.push_back(std::move(told));
  }
  return secrets;
}

json::object json_of(RequestContext& x, const std::string& name, const Endpoint& endpoint) {
  json::array headers;
  for (const auto& header : endpoint.headers) headers.push_back(json::string(header.first));
  push::PushStatus status;
  if (const push::Pusher* const pusher = x.service().pusher()) status = pusher->status(name);
  json::object told{{"name", name},
                    {"url", to_utf8(endpoint.url)},
                    {"tube", endpoint.tube},
                    {"secrets", secrets_of(endpoint, x.now().utc_ns / 1'000'000)},
                    {"format", kFormats.at(static_cast<std::size_t>(endpoint.format))},
                    {"concurrency", endpoint.concurrency},
                    {"timeout", shown_duration(endpoint.timeout)},
                    {"headers", std::move(headers)},
                    {"state", push::state_of(endpoint, status)},
                    {"created", format_timestamp(endpoint.created)},
                    {"in_flight", status.in_flight},
                    {"delivered", status.delivered},
                    {"retried", status.retried},
                    {"dead", status.dead},
                    {"throttled", status.throttled}};
  if (const std::string why = push::why_disabled(endpoint); !why.empty())
    told["disabled"] = to_utf8(why);
  if (status.rests_for > 0) told["rests_for"] = shown_duration(status.rests_for);
  if (!status.last_error.empty()) {
    told["last_error"] = to_utf8(status.last_error);
    told["last_error_at"] = format_timestamp(status.last_error_at);
  }
  return told;
}

// `secret`: a new one, or an empty text.
void set(RequestContext& x, const Endpoint& endpoint, unsigned status, const std::string& secret) {
  try {
    const auto done = x.engine().set_endpoint(x.now(), x.names.front(), endpoint);
    json::object told = json_of(x, x.names.front(), endpoint_of(x));
    if (!secret.empty()) told["secret"] = push::encode_secret(secret);
    x.answer({.status = status, .body = json::serialize(told), .durable_at = done.durable_at});
  } catch (const std::invalid_argument& error) {
    throw Problem(kBadField, error.what());
  } catch (const queue::OverLimit& error) {
    throw Problem(kConflict, error.what());
  }
}

void answer_trial(RequestContext& x, const push::PostResult& result) {
  json::object told;
  if (result.status != 0) told["status"] = result.status;
  if (!result.error.empty()) told["error"] = to_utf8(result.error);
  if (!result.excerpt.empty()) told["answer"] = to_utf8(result.excerpt);
  told["took"] = shown_duration(static_cast<queue::Millis>(
      std::chrono::duration_cast<std::chrono::milliseconds>(result.took).count()));
  x.outcome = result.status == 0 ? result.error : fmt::format("HTTP {}", result.status);
  x.answer({.body = json::serialize(told), .durable_at = 0});
}

}  // namespace

// Makes it, or puts another in its place. Without secrets it keeps those it has, or gets one.
void put_endpoint(RequestContext& x) {
  const std::string& name = endpoint_name_of(x);
  Endpoint endpoint = read_endpoint(x);
  x.require_tube(endpoint.tube);
  x.require_room();
  const auto& all = x.engine().endpoints();
  const auto before = all.find(name);
  const bool is_new = before == all.end();
  if (!is_new) x.require_tube_of("the endpoint " + name, before->second.tube);
  require_preconditions(x.request, !is_new, "the endpoint " + name);
  std::string secret;
  if (!is_new) {
    endpoint.paused = before->second.paused;
    endpoint.newer = before->second.newer;
    if (endpoint.secrets.empty()) {
      endpoint.secrets = before->second.secrets;
      endpoint.other_secrets_until = before->second.other_secrets_until;
    }
  }
  if (endpoint.secrets.empty()) {
    secret = push::generate_secret();
    endpoint.secrets = {secret};
  }
  set(x, endpoint, is_new ? 201 : 200, secret);
  x.outcome = fmt::format("{}: the jobs of {} go to {}", is_new ? "made" : "changed", endpoint.tube,
                          push::parse_target(endpoint.url).authority);
}

void answer_endpoint(RequestContext& x) {
  const Endpoint& endpoint = endpoint_of(x);
  x.answer({.body = json::serialize(json_of(x, x.names.front(), endpoint)),
            .durable_at = x.engine().last_sequence()});
}

void pause_endpoint(RequestContext& x) {
  Endpoint endpoint = endpoint_of(x);
  endpoint.paused = true;
  set(x, endpoint, 200, "");
}

// One that is disabled or that rests, too.
void resume_endpoint(RequestContext& x) {
  Endpoint endpoint = endpoint_of(x);
  endpoint.paused = false;
  endpoint.disabled.clear();
  if (push::Pusher* const pusher = x.service().pusher()) pusher->end_rest(x.names.front());
  set(x, endpoint, 200, "");
}

// A new secret signs from now on. Those before do so, too, for a while.
void rotate_endpoint(RequestContext& x) {
  Endpoint endpoint = endpoint_of(x);
  FieldFaults faults;
  const json::object object = x.object();
  Fields fields(object, "", faults);
  const queue::Millis overlap = fields.duration("overlap").value_or(kUsualOverlap);
  if (overlap > kMostOverlap)
    fields.fault("overlap", fmt::format("{} ms: at most {}", overlap, kMostOverlap));
  fields.finish();
  faults.throw_if_any();
  x.require_room();
  const queue::UtcMs now = x.now().utc_ns / 1'000'000;
  const auto before = push::secrets_at(endpoint, now);
  std::vector<std::string> secrets{push::generate_secret()};
  if (overlap > 0) secrets.insert(secrets.end(), before.begin(), before.end());
  secrets.resize(std::min(secrets.size(), kMostSecrets));
  endpoint.secrets = std::move(secrets);
  endpoint.other_secrets_until = now + overlap;
  set(x, endpoint, 200, endpoint.secrets.front());
  x.outcome = fmt::format("a new secret; those before sign for {} more", shown_duration(overlap));
}

// The answer tells what the endpoint has answered, whatever that is.
void test_endpoint(RequestContext& x) {
  const Endpoint& endpoint = endpoint_of(x);
  push::Pusher* const pusher = x.service().pusher();
  if (pusher == nullptr || !pusher->try_out(x.client(), x.names.front(), endpoint))
    throw Problem(kConflict, fmt::format("{} tests are under way, and there may be no more",
                                         push::kMostTrials));
  x.await_trial(answer_trial);
}

void delete_endpoint(RequestContext& x) {
  endpoint_of(x);
  const queue::Outcome outcome = x.engine().remove_endpoint(x.now(), x.names.front());
  x.answer({.status = 204, .durable_at = outcome.durable_at});
}

void list_endpoints(RequestContext& x) {
  const Page page = read_page(x.request);
  const auto& all = x.engine().endpoints();
  json::array told;
  auto at = all.upper_bound(page.after);
  std::string last;  // that is shown
  bool goes_on = false;
  for (; at != all.end(); ++at) {
    if (!x.may_use(at->second.tube)) continue;
    goes_on = told.size() == page.size;
    if (goes_on) break;
    last = at->first;
    told.push_back(json_of(x, at->first, at->second));
    x.hold(1 << 10);
  }
  x.answer({.body = json::serialize(json::object{
                {"endpoints", std::move(told)},
                {"next_page_token", goes_on ? json::value(last) : json::value(nullptr)}}),
            .durable_at = x.engine().last_sequence()});
}

}  // namespace carillon::server::http
