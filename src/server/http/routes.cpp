// The table of routes, and how a path is matched (routes.h).
#include "server/http/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <optional>
#include <utility>

#include "server/api/fields.h"
#include "server/api/operations.h"
#include "server/api/problem.h"
#include "server/http/request_reader.h"

namespace carillon::server::http {

namespace {

// For whoever wants to read what the API is.
constexpr Rights kOpen{Needs::kNothing, Reach::kNoTube};

constexpr std::string_view kPage = "page_size page_token";
constexpr std::string_view kNoAudit;
using enum Route::Body;

// The first name of a path is what Reach tells: a tube, a job, a lease or a schedule.
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

    Route{"GET",
          "/v1/tubes/{tube}/jobs",
          {Needs::kRead, Reach::kTube},
          list_jobs,
          kNoAudit,
          "state group key_prefix due_after due_before page_size page_token"},
};

// Takes the first part, up to a slash, from the front.
std::string_view take_part(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

// Returns the names if the path has the form of the pattern.
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

// Returns the words, which have a space between two.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(text.size(), words.back().size() + 1));
  }
  return words;
}

void check_query(const Route& route, const Request& request) {
  FieldFaults faults;
  const std::vector<std::string_view> known = words_of(route.query);
  for (auto at = request.query.begin(); at != request.query.end(); ++at) {
    const std::string& name = at->first;
    std::string why;
    if (known.empty() && route.method != "GET" && route.method != "DELETE") {
      why = fmt::format("a {} has no query; its body says what is meant", route.method);
    } else if (known.empty()) {
      why = fmt::format("{} {} has no query", route.method, route.pattern);
    } else if (std::find(known.begin(), known.end(), name) == known.end()) {
      why =
          fmt::format("there {} {}", known.size() == 1 ? "is only" : "are", fmt::join(known, ", "));
    } else if (std::any_of(request.query.begin(), at,
                           [&](const auto& before) { return before.first == name; })) {
      why = "comes twice";
    } else {
      continue;
    }
    faults.add("?" + name, std::move(why));
  }
  faults.throw_if_any();
}

}  // namespace

namespace {

Route route_of(const Operation& operation) {
  Route route{operation.method, operation.path, operation.rights, operation.run,
              operation.audited_as};
  route.body = operation.has_body() ? kOfTheRoute : kNoFields;
  route.once = operation.first_answer;
  route.operation = &operation;
  return route;
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
  // Patterns with a verb go first. If the path has the form of one, the others do not count: there
  // the verb would be part of a name, and the names that verbs follow have no colon.
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
  if (route.operation != nullptr) return;  // read_request() does
  check_query(route, request);
  const bool has_fields =
      route.method != "GET" && route.method != "DELETE" && route.body == Route::Body::kOfTheRoute;
  if (has_fields || request.body.empty()) return;
  const boost::json::object object = parse_object(request.body);
  FieldFaults faults;
  Fields(object, "", faults).finish();
  faults.throw_if_any();
}

}  // namespace carillon::server::http
