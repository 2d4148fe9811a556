// Answers about the server for people, monitors and load balancers (status.h). They report counts
// and no changes, so they do not wait for the disk. Only the audit does.
#include "server/api/status.h"

#include <algorithm>
#include <vector>

#include "carillon/queue/engine.h"
#include "server/api/operations.h"

namespace carillon::server {

namespace {

// An answer shows that the event loop runs.
void get_health(RequestContext& x, const AskedNothing&) {
  answer_at_once(x, write(Health{HealthStatus::kOk}));
}

// Succeeds if the server takes jobs.
void get_readiness(RequestContext& x, const AskedNothing&) {
  x.require_room();
  answer_at_once(x, write(Health{HealthStatus::kReady}));
}

void get_stats(RequestContext& x, const AskedNothing&) {
  const queue::EngineStats stats = x.engine().stats(x.now());
  const Identity& identity = x.service().identity();
  const Counters& counters = x.service().counters();
  const std::uint64_t uptime_ns = x.now().mono_ns - x.service().started_ns();
  answer_at_once(x, write(ServerStats{.version = CARILLON_VERSION,
                                      .id = identity.id,
                                      .host = identity.hostname,
                                      .pid = static_cast<std::uint64_t>(identity.pid),
                                      .uptime_seconds = uptime_ns / 1'000'000'000,
                                      .jobs = stats.jobs,
                                      .tubes = stats.tubes,
                                      .waiting = stats.waiting,
                                      .fired = stats.fired,
                                      .deleted = stats.totals.deleted,
                                      .timeouts = stats.timeouts,
                                      .lateness = shown_lateness(x.service().feed().lateness()),
                                      .connections = counters.connections,
                                      .connections_total = counters.total_connections,
                                      .draining = x.service().draining()}));
}

// The samples are JSON already: each is written once for all clients.
void get_history(RequestContext& x, const GetHistory& asked) {
  const auto& samples = x.service().feed().samples();
  std::string body = R"({"samples":[)";
  const std::size_t most = asked.seconds;
  for (std::size_t i = samples.size() - std::min(most, samples.size()); i < samples.size(); ++i) {
    if (body.back() != '[') body += ',';
    body += samples[i];
  }
  body += "]}";
  x.hold(body.size());
  x.answer({.body = std::move(body)});
}

Audit get_audit(RequestContext& x, const GetAudit& asked) {
  const auto& actions = x.service().feed().actions();
  Audit told;
  const std::size_t most = std::min<std::size_t>(asked.limit, actions.size());
  for (auto at = actions.rbegin(); told.actions.size() < most; ++at) {
    x.hold(sizeof(Action) + at->who.size() + at->target.size() + at->outcome.size());
    told.actions.push_back(*at);
  }
  return told;
}

// Probes have no token.
constexpr Rights kOpen{Needs::kNothing, Reach::kNoTube};

constexpr std::array kStatusRows = {
    operation<get_health>({.method = "GET",
                           .path = "/healthz",
                           .name = "getHealth",
                           .tag = "server",
                           .summary = "The server answers.",
                           .rights = kOpen,
                           .appends = Appends::kNo,
                           .answer = &kShape<Health>}),
    operation<get_readiness>({.method = "GET",
                              .path = "/readyz",
                              .name = "getReadiness",
                              .tag = "server",
                              .summary = "The server takes jobs.",
                              .rights = kOpen,
                              .appends = Appends::kNo,
                              .problems = "503",
                              .answer = &kShape<Health>}),
    operation<get_stats>({.method = "GET",
                          .path = "/v1/stats",
                          .name = "getStats",
                          .tag = "server",
                          .summary = "The counts of all tubes, and the server's own.",
                          .rights = {Needs::kRead, Reach::kNoTube},
                          .appends = Appends::kNo,
                          .answer = &kShape<ServerStats>}),
    operation<get_history>({.method = "GET",
                            .path = "/v1/history",
                            .name = "getHistory",
                            .tag = "server",
                            .summary = "The samples of the last busy seconds, the oldest first.",
                            .rights = {Needs::kRead, Reach::kAllTubes},
                            .appends = Appends::kNo,
                            .problems = "400 503",
                            .answer = &kShape<History>}),
    operation<get_audit>({.method = "GET",
                          .path = "/v1/audit",
                          .name = "getAudit",
                          .tag = "server",
                          .summary = "The last actions of operators, the newest first.",
                          .rights = {Needs::kAdmin, Reach::kAllTubes},
                          .appends = Appends::kNo,
                          .problems = "400 503"})};

}  // namespace

std::span<const Operation> status_operations() {
  return kStatusRows;
}

}  // namespace carillon::server
