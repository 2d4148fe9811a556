// Operations on endpoints (endpoints.h).
#include "server/api/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <chrono>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "carillon/queue/engine.h"
#include "server/api/operations.h"
#include "server/api/preconditions.h"
#include "server/api/problem.h"
#include "server/api/request.h"
#include "server/push/signature.h"
#include "server/push/webhook.h"
#include "server/text/duration.h"

namespace carillon::server {

Secret Text<Secret>::parse(std::string_view text) {
  return {push::decode_secret(text)};
}

std::string Text<Secret>::show(const Secret& secret) {
  return push::encode_secret(secret.bytes);
}

namespace {

constexpr std::size_t kMostHeaders = 32;

// What the tag of an endpoint is made of. One that was made anew has another tag.
std::string tagged_settings(const queue::Endpoint& endpoint) {
  std::string settings =
      fmt::format("{} {} {} {} {} {} {} {} {}", endpoint.created, endpoint.url, endpoint.tube,
                  static_cast<int>(endpoint.format), endpoint.concurrency, endpoint.timeout,
                  endpoint.paused, endpoint.disabled, endpoint.other_secrets_until);
  for (const std::string& secret : endpoint.secrets) settings += " " + push::fingerprint_of(secret);
  for (const auto& [name, value] : endpoint.headers) settings += fmt::format(" {}:{}", name, value);
  return settings;
}

std::string name_of_endpoint(const std::string& endpoint) {
  return "the endpoint " + endpoint;
}

// Throws Problem if there is no such endpoint, if the caller's token is not good for its tube, or
// if the request's If-Match does not hold.
const queue::Endpoint& find_endpoint(RequestContext& x, const std::string& name) {
  const auto& all = x.engine().endpoints();
  const auto found = all.find(name);
  if (found == all.end()) throw Problem(kNotFound, fmt::format("there is no endpoint {}", name));
  x.require_tube_of(name_of_endpoint(name), found->second.tube);
  require_match(x.request, tagged_settings(found->second), name_of_endpoint(name));
  return found->second;
}

// --- From a request to what the engine takes.

void check_url(RequestContext& x, Reader& reader, const std::string& url) {
  if (url.empty()) return;  // the field is noted as missing
  try {
    const std::string host = push::parse_target(url).host;
    if (const push::Pusher* const pusher = x.service().pusher())
      pusher->guard().require_allowed(host);
  } catch (const std::invalid_argument& error) {
    reader.fault("url", error.what());
  }
}

bool is_header_name(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || kMarks.find(byte) != std::string_view::npos;
  });
}

void read_header(Reader& reader, const std::string& name, const boost::json::value& value,
                 queue::Endpoint& endpoint) {
  const std::string text(value.is_string() ? std::string_view(value.get_string()) : "");
  const auto is_printable = [](char byte) { return byte >= ' ' && byte <= '~'; };
  if (!is_header_name(name)) {
    reader.fault(name, "not the name of a header");
  } else if (push::is_own_header(name)) {
    reader.fault(name, "is set by the server");
  } else if (!value.is_string() || !std::all_of(text.begin(), text.end(), is_printable)) {
    reader.fault(name, "a value is a text of printable ASCII");
  } else {
    endpoint.headers.emplace_back(name, text);
  }
}

queue::Endpoint endpoint_of(RequestContext& x, Reader& reader, const NewEndpoint& asked) {
  check_url(x, reader, asked.url);
  queue::Endpoint endpoint{.url = asked.url,
                           .tube = asked.tube,
                           .format = asked.format,
                           .concurrency = asked.concurrency,
                           .timeout = asked.timeout.ms};
  for (const Secret& secret : asked.secrets) endpoint.secrets.push_back(secret.bytes);
  const boost::json::object headers = asked.headers.value_or(Json()).object;
  if (headers.size() > kMostHeaders)
    reader.fault("headers", fmt::format("at most {} headers", kMostHeaders));
  reader.within("headers", [&] {
    for (const auto& [name, value] : headers)
      read_header(reader, std::string(name), value, endpoint);
  });
  return endpoint;
}

// --- From what the engine has to the answer.

std::vector<ToldSecret> secrets_of(const queue::Endpoint& endpoint, queue::UtcMs now) {
  std::vector<ToldSecret> secrets;
  for (const std::string& secret : push::secrets_at(endpoint, now)) {
    ToldSecret told{.fingerprint = push::fingerprint_of(secret)};
    if (!secrets.empty() && endpoint.other_secrets_until != 0)
      told.until = Moment{endpoint.other_secrets_until};
    secrets.push_back(std::move(told));
  }
  return secrets;
}

Endpoint shown(RequestContext& x, const std::string& name, const queue::Endpoint& endpoint) {
  push::PushStatus status;
  if (const push::Pusher* const pusher = x.service().pusher()) status = pusher->status(name);
  Endpoint told{.name = name,
                .url = endpoint.url,
                .tube = endpoint.tube,
                .secrets = secrets_of(endpoint, x.now().utc_ns / 1'000'000),
                .format = endpoint.format,
                .concurrency = endpoint.concurrency,
                .timeout = {endpoint.timeout},
                .state = push::state_of(endpoint, status),
                .created = {endpoint.created},
                .in_flight = status.in_flight,
                .delivered = status.delivered,
                .retried = status.retried,
                .dead = status.dead,
                .throttled = status.throttled};
  for (const auto& header : endpoint.headers) told.headers.push_back(header.first);
  if (std::string why = push::why_disabled(endpoint); !why.empty()) told.disabled = std::move(why);
  if (status.rests_for > 0) told.rest_left_ms = status.rests_for;
  if (!status.last_error.empty()) {
    told.last_error = status.last_error;
    told.last_error_at = Moment{status.last_error_at};
  }
  return told;
}

// --- The functions.

// Sets the endpoint, and answers with it; with its newest secret, if `tells_secret`.
void set(RequestContext& x, const std::string& name, const queue::Endpoint& endpoint,
         unsigned status = 200, bool tells_secret = false) {
  try {
    x.engine().set_endpoint(x.now(), name, endpoint);
  } catch (const std::invalid_argument& error) {
    throw Problem(kBadField, error.what());
  } catch (const queue::OverLimit& error) {
    throw Problem(kConflict, error.what());
  }
  const queue::Endpoint& after = x.engine().endpoints().find(name)->second;
  Endpoint told = shown(x, name, after);
  if (tells_secret) told.secret = Secret{endpoint.secrets.front()};
  answer_tagged(x, status, text_of(told), tagged_settings(after));
}

std::string told_change(std::string_view done, const queue::Endpoint& endpoint) {
  return fmt::format("{}: the jobs of {} go to {}", done, endpoint.tube,
                     push::parse_target(endpoint.url).authority);
}

// Keeps what a request does not set; of `before` the secrets, if it names none.
void keep(const queue::Endpoint& before, queue::Endpoint& endpoint) {
  endpoint.paused = before.paused;
  endpoint.newer = before.newer;
  if (!endpoint.secrets.empty()) return;
  endpoint.secrets = before.secrets;
  endpoint.other_secrets_until = before.other_secrets_until;
}

// Makes or replaces an endpoint. A request without secrets keeps the secrets of the endpoint; a new
// endpoint gets one.
void put_endpoint(RequestContext& x, const NewEndpoint& asked, Reader& reader) {
  queue::Endpoint endpoint = endpoint_of(x, reader, asked);
  reader.throw_if_any();
  x.require_tube(endpoint.tube);
  x.require_room();
  const bool is_new = !x.engine().endpoints().contains(asked.name);
  if (is_new) {
    require_no_match(x.request, name_of_endpoint(asked.name));
  } else {
    keep(find_endpoint(x, asked.name), endpoint);
  }
  require_new(x.request, !is_new, name_of_endpoint(asked.name));
  const bool needs_secret = endpoint.secrets.empty();
  if (needs_secret) endpoint.secrets = {push::generate_secret()};
  set(x, asked.name, endpoint, is_new ? 201 : 200, needs_secret);
  x.outcome = told_change(is_new ? "made" : "changed", endpoint);
}

// Returns the body of a PUT that would set the endpoint as it is, without its secrets.
NewEndpoint settings_of(const queue::Endpoint& endpoint) {
  NewEndpoint settings{.name = {},
                       .url = endpoint.url,
                       .tube = endpoint.tube,
                       .format = endpoint.format,
                       .concurrency = endpoint.concurrency,
                       .timeout = {endpoint.timeout}};
  if (!endpoint.headers.empty()) settings.headers = Json();
  for (const auto& [name, value] : endpoint.headers) settings.headers->object[name] = value;
  return settings;
}

// The change is merged into the body of a PUT that would set the endpoint as it is. An endpoint
// that is disabled stays so.
void patch_endpoint(RequestContext& x, const NewEndpoint& asked, Reader& reader) {
  const queue::Endpoint before = find_endpoint(x, asked.name);
  boost::json::object settings = write(settings_of(before));
  settings.erase("secrets");
  if (const auto* const secrets = x.json.if_contains("secrets"); secrets && secrets->is_null())
    reader.fault("secrets", "null: it signs with one at least; :rotate makes a new one");
  NewEndpoint merged;
  merged.name = asked.name;
  read_merged(x, reader, std::move(settings), kShape<NewEndpoint>, &merged);
  queue::Endpoint endpoint = endpoint_of(x, reader, merged);
  reader.throw_if_any();
  x.require_tube(endpoint.tube);
  x.require_room();
  keep(before, endpoint);
  endpoint.disabled = before.disabled;
  set(x, asked.name, endpoint);
  x.outcome = told_change("changed", endpoint);
}

void get_endpoint(RequestContext& x, const EndpointName& asked) {
  const queue::Endpoint& endpoint = find_endpoint(x, asked.name);
  answer_tagged(x, shown(x, asked.name, endpoint), tagged_settings(endpoint));
}

void pause_endpoint(RequestContext& x, const EndpointName& asked) {
  queue::Endpoint endpoint = find_endpoint(x, asked.name);
  endpoint.paused = true;
  set(x, asked.name, endpoint);
}

// Also resumes an endpoint that was disabled after failures, or that rests.
void resume_endpoint(RequestContext& x, const EndpointName& asked) {
  queue::Endpoint endpoint = find_endpoint(x, asked.name);
  endpoint.paused = false;
  endpoint.disabled.clear();
  if (push::Pusher* const pusher = x.service().pusher()) pusher->end_rest(asked.name);
  set(x, asked.name, endpoint);
}

// The new secret signs from now on. Older secrets sign as well until their time is over.
void rotate_endpoint(RequestContext& x, const RotateEndpoint& asked) {
  queue::Endpoint endpoint = find_endpoint(x, asked.name);
  x.require_room();
  const queue::UtcMs now = x.now().utc_ns / 1'000'000;
  const auto before = push::secrets_at(endpoint, now);
  std::vector<std::string> secrets{push::generate_secret()};
  if (asked.overlap.ms > 0) secrets.insert(secrets.end(), before.begin(), before.end());
  secrets.resize(std::min(secrets.size(), kMostSecrets));
  endpoint.secrets = std::move(secrets);
  endpoint.other_secrets_until = now + asked.overlap.ms;
  set(x, asked.name, endpoint, 200, true);
  x.outcome =
      fmt::format("a new secret; those before sign for {} more", shown_duration(asked.overlap.ms));
}

void answer_trial(RequestContext& x, const push::PostResult& result) {
  Trial told;
  if (result.status != 0) told.status = result.status;
  if (!result.error.empty()) told.error = result.error;
  if (!result.excerpt.empty()) told.answer = result.excerpt;
  told.took_ms = static_cast<queue::Millis>(
      std::chrono::duration_cast<std::chrono::milliseconds>(result.took).count());
  x.outcome = result.status == 0 ? result.error : fmt::format("HTTP {}", result.status);
  x.answer({.body = text_of(told)});
}

// The answer reports what the endpoint has answered, also if that is an error.
void test_endpoint(RequestContext& x, const EndpointName& asked) {
  const queue::Endpoint& endpoint = find_endpoint(x, asked.name);
  push::Pusher* const pusher = x.service().pusher();
  if (pusher == nullptr || !pusher->try_out(x.client(), asked.name, endpoint))
    throw Problem(kConflict, fmt::format("{} tests are under way, and there may be no more",
                                         push::kMostTrials));
  x.await_trial(answer_trial);
}

void delete_endpoint(RequestContext& x, const EndpointName& asked) {
  find_endpoint(x, asked.name);
  const queue::Outcome outcome = x.engine().remove_endpoint(x.now(), asked.name);
  x.answer({.status = 204, .durable_at = outcome.durable_at});
}

EndpointPage list_endpoints(RequestContext& x, const ListByName& asked) {
  const auto& all = x.engine().endpoints();
  EndpointPage page;
  for (auto at = all.upper_bound(asked.page_token); at != all.end(); ++at) {
    if (!x.may_use(at->second.tube)) continue;
    if (page.endpoints.size() == asked.page_size) {
      page.next_page_token = page.endpoints.back().name;
      break;
    }
    page.endpoints.push_back(shown(x, at->first, at->second));
    x.hold(1 << 10);
  }
  return page;
}

// --- The rows.

constexpr Rights kAdminOfEndpoints{Needs::kAdmin, Reach::kChecked};

constexpr auto kEndpointRows = rows(
    "endpoints",
    operation<list_endpoints>("GET /v1/endpoints", kAdminOfEndpoints, "Lists endpoints by name."),
    operation<put_endpoint, Endpoint>(
        "PUT /v1/endpoints/{name}", kAdminOfEndpoints,
        "Makes an endpoint, or puts another in its place, and enables it.",
        {.appends = Appends::kYes,
         .audited_as = "endpoint:put",
         .problems = "409 503",
         .headers = "If-Match If-None-There",
         .answer_headers = kTold,
         .also = {201, "It is new.", &kShape<Endpoint>}}),
    operation<get_endpoint, Endpoint>("GET /v1/endpoints/{name}", kAdminOfEndpoints,
                                      "Shows an endpoint, but no secret.", kShowsTagged),
    operation<patch_endpoint, Endpoint>("PATCH /v1/endpoints/{name}", kAdminOfEndpoints,
                                        "Changes what it names, and keeps the rest (RFC 7396).",
                                        {.appends = Appends::kYes,
                                         .merges = true,
                                         .audited_as = "endpoint:patch",
                                         .problems = "404 503",
                                         .headers = "If-Match",
                                         .answer_headers = kTold}),
    operation<pause_endpoint, Endpoint>("POST /v1/endpoints/{name}:pause", kAdminOfEndpoints,
                                        "Nothing is pushed until it is resumed. Its jobs stay.",
                                        changes("endpoint:pause")),
    operation<resume_endpoint, Endpoint>(
        "POST /v1/endpoints/{name}:resume", kAdminOfEndpoints,
        "Jobs are pushed again, after a pause, a 410 or while it rests.",
        changes("endpoint:resume")),
    operation<rotate_endpoint, Endpoint>("POST /v1/endpoints/{name}:rotate", kAdminOfEndpoints,
                                         "Makes a new secret. Those before sign, too, for a while.",
                                         changes("endpoint:rotate")),
    operation<test_endpoint, Trial>(
        "POST /v1/endpoints/{name}:test", kAdminOfEndpoints,
        "Posts a request without a job, and tells what the endpoint answers.",
        {.audited_as = "endpoint:test", .problems = "404", .headers = "If-Match"}),
    operation<delete_endpoint>("DELETE /v1/endpoints/{name}", kAdminOfEndpoints,
                               "Deletes it. The jobs of its tube stay.",
                               {.appends = Appends::kYes,
                                .audited_as = "endpoint:delete",
                                .problems = "404",
                                .headers = "If-Match"}));

}  // namespace

std::span<const Operation> endpoint_operations() {
  return kEndpointRows;
}

}  // namespace carillon::server
