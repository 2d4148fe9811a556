// The table of routes, the functions of those that are no rows of the API, and how a path is
// matched with them (routes.h).
#include "server/http/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "server/api/feed.h"
#include "server/api/json_body.h"
#include "server/api/operations.h"
#include "server/api/problem.h"
#include "server/api/request.h"
#include "server/http/request_reader.h"
#include "server/metrics/metrics.h"

namespace carillon::server::http {

namespace {

// --- What is no row of the API: it is not JSON, or has no end.

// The text for Prometheus.
void scrape_on(RequestContext& x, const std::shared_ptr<metrics::Scrape>& scrape) {
  if (!scrape->look()) return x.later([scrape](RequestContext& then) { scrape_on(then, scrape); });
  x.answer({.type = metrics::Exposition::kContentType, .body = scrape->text(), .at_once = true});
}

void answer_metrics(RequestContext& x) {
  scrape_on(x, std::make_shared<metrics::Scrape>(x.service(), x.client()));
}

// A new page gets the newest event at once. A page that connects again gets the events that it has
// missed, as far as the server keeps them.
void tell_events(RequestContext& x) {
  const Feed& feed = x.service().feed();
  std::string_view id = x.request.header("last-event-id");
  if (id.empty()) id = x.request.asked("last_event_id");
  const std::uint64_t newest = feed.newest();
  std::uint64_t after = newest == 0 ? 0 : newest - 1;
  if (!id.empty()) {
    const auto number = feed.number_of(id);
    if (!number) throw Problem(kBadRequest, fmt::format("\"{}\": not the id of an event", id));
    after = std::min(*number, newest);
  }
  if (feed.is_full()) {
    throw Problem(kTooManyListeners,
                  fmt::format("{} clients listen to events, and no more may", Feed::kMostListeners))
        .with("Retry-After", "10");
  }
  x.tell_events(after);
}

// --- The routes.

// Anybody may read the description of the API.
constexpr Rights kOpen{Needs::kNothing, Reach::kNoTube};

constexpr std::string_view kNoAudit;

// Reach says what the first name of a path is: a tube, a job, a lease or a schedule.
constexpr std::array kRoutes = {
    Route{"GET", "/metrics", {Needs::kRead, Reach::kAllTubes}, answer_metrics},
    Route{"GET",
          "/v1/events",
          {Needs::kRead, Reach::kAllTubes},
          tell_events,
          kNoAudit,
          "last_event_id"},
    Route{"GET", "/openapi.json", kOpen, answer_openapi},
    Route{"GET", "/docs", kOpen, answer_docs},
    Route{"GET", "/", kOpen, answer_console},
    Route{"GET", "/console/{file}", kOpen, answer_console_file},
};

// Takes the first part, up to a slash, from the front.
std::string_view take_part(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

// Returns the names in the path if it matches the pattern.
std::optional<std::vector<std::string_view>> match(std::string_view pattern,
                                                   std::string_view path) {
  std::vector<std::string_view> names;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = take_part(pattern);
    std::string_view part = take_part(path);
    if (!wanted.starts_with('{')) {
      if (part != wanted) return std::nullopt;
      continue;
    }
    const std::string_view verb = wanted.substr(wanted.find('}') + 1);
    if (!part.ends_with(verb)) return std::nullopt;
    part.remove_suffix(verb.size());
    if (part.empty()) return std::nullopt;
    names.push_back(part);
  }
  return pattern.empty() && path.empty() ? std::optional(names) : std::nullopt;
}

Route route_of(const Operation& operation) {
  return {.method = operation.method,
          .pattern = operation.path,
          .rights = operation.rights,
          .answer = operation.run,
          .audited_as = operation.audited_as,
          .operation = &operation};
}

}  // namespace

std::span<const Route> routes() {
  static const std::vector<Route> all = [] {
    std::vector<Route> made(kRoutes.begin(), kRoutes.end());
    for (const Operation* const operation : operations()) made.push_back(route_of(*operation));
    return made;
  }();
  return all;
}

Match find_route(std::string_view method, std::string_view path) {
  // Patterns with a verb are tried first. If one matches, patterns without a verb do not count: in
  // them the verb would be part of a name, and names before a verb have no colon.
  std::string allowed;
  for (const bool with_verb : {true, false}) {
    if (!allowed.empty()) break;
    for (const Route& route : routes()) {
      if ((route.pattern.find("}:") != std::string_view::npos) != with_verb) continue;
      const auto names = match(route.pattern, path);
      if (!names) continue;
      if (route.method == method) {
        Match found{.route = &route, .names = {}};
        for (const std::string_view name : *names) found.names.push_back(decoded(name));
        return found;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
      if (route.method == "GET") allowed += ", HEAD";
    }
  }
  if (allowed.empty()) throw Problem(kNotFound, fmt::format("there is no path {}", path));
  throw Problem(kWrongMethod, fmt::format("{} has no {}; it has {}", path, method, allowed))
      .with("Allow", allowed);
}

void check_input(const Route& route, const Request& request) {
  if (route.operation != nullptr) return;
  Reader reader(Source::kQuery);
  bool is_asked = false;
  for (const auto& [name, value] : request.query) {
    if (route.query.empty()) {
      reader.fault(name, fmt::format("{} {} has no query", route.method, route.pattern));
    } else if (name != route.query) {
      reader.fault(name, fmt::format("there is only {}", route.query));
    } else if (std::exchange(is_asked, true)) {
      reader.fault(name, "comes twice");
    }
  }
  if (!request.body.empty())
    for (const auto& member : parse_object(request.body))
      reader.fault_at("/" + std::string(member.key()), "there is no such field");
  reader.throw_if_any();
}

}  // namespace carillon::server::http
