// Answers about the server for people, monitors, load balancers and backups (status.h). Most report
// counts and no changes, so they do not wait for the disk.
#include "server/api/status.h"

#include <algorithm>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/store.h"
#include "server/api/operations.h"
#include "server/api/problem.h"

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
                                      .uptime_ms = uptime_ns / 1'000'000,
                                      .jobs = stats.jobs,
                                      .tubes = stats.tubes,
                                      .waiting = stats.waiting,
                                      .fired = stats.fired,
                                      .acked = stats.totals.deleted,
                                      .timed_out = stats.timeouts,
                                      .lateness_ms = shown_lateness(x.service().feed().lateness()),
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

// The token of a page is the number of its last action.
Audit get_audit(RequestContext& x, const GetAudit& asked) {
  const Feed& feed = x.service().feed();
  const auto& actions = feed.actions();
  const std::uint64_t newest = feed.actions_told();
  const std::uint64_t oldest = newest - actions.size() + 1;
  std::uint64_t number = newest;
  if (asked.page_token.place != 0) number = std::min(number, asked.page_token.place - 1);
  Audit told;
  for (; number >= oldest && told.actions.size() < asked.page_size; --number) {
    const Action& one = actions[number - oldest];
    x.hold(sizeof(Action) + one.who.size() + one.target.size() + one.outcome.size());
    told.actions.push_back(one);
  }
  if (number >= oldest) told.next_page_token = PlaceToken{number + 1};
  return told;
}

// Probes have no token.
constexpr Rights kOpen{Needs::kNothing, Reach::kNoTube};

// --- A checkpoint that lasts as long as the connection of its client.

void create_checkpoint(RequestContext& x, const AskedNothing&) {
  using Begun = CheckpointLease::Begun;
  const Begun begun = x.service().checkpoint().begin(x.client());
  if (begun == Begun::kInMemory) {
    throw Problem(kConflict,
                  "the server keeps its jobs in memory alone: there are no files to copy");
  }
  if (begun == Begun::kBusy) throw Problem(kConflict, "another backup is running");
  x.changed_nothing = true;  // nobody has it when this client has gone
  x.await_checkpoint([](RequestContext& then, const CheckpointResult& result) {
    if (!result.checkpoint) throw queue::StoreError(result.error);
    answer(then, Checkpoint{.number = result.checkpoint->number, .path = result.checkpoint->path});
  });
}

// --- The rows.

constexpr auto kStatusRows = rows(
    "server", operation<get_health, Health>("GET /healthz", kOpen, "The server answers."),
    operation<get_readiness, Health>("GET /readyz", kOpen, "The server takes jobs.",
                                     {.problems = "503"}),
    operation<get_stats, ServerStats>("GET /v1/stats", {Needs::kRead, Reach::kNoTube},
                                      "The counts of all tubes, and the server's own."),
    operation<get_history, History>("GET /v1/history", {Needs::kRead, Reach::kAllTubes},
                                    "The samples of the last busy seconds, the oldest first.",
                                    {.problems = "503"}),
    operation<get_audit>("GET /v1/audit", {Needs::kAdmin, Reach::kAllTubes},
                         "The last actions of operators, the newest first.", {.problems = "503"}),
    operation<create_checkpoint, Checkpoint>(
        "POST /v1/checkpoint", {Needs::kAdmin, Reach::kAllTubes},
        "Makes a checkpoint of all jobs, which is kept until this connection closes.",
        {.audited_as = "checkpoint", .problems = "409"}));

}  // namespace

std::span<const Operation> status_operations() {
  return kStatusRows;
}

}  // namespace carillon::server
