// Moves jobs from beanstalkd to Carillon (beanstalkd_import.h).

#include "cli/beanstalkd_import.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/counted.h"

namespace carillon::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// At most this many bytes of bodies, and jobs, are in memory at once.
constexpr std::uint64_t kBytesAtOnce = 16 << 20;
constexpr std::uint64_t kMostAtOnce = 256;

// The ids that are asked for together, and the delayed jobs that are moved before the search for
// others.
constexpr std::uint64_t kIdsAtOnce = 1'024;
constexpr std::size_t kMostDelayed = 1 << 22;

// Delayed jobs that are due sooner are left until they are ready: a worker of beanstalkd might get
// them before they are deleted there.
constexpr seconds kSoon{2};

JobCounts counts_of(const StatsFields& tube) {
  return {.ready = tube.number("current-jobs-ready"),
          .delayed = tube.number("current-jobs-delayed"),
          .buried = tube.number("current-jobs-buried"),
          .reserved = tube.number("current-jobs-reserved")};
}

}  // namespace

// A job of beanstalkd.
struct BeanstalkdImport::Found {
  Job job;
  enum class State : std::uint8_t { kReady, kDelayed, kBuried } state = State::kReady;
  std::uint32_t priority = 0;
  seconds ttr{0};
  seconds delay{0};  // the rest of it

  Found(Job its, State its_state, const StatsFields& stats)
      : job(std::move(its)),
        state(its_state),
        priority(static_cast<std::uint32_t>(stats.number("pri"))),
        ttr(std::max<std::uint64_t>(stats.number("ttr"), 1)) {
    // It has less than a second more than that.
    if (state == State::kDelayed) delay = seconds(stats.number("time-left") + 1);
  }
};

struct BeanstalkdImport::DelayedId {
  std::size_t tube = 0;  // its place in the list
  std::int64_t due = 0;  // seconds from some moment on
  std::uint64_t id = 0;

  auto order() const { return std::tie(tube, due, id); }
};

BeanstalkdImport::BeanstalkdImport(const server::Address& source, Client& target,
                                   const BeanstalkdImportOptions& options, const StopSignals& stop,
                                   ProgressLine& line)
    : address_(source),
      source_(Stream::connect(source, stop.fd())),
      target_(target),
      options_(options),
      stop_(stop),
      line_(line) {
  target.require("put-job", "peek-job 0");
  const StatsFields stats = source_.stats();
  instance_ = options.instance.empty() ? stats.text("id") : options.instance;
  if (stats.text("id") == target.stats().text("id"))
    throw Failure("the jobs would go to the server from which they come");
  const std::uint64_t largest = std::max<std::uint64_t>(stats.number("max-job-size"), 1);
  at_once_ = std::clamp<std::uint64_t>(kBytesAtOnce / largest, 1, kMostAtOnce);
}

std::vector<TubeToImport> BeanstalkdImport::tubes() {
  std::vector<TubeToImport> found;
  for (const std::string& name : source_.tubes()) {
    if (!options_.tubes.empty() && !options_.tubes.contains(name)) continue;
    const auto stats = source_.stats_tube(name);
    if (!stats) continue;
    const TubeToImport tube{.name = name,
                            .counts = counts_of(*stats),
                            .paused = seconds(stats->number("pause-time-left"))};
    if (tube.counts.jobs() + tube.counts.reserved > 0) found.push_back(tube);
  }
  return found;
}

void BeanstalkdImport::run() {
  constexpr milliseconds kRest{500};
  while (true) {
    const std::uint64_t before = moved_.jobs() + already_;
    const std::vector<TubeToImport> tubes = this->tubes();
    JobCounts all;
    for (const TubeToImport& tube : tubes) {
      all.ready += tube.counts.jobs() - tube.counts.delayed;
      all.delayed += tube.counts.delayed;
      drain(tube);
    }
    if (all.jobs() == 0) return;
    if (all.delayed > 0) drain_delayed(tubes);
    // What is left is due very soon.
    const bool idle = moved_.jobs() + already_ == before;
    if (idle && wait_for(stop_.fd(), POLLIN, kRest)) throw Interrupted();
  }
}

// beanstalkd gives out no job of a paused tube.
void BeanstalkdImport::drain(const TubeToImport& tube) {
  if (tube.paused > seconds(0)) {
    use(new_name(tube.name));
    const std::uint64_t paused = static_cast<std::uint64_t>(tube.paused.count()) + 1;
    target_.pause_tube(new_name(tube.name),
                       static_cast<std::uint32_t>(std::min<std::uint64_t>(paused, UINT32_MAX)));
    drain_one_by_one(tube.name, PeekState::kReady);
  } else if (tube.counts.ready > 0) {
    drain_ready(tube.name);
  }
  if (tube.counts.buried > 0) drain_one_by_one(tube.name, PeekState::kBuried);
}

void BeanstalkdImport::drain_ready(const std::string& tube) {
  Client worker(Stream::connect(address_, stop_.fd()));
  worker.watch_only({tube});
  while (true) {
    look_for_stop();
    std::vector<Job> jobs = worker.reserve_now(at_once_);
    if (jobs.empty()) return;
    std::vector<std::uint64_t> ids;
    for (const Job& job : jobs) ids.push_back(job.id);
    const auto stats = worker.stats_of_each(ids);
    std::vector<Found> found;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      // Else its ttr was over, and it is gone.
      if (stats[i]) found.emplace_back(std::move(jobs[i]), Found::State::kReady, *stats[i]);
    }
    move(worker, tube, found);
  }
}

// The jobs come in their order; to see the next one, the first one has to be deleted.
void BeanstalkdImport::drain_one_by_one(const std::string& tube, PeekState state) {
  source_.use(tube);
  while (auto job = source_.peek(state)) {
    look_for_stop();
    const auto stats = source_.stats_job(job->id);
    if (!stats) continue;
    const bool is_buried = stats->text("state") == "buried";
    if (is_buried != (state == PeekState::kBuried) || stats->text("tube") != tube) continue;
    std::vector<Found> found;
    found.emplace_back(*std::move(job), is_buried ? Found::State::kBuried : Found::State::kReady,
                       *stats);
    move(source_, tube, found);
  }
}

std::uint64_t BeanstalkdImport::highest_id_shown(const std::vector<TubeToImport>& tubes) {
  // It counts from beanstalkd's start, so with a log ids are higher.
  std::uint64_t highest = source_.stats().number("total-jobs");
  for (const TubeToImport& tube : tubes) {
    if (tube.counts.delayed == 0) continue;
    source_.use(tube.name);
    if (const auto job = source_.peek(PeekState::kDelayed)) highest = std::max(highest, job->id);
  }
  return highest;
}

// Counts those of these tubes alone: no search finds jobs of a tube that has appeared meanwhile.
std::uint64_t BeanstalkdImport::delayed_jobs(const std::vector<TubeToImport>& tubes) {
  std::uint64_t jobs = 0;
  for (const TubeToImport& tube : tubes) {
    if (const auto stats = source_.stats_tube(tube.name)) jobs += counts_of(*stats).delayed;
  }
  return jobs;
}

// Asks for the ids above and below the highest one that is known, further and further away.
std::vector<BeanstalkdImport::DelayedId> BeanstalkdImport::find_delayed(
    const std::vector<TubeToImport>& tubes) {
  constexpr std::uint64_t kRecount = 64;
  std::map<std::string, std::size_t> places;
  for (const TubeToImport& tube : tubes) places.emplace(tube.name, places.size());
  std::vector<DelayedId> found;
  std::uint64_t below = highest_id_shown(tubes) + 1;
  std::uint64_t above = below;
  std::uint64_t wanted = 0;
  for (std::uint64_t round = 0;; ++round) {
    look_for_stop();
    if (round % kRecount == 0) wanted = std::min<std::uint64_t>(delayed_jobs(tubes), kMostDelayed);
    if (found.size() >= wanted) return found;
    std::vector<std::uint64_t> ids;
    for (std::uint64_t i = 0; i < kIdsAtOnce && below > 1; ++i) ids.push_back(--below);
    for (std::uint64_t i = 0; i < kIdsAtOnce; ++i) ids.push_back(above++);
    const auto now =
        std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now().time_since_epoch());
    const auto stats = source_.stats_of_each(ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!stats[i] || stats[i]->text("state") != "delayed") continue;
      const auto place = places.find(stats[i]->text("tube"));
      if (place == places.end()) continue;
      const auto left = static_cast<std::int64_t>(stats[i]->number("time-left"));
      found.push_back({.tube = place->second, .due = now.count() + left, .id = ids[i]});
    }
  }
}

void BeanstalkdImport::drain_delayed(const std::vector<TubeToImport>& tubes) {
  std::vector<DelayedId> found = find_delayed(tubes);
  std::sort(found.begin(), found.end(),
            [](const DelayedId& a, const DelayedId& b) { return a.order() < b.order(); });
  for (std::size_t at = 0; at < found.size();) {
    std::size_t end = at + 1;
    while (end < found.size() && end - at < at_once_ && found[end].tube == found[at].tube) ++end;
    move_delayed(tubes[found[at].tube].name, {found.data() + at, end - at});
    at = end;
  }
}

void BeanstalkdImport::move_delayed(const std::string& tube, std::span<const DelayedId> jobs) {
  look_for_stop();
  std::vector<std::uint64_t> ids;
  for (const DelayedId& job : jobs) ids.push_back(job.id);
  auto bodies = source_.peek_each(ids);
  const auto stats = source_.stats_of_each(ids);
  std::vector<Found> found;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!bodies[i] || !stats[i] || stats[i]->text("state") != "delayed") continue;
    found.emplace_back(*std::move(bodies[i]), Found::State::kDelayed, *stats[i]);
    if (found.back().delay <= kSoon) found.pop_back();
  }
  move(source_, tube, found);
}

// `source` is the connection that has reserved the jobs, if they are ready ones.
void BeanstalkdImport::move(Client& source, const std::string& tube,
                            const std::vector<Found>& jobs) {
  if (jobs.empty()) return;
  std::vector<NewJob> puts;
  std::vector<std::uint64_t> ids;
  for (const Found& found : jobs) {
    const std::uint64_t id = found.job.id;
    const bool is_buried = found.state == Found::State::kBuried;
    const PutOptions options{
        .delay = found.delay,
        .due_at = {},
        .ttr = found.ttr,
        .priority = found.priority,
        .named = fmt::format("key=beanstalkd:{}:{} on-conflict=ignore key-window=7d{}", instance_,
                             id, is_buried ? " buried=yes" : "")};
    puts.push_back({fmt::format("job {} of tube {}", id, tube), found.job.body, options});
    ids.push_back(id);
  }
  use(new_name(tube));
  const std::vector<PutAnswer> answers = target_.put_each(puts);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (answers[i].result == PutAnswer::Result::kExists) {
      ++already_;
    } else {
      using State = Found::State;
      const State state = jobs[i].state;
      ++(state == State::kReady     ? moved_.ready
         : state == State::kDelayed ? moved_.delayed
                                    : moved_.buried);
    }
  }
  const std::vector<bool> deleted = source.delete_each(ids);
  taken_ += static_cast<std::uint64_t>(std::count(deleted.begin(), deleted.end(), false));
  line_.show(counted(moved_.jobs(), "job") + " moved");
}

const std::string& BeanstalkdImport::new_name(const std::string& tube) const {
  const auto found = options_.tubes.find(tube);
  return found == options_.tubes.end() ? tube : found->second;
}

void BeanstalkdImport::use(const std::string& new_name) {
  if (used_ == new_name) return;
  target_.use(new_name);
  used_ = new_name;
}

void BeanstalkdImport::look_for_stop() {
  if (stop_.came()) throw Interrupted();
}

}  // namespace carillon::cli
