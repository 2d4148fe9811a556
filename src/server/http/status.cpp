// How the server is: for people, for monitors, and for load balancers (routes.h).
#include <boost/json.hpp>
#include <memory>

#include "server/api/problem.h"
#include "server/http/counts.h"
#include "server/http/routes.h"
#include "server/metrics/metrics.h"

namespace carillon::server::http {

// The loop answers: the process lives.
void answer_health(RequestContext& x) {
  x.answer({.body = R"({"status":"ok"})"});
}

// The server takes jobs.
void answer_readiness(RequestContext& x) {
  x.require_room();
  x.answer({.body = R"({"status":"ready"})"});
}

void answer_stats(RequestContext& x) {
  const queue::EngineStats stats = x.engine().stats(x.now());
  const Identity& identity = x.service().identity();
  const Counters& counters = x.service().counters();
  const std::uint64_t uptime_ns = x.now().mono_ns - x.service().started_ns();
  x.answer({.body = boost::json::serialize(
                boost::json::object{{"version", CARILLON_VERSION},
                                    {"id", identity.id},
                                    {"host", identity.hostname},
                                    {"pid", identity.pid},
                                    {"uptime_seconds", uptime_ns / 1'000'000'000},
                                    {"jobs", json_of(stats.jobs)},
                                    {"tubes", stats.tubes},
                                    {"waiting", stats.waiting},
                                    {"timeouts", stats.timeouts},
                                    {"connections", counters.connections},
                                    {"connections_total", counters.total_connections},
                                    {"draining", x.service().draining()}})});
}

namespace {

void go_on(RequestContext& x, const std::shared_ptr<metrics::Scrape>& scrape) {
  if (!scrape->look()) return x.later([scrape](RequestContext& then) { go_on(then, scrape); });
  x.answer({.type = metrics::Exposition::kContentType, .body = scrape->text()});
}

}  // namespace

void answer_metrics(RequestContext& x) {
  go_on(x, std::make_shared<metrics::Scrape>(x.service(), x.client()));
}

}  // namespace carillon::server::http
