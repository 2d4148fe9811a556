// The table of routes, and how a path is matched (routes.h).
#include "server/http/routes.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "server/http/problem.h"

namespace carillon::server::http {

namespace {

constexpr std::array kRoutes = {
    Route{"GET", "/healthz", answer_health},
    Route{"GET", "/readyz", answer_readiness},
    Route{"GET", "/v1/stats", answer_stats},
    Route{"GET", "/metrics", answer_metrics},
    Route{"GET", "/openapi.json", answer_openapi},
    Route{"GET", "/docs", answer_docs},
    Route{"GET", "/", answer_console},
    Route{"GET", "/console/{file}", answer_console_file},

    Route{"POST", "/v1/tubes/{tube}/jobs", put_job},
    Route{"GET", "/v1/tubes/{tube}/jobs", list_jobs},
    Route{"POST", "/v1/tubes/{tube}/jobs:batch", put_jobs},
    Route{"GET", "/v1/jobs/{id}", answer_job},
    Route{"PATCH", "/v1/jobs/{id}", patch_job},
    Route{"DELETE", "/v1/jobs/{id}", cancel_job},
    Route{"GET", "/v1/jobs/{id}/body", answer_job_body},
    Route{"POST", "/v1/jobs/{id}:kick", kick_job},

    Route{"PUT", "/v1/tubes/{tube}/keys/{key}", put_key},
    Route{"GET", "/v1/tubes/{tube}/keys/{key}", answer_key},
    Route{"PATCH", "/v1/tubes/{tube}/keys/{key}", patch_key},
    Route{"DELETE", "/v1/tubes/{tube}/keys/{key}", cancel_key},

    Route{"POST", "/v1/jobs:cancel", cancel_jobs},
    Route{"POST", "/v1/jobs:retry", retry_jobs},
    Route{"POST", "/v1/jobs:move", move_jobs},
    Route{"GET", "/v1/operations/{id}", answer_operation},
    Route{"DELETE", "/v1/operations/{id}", stop_operation},

    Route{"GET", "/v1/schedules", list_schedules},
    Route{"PUT", "/v1/schedules/{name}", put_schedule},
    Route{"GET", "/v1/schedules/{name}", answer_schedule},
    Route{"DELETE", "/v1/schedules/{name}", delete_schedule},
    Route{"POST", "/v1/schedules/{name}:pause", pause_schedule},
    Route{"POST", "/v1/schedules/{name}:resume", resume_schedule},
    Route{"POST", "/v1/schedules/{name}:trigger", trigger_schedule},

    Route{"POST", "/v1/tubes/{tube}:reserve", reserve_jobs},
    Route{"POST", "/v1/leases/{token}:ack", ack_lease},
    Route{"POST", "/v1/leases/{token}:nack", nack_lease},
    Route{"POST", "/v1/leases/{token}:extend", extend_lease},

    Route{"GET", "/v1/tubes", list_tubes},
    Route{"GET", "/v1/tubes/{tube}", answer_tube},
    Route{"PATCH", "/v1/tubes/{tube}", patch_tube},
    Route{"POST", "/v1/tubes/{tube}:pause", pause_tube},
    Route{"POST", "/v1/tubes/{tube}:resume", resume_tube},
    Route{"POST", "/v1/tubes/{tube}:clear", clear_tube},
    Route{"POST", "/v1/tubes/{tube}:kick", kick_tube},
    Route{"GET", "/v1/tubes/{tube}/groups/{group}", answer_group},
    Route{"PATCH", "/v1/tubes/{tube}/groups/{group}", patch_group},
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

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

Match find_route(std::string_view method, std::string_view path) {
  // A verb is part of the last name in a pattern without one: patterns with a verb go first.
  std::string allowed;
  for (const bool with_verb : {true, false}) {
    for (const Route& route : kRoutes) {
      if ((route.pattern.find("}:") != std::string_view::npos) != with_verb) continue;
      const auto names = match(route.pattern, path);
      if (!names) continue;
      if (route.method == method) {
        Match found{.route = &route, .names = {}};
        for (const std::string_view name : *names) found.names.push_back(decoded(name));
        return found;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    }
  }
  if (allowed.empty()) throw Problem(kNotFound, fmt::format("there is no path {}", path));
  throw Problem(kWrongMethod, fmt::format("{} has no {}; it has {}", path, method, allowed))
      .with("Allow", allowed);
}

}  // namespace carillon::server::http
