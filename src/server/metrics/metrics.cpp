// The families of metrics (metrics.h). Their names are an interface: alert rules and dashboards use
// them.
#include "server/metrics/metrics.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace carillon::server::metrics {
namespace {

using queue::JobCounts;
using queue::TubeStats;
using Kind = Exposition::Kind;

constexpr std::pair<std::string_view, std::uint64_t JobCounts::*> kStates[] = {
    {"ready", &JobCounts::ready},
    {"delayed", &JobCounts::delayed},
    {"reserved", &JobCounts::reserved},
    {"buried", &JobCounts::buried},
};

std::vector<TubeStats> first_tubes(Service& service, queue::ClientId client, queue::Now now) {
  queue::Engine& engine = service.engine();
  std::vector<TubeStats> tubes;
  const queue::TubeListSize size = engine.list_tubes(client);
  for (std::uint64_t listed = 0; listed < size.tubes && tubes.size() < kMostTubes;) {
    const auto names = engine.next_tubes(client);
    if (!names) break;
    listed += names->size();
    for (const std::string& name : *names) {
      if (tubes.size() == kMostTubes) break;
      if (auto stats = engine.tube_stats(now, name)) tubes.push_back(std::move(*stats));
    }
  }
  return tubes;
}

void tell_of_jobs(Exposition& text, const std::vector<TubeStats>& tubes, const JobCounts& all) {
  text.family("carillon_jobs", Kind::kGauge, "Jobs, by tube and state.");
  JobCounts others = all;
  for (const TubeStats& tube : tubes) {
    for (const auto& [state, count] : kStates) {
      text.sample({{"tube", tube.name}, {"state", state}}, tube.jobs.*count);
      others.*count -= std::min(others.*count, tube.jobs.*count);
    }
  }
  for (const auto& [state, count] : kStates)
    text.sample({{"tube", "*"}, {"state", state}}, others.*count);
  text.family("carillon_jobs_in_memory", Kind::kGauge, "Jobs of all tubes that are in memory.");
  text.sample({}, all.loaded);
}

void tell_of_tubes(Exposition& text, const std::vector<TubeStats>& tubes) {
  const auto tell = [&](std::string_view name, Kind kind, std::string_view help, auto value) {
    text.family(name, kind, help);
    for (const TubeStats& tube : tubes) text.sample({{"tube", tube.name}}, value(tube));
  };
  tell("carillon_jobs_put_total", Kind::kCounter, "Jobs put since the tube was made.",
       [](const TubeStats& tube) { return tube.jobs.total; });
  tell("carillon_jobs_deleted_total", Kind::kCounter, "Jobs deleted since the tube was made.",
       [](const TubeStats& tube) { return tube.deletes; });
  tell("carillon_workers_waiting", Kind::kGauge, "Clients that wait for a job of the tube.",
       [](const TubeStats& tube) { return tube.waiting; });
  tell("carillon_tube_paused", Kind::kGauge, "1 while the tube is paused.",
       [](const TubeStats& tube) { return std::uint64_t{tube.pause > 0 ? 1u : 0u}; });
}

void tell_of_connections(Exposition& text, const Counters& counters) {
  text.family("carillon_connections", Kind::kGauge, "Open connections.");
  text.sample({}, counters.connections);
  text.family("carillon_connections_opened_total", Kind::kCounter, "Connections since the start.");
  text.sample({}, counters.total_connections);
  text.family("carillon_connections_closed_total", Kind::kCounter,
              "Connections that the server has closed, by the reason.");
  text.sample({{"reason", "stalled"}}, counters.closed_stalled);
  text.sample({{"reason", "idle"}}, counters.closed_idle);
  text.sample({{"reason", "foreign"}}, counters.closed_foreign);
}

void tell_of_server(Exposition& text, Service& service, queue::Now now) {
  text.family("carillon_build_info", Kind::kGauge, "Always 1: which version runs.");
  text.sample({{"version", CARILLON_VERSION}}, std::uint64_t{1});
  text.family("carillon_uptime_seconds", Kind::kGauge, "Since the server started.");
  text.sample({}, static_cast<double>(now.mono_ns - service.started_ns()) / 1e9);
  text.family("carillon_takes_jobs", Kind::kGauge, "0 while every put is refused.");
  text.sample({}, std::uint64_t{service.takes_no_jobs() ? 0u : 1u});
  text.family("carillon_connection_memory_bytes", Kind::kGauge,
              "What all connections take together beyond their own share.");
  text.sample({}, std::uint64_t{service.memory().used()});
  text.family("carillon_commit_duration_seconds", Kind::kHistogram,
              "How long replies wait for a change, as --sync has it; one wait at a time is timed.");
  text.sample(service.commits());
}

}  // namespace

std::string text_of(Service& service, queue::ClientId client, Exposition::Format format) {
  const queue::Now now = service.now();
  const std::vector<TubeStats> tubes = first_tubes(service, client, now);
  const queue::EngineStats all = service.engine().stats(now);
  Exposition text(format);
  tell_of_server(text, service, now);
  tell_of_jobs(text, tubes, all.jobs);
  text.family("carillon_puts_total", Kind::kCounter, "Jobs put since the start, into all tubes.");
  text.sample({}, all.jobs.total);
  text.family("carillon_tubes", Kind::kGauge, "Tubes.");
  text.sample({}, all.tubes);
  tell_of_tubes(text, tubes);
  text.family("carillon_lease_expired_total", Kind::kCounter,
              "Reservations whose time was over before their workers were done.");
  text.sample({}, all.timeouts);
  tell_of_connections(text, service.counters());
  return text.take();
}

}  // namespace carillon::server::metrics
