// The families of metrics (metrics.h). Their names are an interface: alert rules and dashboards use
// them.
#include "server/metrics/metrics.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "carillon/queue/scrubber.h"
#include "server/push/pusher.h"

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
  text.sample({{"reason", "token"}}, counters.wrong_tokens);
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
  if (const queue::Scrubber* const scrubber = service.options().scrubber) {
    const queue::Scrubber::Health health = scrubber->health();
    text.family("carillon_damaged_files", Kind::kGauge,
                "Files that were found damaged since the start.");
    text.sample({}, health.damaged_files);
    text.family("carillon_verified_bytes_total", Kind::kCounter,
                "Bytes of files that were read to verify their checksums.");
    text.sample({}, health.bytes);
  }
  text.family("carillon_commit_duration_seconds", Kind::kHistogram,
              "How long replies wait for a change, as --sync has it; one wait at a time is timed.");
  text.sample(service.commits());
}

double seconds(queue::UtcMs ms) {
  return static_cast<double>(ms) / 1'000;
}

}  // namespace

Scrape::Scrape(Service& service, queue::ClientId client) : service_(service), now_(service.now()) {
  queue::Engine& engine = service.engine();
  const queue::TubeListSize size = engine.list_tubes(client);
  for (std::uint64_t listed = 0; listed < size.tubes && tubes_.size() < kMostTubes;) {
    const auto names = engine.next_tubes(client);
    if (!names) break;
    listed += names->size();
    for (const std::string& name : *names) {
      if (tubes_.size() == kMostTubes) break;
      if (auto stats = engine.tube_stats(now_, name))
        tubes_.push_back({.stats = std::move(*stats)});
    }
  }
  engine.end_tube_list(client);
}

bool Scrape::look() {
  constexpr int kAtOnce = 4;
  now_ = service_.now();
  if (timers_.wheel < timers_.kWheels.size()) {
    service_.engine().count_timers(timers_);
    return false;
  }
  for (int n = 0; n < kAtOnce && looked_at_ < tubes_.size(); ++n) {
    if (look_at(tubes_[looked_at_])) ++looked_at_;
  }
  return looked_at_ == tubes_.size();
}

bool Scrape::look_at(SeenTube& tube) {
  using queue::bit_of;
  using queue::JobState;
  const queue::UtcMs now = now_.utc_ns / 1'000'000;
  const queue::JobFilter ready{.states = bit_of(JobState::kReady)};
  const queue::JobFilter delayed{.states = bit_of(JobState::kDelayed), .due_from = now};
  const queue::JobCounts& jobs = tube.stats.jobs;
  if (!tube.ready_is_known) {
    tube.ready_is_known = jobs.ready == 0 || find_first(tube, ready, tube.ready_since);
    return false;
  }
  return jobs.delayed == 0 || find_first(tube, delayed, tube.next_due);
}

bool Scrape::find_first(const SeenTube& tube, const queue::JobFilter& filter,
                        std::optional<queue::UtcMs>& due) {
  constexpr int kMostSteps = 64;
  if (steps_ == 0) list_ = {.tube = tube.stats.name, .filter = filter};
  const auto jobs = service_.engine().list_jobs(now_, list_, 1);
  if (!jobs.empty()) due = jobs.front().record.due;
  const bool is_over = !jobs.empty() || list_.done || ++steps_ == kMostSteps;
  if (is_over) steps_ = 0;
  return is_over;
}

void Scrape::tell_of_jobs(Exposition& text, const JobCounts& all) const {
  text.family("carillon_jobs", Kind::kGauge, "Jobs, by tube and state.");
  JobCounts others = all;
  for (const SeenTube& tube : tubes_) {
    for (const auto& [state, count] : kStates) {
      text.sample({{"tube", tube.stats.name}, {"state", state}}, tube.stats.jobs.*count);
      others.*count -= std::min(others.*count, tube.stats.jobs.*count);
    }
  }
  for (const auto& [state, count] : kStates)
    text.sample({{"tube", "*"}, {"state", state}}, others.*count);
  text.family("carillon_jobs_in_memory", Kind::kGauge, "Jobs of all tubes that are in memory.");
  text.sample({}, all.loaded);
}

void Scrape::tell_of_tubes(Exposition& text) const {
  const auto tell = [&](std::string_view name, Kind kind, std::string_view help, auto value) {
    text.family(name, kind, help);
    for (const SeenTube& tube : tubes_) text.sample({{"tube", tube.stats.name}}, value(tube.stats));
  };
  tell("carillon_jobs_put_total", Kind::kCounter, "Jobs put since the tube was made.",
       [](const TubeStats& tube) { return tube.jobs.total; });
  tell("carillon_jobs_deleted_total", Kind::kCounter, "Jobs deleted since the tube was made.",
       [](const TubeStats& tube) { return tube.deletes; });
  tell("carillon_dead_total", Kind::kCounter, "Jobs that became dead since the tube was made.",
       [](const TubeStats& tube) { return tube.deaths; });
  tell("carillon_dead_deleted_total", Kind::kCounter,
       "Dead jobs whose retention was over, deleted since the tube was made.",
       [](const TubeStats& tube) { return tube.dead_deleted; });
  tell("carillon_puts_too_fast_total", Kind::kCounter,
       "Puts, and batches, that the tube's rate has refused since the tube was made.",
       [](const TubeStats& tube) { return tube.puts_too_fast; });
  tell("carillon_workers_waiting", Kind::kGauge, "Clients that wait for a job of the tube.",
       [](const TubeStats& tube) { return tube.waiting; });
  tell("carillon_tube_paused", Kind::kGauge, "1 while the tube is paused.",
       [](const TubeStats& tube) { return std::uint64_t{tube.pause > 0 ? 1u : 0u}; });
}

void Scrape::tell_of_times(Exposition& text) const {
  const queue::UtcMs now = now_.utc_ns / 1'000'000;
  text.family("carillon_oldest_ready_age_seconds", Kind::kGauge,
              "For how long the ready job that was due first has been due.");
  for (const SeenTube& tube : tubes_) {
    if (tube.stats.jobs.ready > 0 && !tube.ready_since) continue;  // not known
    const queue::UtcMs since = std::min(tube.ready_since.value_or(now), now);
    text.sample({{"tube", tube.stats.name}}, seconds(now - since));
  }
  text.family("carillon_next_due_timestamp_seconds", Kind::kGauge,
              "When the next delayed job is due, in seconds since 1970.");
  for (const SeenTube& tube : tubes_) {
    if (tube.next_due) text.sample({{"tube", tube.stats.name}}, seconds(*tube.next_due));
  }
}

std::optional<queue::Millis> Scrape::oldest_ready_age() const {
  const queue::UtcMs now = now_.utc_ns / 1'000'000;
  std::optional<queue::Millis> oldest;
  for (const SeenTube& tube : tubes_) {
    if (!tube.ready_since) continue;
    oldest = std::max(oldest.value_or(0), now - std::min(now, *tube.ready_since));
  }
  return oldest;
}

std::optional<queue::UtcMs> Scrape::next_due() const {
  std::optional<queue::UtcMs> next;
  for (const SeenTube& tube : tubes_)
    if (tube.next_due) next = std::min(next.value_or(*tube.next_due), *tube.next_due);
  return next;
}

void Scrape::tell_of_wheels(Exposition& text) const {
  text.family("carillon_wheel_timers", Kind::kGauge,
              "Timers that are pending, by wheel and level.");
  for (std::size_t wheel = 0; wheel < timers_.timers.size(); ++wheel) {
    for (std::size_t level = 0; level < queue::TimerCount::kLevels; ++level) {
      text.sample({{"wheel", queue::TimerCount::kWheels[wheel]}, {"level", std::to_string(level)}},
                  std::uint64_t{timers_.timers[wheel][level]});
    }
  }
}

std::string Scrape::text() const {
  const queue::EngineStats all = service_.engine().stats();
  Exposition text;
  tell_of_server(text, service_, now_);
  tell_of_jobs(text, all.jobs);
  text.family("carillon_puts_total", Kind::kCounter, "Jobs put since the start, into all tubes.");
  text.sample({}, all.jobs.total);
  text.family("carillon_jobs_fired_total", Kind::kCounter,
              "Delayed jobs in memory that have become ready because they were due.");
  text.sample({}, all.fired);
  text.family("carillon_job_lateness_seconds", Kind::kHistogram,
              "How long after they were due jobs have gone out to their first workers.");
  text.sample(all.lateness);
  text.family("carillon_tubes", Kind::kGauge, "Tubes.");
  text.sample({}, all.tubes);
  tell_of_tubes(text);
  tell_of_times(text);
  tell_of_wheels(text);
  text.family("carillon_lease_expired_total", Kind::kCounter,
              "Reservations whose time was over before their workers were done.");
  text.sample({}, all.timeouts);
  tell_of_connections(text, service_.counters());
  if (const push::Pusher* const pusher = service_.pusher()) pusher->tell(text);
  return text.take();
}

}  // namespace carillon::server::metrics
