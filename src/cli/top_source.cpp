// What `carillon top` asks the server (top_source.h).
#include "cli/top_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/api/due.h"

namespace carillon::cli {
namespace {

// Names of tubes and storms are asked for so often.
constexpr std::chrono::seconds kSeldom{5};
// A storm is a minute with a tenth of a tube's delayed jobs, and at least so many.
constexpr std::uint64_t kLeastStorm = 20;
constexpr std::uint64_t kShareOfStorm = 10;

// Bounds of how late jobs were: 0 if none has gone out.
std::optional<std::uint64_t> late_if(const StatsFields& stats, std::string_view name) {
  const std::uint64_t ms = stats.has(name) ? stats.number(name) : 0;
  return ms > 0 ? std::optional(ms) : std::nullopt;
}

std::optional<std::uint64_t> number_if(const StatsFields& stats, std::string_view name) {
  return stats.has(name) ? std::optional(stats.number(name)) : std::nullopt;
}

TopJobs jobs_of(const StatsFields& stats) {
  return {.delayed = stats.number("current-jobs-delayed"),
          .ready = stats.number("current-jobs-ready"),
          .reserved = stats.number("current-jobs-reserved"),
          .buried = stats.number("current-jobs-buried")};
}

void add_storms(std::vector<TopStorm>& storms, const TopTube& tube, const server::Due& due) {
  const std::uint64_t least = std::max(kLeastStorm, tube.jobs.delayed / kShareOfStorm);
  for (const server::DueSpan& span : due.spans) {
    if (span.jobs < least) continue;
    storms.push_back(
        {.tube = tube.name, .from = span.from.at, .jobs = span.jobs, .estimated = span.estimated});
  }
}

}  // namespace

TopSnapshot TopSource::take() {
  try {
    if (!client_) {
      client_.emplace(Stream::connect(server_, interrupt_fd_));
      client_->interrupt_on(interrupt_fd_);
      client_->name("carillon-top");
      api_.emplace(server_, interrupt_fd_);
      looked_ = {};
    }
    TopSnapshot shot;
    Totals totals;
    look_at_server(shot, totals);
    look_at_tubes(shot, totals);
    look_for_storms(shot);
    add_rates(shot, totals);
    before_ = std::move(totals);
    return shot;
  } catch (...) {
    client_.reset();
    api_.reset();
    before_ = {};
    throw;
  }
}

void TopSource::look_at_server(TopSnapshot& shot, Totals& totals) {
  using std::chrono::duration_cast;
  const StatsFields stats = client_->stats();
  totals.at = Clock::now();
  totals.server_id = stats.has("id") ? stats.text("id") : std::string();
  totals.puts = stats.number("total-jobs");
  totals.fired = number_if(stats, "total-fired");
  totals.deletes = number_if(stats, "total-deleted");
  shot.at = static_cast<std::uint64_t>(
      duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
  shot.server = to_string(server_);
  shot.version = stats.text("version");
  shot.host = stats.has("hostname") ? stats.text("hostname") : std::string();
  shot.uptime = stats.number("uptime");
  shot.draining = stats.has("draining") && stats.text("draining") == "true";
  shot.jobs = jobs_of(stats);
  shot.connections = stats.number("current-connections");
  shot.waiting = stats.number("current-waiting");
  shot.late_half = late_if(stats, "lateness-p50-ms");
  shot.late_99 = late_if(stats, "lateness-p99-ms");
  shot.late_all = late_if(stats, "lateness-max-ms");
}

// A tube that is gone is left out until names are asked for again.
void TopSource::look_at_tubes(TopSnapshot& shot, Totals& totals) {
  if (totals.at - looked_ >= kSeldom) {
    names_ = client_->tubes();
    all_tubes_ = names_.size();
    if (names_.size() > kMostTubes) names_.resize(kMostTubes);
  }
  shot.all_tubes = all_tubes_;
  for (const auto& stats : client_->stats_of_tubes(names_)) {
    if (!stats) continue;
    TopTube tube{.name = stats->text("name"), .jobs = jobs_of(*stats)};
    tube.waiting = stats->number("current-waiting");
    tube.puts = stats->number("total-jobs");
    tube.deletes = stats->number("cmd-delete");
    tube.paused = stats->number("pause") > 0;
    totals.tubes[tube.name] = {tube.puts, tube.deletes};
    shot.tubes.push_back(std::move(tube));
  }
}

void TopSource::look_for_storms(TopSnapshot& shot) {
  const Clock::time_point now = Clock::now();
  if (client_->knows_own_verbs() && server_.has_http && now - looked_ >= kSeldom) {
    looked_ = now;
    storms_.clear();
    std::vector<const TopTube*> tubes;
    for (const TopTube& tube : shot.tubes)
      if (tube.jobs.delayed >= kLeastStorm) tubes.push_back(&tube);
    std::sort(tubes.begin(), tubes.end(),
              [](const TopTube* a, const TopTube* b) { return a->jobs.delayed > b->jobs.delayed; });
    if (tubes.size() > kMostWithStorms) tubes.resize(kMostWithStorms);
    for (const TopTube* const tube : tubes) {
      server::GetDue asked;
      asked.tube = tube->name;
      try {
        add_storms(storms_, *tube, api_->call<server::Due>("getDue", asked));
      } catch (const Refusal&) {  // the tube is gone
      }
    }
    std::sort(storms_.begin(), storms_.end(),
              [](const TopStorm& a, const TopStorm& b) { return a.from < b.from; });
  }
  shot.storms = storms_;
}

void TopSource::add_rates(TopSnapshot& shot, const Totals& totals) const {
  if (before_.at == Clock::time_point() || before_.server_id != totals.server_id) return;
  const double seconds = std::chrono::duration<double>(totals.at - before_.at).count();
  const auto rate = [seconds](std::uint64_t before, std::uint64_t now) {
    return seconds > 0 && now >= before ? static_cast<double>(now - before) / seconds : 0.0;
  };
  shot.put_rate = rate(before_.puts, totals.puts);
  if (before_.fired && totals.fired) shot.fired_rate = rate(*before_.fired, *totals.fired);
  if (before_.deletes && totals.deletes) shot.delete_rate = rate(*before_.deletes, *totals.deletes);
  for (TopTube& tube : shot.tubes) {
    const auto found = before_.tubes.find(tube.name);
    if (found == before_.tubes.end()) continue;
    tube.put_rate = rate(found->second.first, tube.puts);
    tube.delete_rate = rate(found->second.second, tube.deletes);
  }
}

}  // namespace carillon::cli
