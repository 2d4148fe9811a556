// Moves the jobs of a running beanstalkd into Carillon: `carillon import --beanstalkd`.
//
// Each job is put into Carillon first, and deleted from beanstalkd when Carillon has acknowledged
// it. It is put with a key that names beanstalkd's process and the job's id there, and that counts
// for a week after the job is gone. So wherever an import is killed, the next one meets the key of
// each job that it finds again, and deletes it from beanstalkd without putting it twice.
//
// No job changes its state in beanstalkd, whenever the import is killed. Ready jobs are reserved,
// so that no worker of beanstalkd gets them meanwhile; they are ready again when the connection is
// lost. Delayed and buried ones are not reserved, because beanstalkd would make them ready then.
// They are read by peek. beanstalkd cannot list delayed jobs: all ids are asked for, beginning at
// those that it shows, until as many were found as it has. A delayed job that is due in less than
// two seconds is left until it is ready. beanstalkd tells a delay in whole seconds, rounded down; a
// second is added, so that no job is early.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/client.h"
#include "cli/import.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/wait.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

using Clock = std::chrono::steady_clock;
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

// Jobs of one tube or of all.
struct JobCounts {
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  std::uint64_t reserved = 0;  // by workers

  std::uint64_t jobs() const { return ready + delayed + buried; }
};

struct TubeToImport {
  std::string name;
  JobCounts counts;
  std::chrono::seconds paused{0};  // what is left of its pause
};

JobCounts counts_of(const StatsFields& tube) {
  return {.ready = tube.number("current-jobs-ready"),
          .delayed = tube.number("current-jobs-delayed"),
          .buried = tube.number("current-jobs-buried"),
          .reserved = tube.number("current-jobs-reserved")};
}

// A job of beanstalkd.
struct Found {
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
    // The delay is rounded down, so up to a second is missing.
    if (state == State::kDelayed) delay = seconds(stats.number("time-left") + 1);
  }
};

struct DelayedId {
  std::size_t tube = 0;  // its place in the list
  std::int64_t due = 0;  // seconds from some moment on
  std::uint64_t id = 0;

  auto order() const { return std::tie(tube, due, id); }
};

class BeanstalkdImport {
 public:
  // Throws Failure if both servers are the same, or if the target is not Carillon.
  BeanstalkdImport(const ImportRequest& request, const StopSignals& stop)
      : request_(request),
        stop_(stop),
        target_(Stream::connect(request.server, stop.fd())),
        source_(Stream::connect(*request.beanstalkd, stop.fd())) {
    target_.require("put-job", "peek-job 0");
    const StatsFields stats = source_.stats();
    instance_ = request.instance.empty() ? stats.text("id") : request.instance;
    if (stats.text("id") == target_.stats().text("id"))
      throw Failure("the jobs would go to the server from which they come");
    const std::uint64_t largest = std::max<std::uint64_t>(stats.number("max-job-size"), 1);
    at_once_ = std::clamp<std::uint64_t>(kBytesAtOnce / largest, 1, kMostAtOnce);
  }

  // Says which of the tubes that are wanted do not exist. That is no failure: an import that is run
  // again has moved all of their jobs, and beanstalkd has forgotten them.
  void remark_missing_tubes() {
    std::set<std::string> missing;
    for (const auto& [tube, new_name] : request_.tubes) missing.insert(tube);
    std::set<std::string> names;
    for (const std::string& name : source_.tubes()) {
      missing.erase(name);
      names.insert(name);
    }
    if (!missing.empty())
      remark(fmt::format("beanstalkd has no tube {}; it has {}", listed(missing), listed(names)));
  }

  // Returns the tubes that are meant and have jobs.
  std::vector<TubeToImport> tubes() {
    std::vector<TubeToImport> found;
    for (const std::string& name : source_.tubes()) {
      if (!request_.tubes.empty() && !request_.tubes.contains(name)) continue;
      const auto stats = source_.stats_tube(name);
      if (!stats) continue;
      const TubeToImport tube{.name = name,
                              .counts = counts_of(*stats),
                              .paused = seconds(stats->number("pause-time-left"))};
      if (tube.counts.jobs() + tube.counts.reserved > 0) found.push_back(tube);
    }
    return found;
  }

  // Moves jobs until beanstalkd has no job that is ready, delayed or buried. Throws
  // Interrupted if a signal has come, and Failure if something went wrong; it can be run again.
  void run() {
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
      if (all.jobs() == 0) return line_.clear();
      if (all.delayed > 0) drain_delayed(tubes);
      // What is left is due very soon.
      const bool idle = moved_.jobs() + already_ == before;
      if (idle && wait_for(stop_.fd(), POLLIN, kRest)) throw Interrupted();
    }
  }

  const std::string& instance() const { return instance_; }
  // Returns the numbers of jobs that were put, by the states that they had.
  const JobCounts& moved() const { return moved_; }
  // Jobs that an import before had put already.
  std::uint64_t already() const { return already_; }
  // Jobs that were put, and that a worker of beanstalkd took before they were deleted there.
  std::uint64_t taken() const { return taken_; }

 private:
  // beanstalkd gives out no job of a paused tube.
  void drain(const TubeToImport& tube) {
    if (tube.paused > seconds(0)) {
      use(new_name(tube.name));
      const std::uint64_t paused = static_cast<std::uint64_t>(tube.paused.count()) + 1;
      target_.pause_tube(new_name(tube.name),
                         static_cast<std::uint32_t>(std::min<std::uint64_t>(paused, UINT32_MAX)));
      drain_one_by_one(tube.name, "ready");
    } else if (tube.counts.ready > 0) {
      drain_ready(tube.name);
    }
    if (tube.counts.buried > 0) drain_one_by_one(tube.name, "buried");
  }

  void drain_ready(const std::string& tube) {
    Client worker(Stream::connect(*request_.beanstalkd, stop_.fd()));
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
        // A job without statistics is gone: its ttr ran out, and a worker has ended it.
        if (stats[i]) found.emplace_back(std::move(jobs[i]), Found::State::kReady, *stats[i]);
      }
      move(worker, tube, found);
    }
  }

  // The jobs come in their order; to see the next one, the first one has to be deleted.
  void drain_one_by_one(const std::string& tube, std::string_view state) {
    source_.use(tube);
    while (auto job = source_.peek(state)) {
      look_for_stop();
      const auto stats = source_.stats_job(job->id);
      if (!stats) continue;
      const bool is_buried = stats->text("state") == "buried";
      if (is_buried != (state == "buried") || stats->text("tube") != tube) continue;
      std::vector<Found> found;
      found.emplace_back(*std::move(job), is_buried ? Found::State::kBuried : Found::State::kReady,
                         *stats);
      move(source_, tube, found);
    }
  }

  void drain_delayed(const std::vector<TubeToImport>& tubes) {
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

  // Asks for the ids above and below the highest one that is known, further and further away.
  std::vector<DelayedId> find_delayed(const std::vector<TubeToImport>& tubes) {
    constexpr std::uint64_t kRecount = 64;
    std::map<std::string, std::size_t> places;
    for (const TubeToImport& tube : tubes) places.emplace(tube.name, places.size());
    std::vector<DelayedId> found;
    std::uint64_t below = highest_id_shown(tubes) + 1;
    std::uint64_t above = below;
    std::uint64_t wanted = 0;
    for (std::uint64_t round = 0;; ++round) {
      look_for_stop();
      if (round % kRecount == 0)
        wanted = std::min<std::uint64_t>(delayed_jobs(tubes), kMostDelayed);
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

  std::uint64_t highest_id_shown(const std::vector<TubeToImport>& tubes) {
    // total-jobs counts from beanstalkd's start, so with a log ids are higher.
    std::uint64_t highest = source_.stats().number("total-jobs");
    for (const TubeToImport& tube : tubes) {
      if (tube.counts.delayed == 0) continue;
      source_.use(tube.name);
      if (const auto job = source_.peek("delayed")) highest = std::max(highest, job->id);
    }
    return highest;
  }

  // Counts those of these tubes alone: no search finds jobs of a tube that has appeared meanwhile.
  std::uint64_t delayed_jobs(const std::vector<TubeToImport>& tubes) {
    std::uint64_t jobs = 0;
    for (const TubeToImport& tube : tubes) {
      if (const auto stats = source_.stats_tube(tube.name)) jobs += counts_of(*stats).delayed;
    }
    return jobs;
  }

  void move_delayed(const std::string& tube, std::span<const DelayedId> jobs) {
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
  void move(Client& source, const std::string& tube, const std::vector<Found>& jobs) {
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

  const std::string& new_name(const std::string& tube) const {
    const auto found = request_.tubes.find(tube);
    return found == request_.tubes.end() ? tube : found->second;
  }

  void use(const std::string& new_name) {
    if (used_ == new_name) return;
    target_.use(new_name);
    used_ = new_name;
  }

  void look_for_stop() {
    if (stop_.came()) throw Interrupted();
  }

  const ImportRequest& request_;
  const StopSignals& stop_;
  Client target_;
  Client source_;
  ProgressLine line_;
  std::string instance_;
  std::string used_;         // the tube of target_
  std::size_t at_once_ = 1;  // jobs
  JobCounts moved_;
  std::uint64_t already_ = 0;
  std::uint64_t taken_ = 0;
};

void show_tubes(const std::vector<TubeToImport>& tubes, bool json) {
  std::string text;
  if (!json && !tubes.empty()) text = "  ready  delayed  buried  reserved  tube\n";
  for (const TubeToImport& tube : tubes) {
    const JobCounts& counts = tube.counts;
    if (!json) {
      text += fmt::format("{:>7}  {:>7}  {:>6}  {:>8}  {}\n", counts.ready, counts.delayed,
                          counts.buried, counts.reserved, tube.name);
      continue;
    }
    const boost::json::object object{{"ready", counts.ready},
                                     {"delayed", counts.delayed},
                                     {"buried", counts.buried},
                                     {"tube", tube.name},
                                     {"reserved", counts.reserved}};
    text += boost::json::serialize(object) + "\n";
  }

  write_out(text);
}

// Returns the number of jobs that workers hold.
std::uint64_t reserved_jobs(BeanstalkdImport& import) {
  std::uint64_t reserved = 0;
  for (const TubeToImport& tube : import.tubes()) reserved += tube.counts.reserved;
  return reserved;
}

void print_result(const BeanstalkdImport& import, std::uint64_t reserved, milliseconds took,
                  bool json) {
  const JobCounts& moved = import.moved();
  write_result(
      json,
      {{"instance", import.instance()},
       {"jobs", moved.jobs()},
       {"ready", moved.ready},
       {"delayed", moved.delayed},
       {"buried", moved.buried},
       {"already", import.already()},
       {"reserved", reserved},
       {"milliseconds", took.count()}},
      fmt::format("{} in {}: {} ready, {} delayed, {} buried", counted(moved.jobs(), "job"),
                  server::short_duration(took), moved.ready, moved.delayed, moved.buried));
  if (!json && import.already() > 0)
    remark(fmt::format("{} had been put by an import before", counted(import.already(), "other")));
}

}  // namespace

int import_beanstalkd(const ImportRequest& request) {
  const auto began = Clock::now();
  const StopSignals signals;
  BeanstalkdImport import(request, signals);
  import.remark_missing_tubes();
  if (request.dry_run) return show_tubes(import.tubes(), request.json), kSuccess;
  if (!request.json) remark(fmt::format("this beanstalkd is instance {}", import.instance()));
  const auto moved = [&import] { return counted(import.moved().jobs(), "job"); };
  try {
    import.run();
  } catch (const Interrupted&) {
    throw Failure(fmt::format("interrupted after {}; run it again to go on", moved()));
  } catch (const Failure& error) {
    throw Failure(fmt::format("{}; {} moved so far, run it again to go on", error.what(), moved()));
  }

  const std::uint64_t reserved = reserved_jobs(import);
  const auto took = time_since(began);
  print_result(import, reserved, took, request.json);
  if (import.taken() > 0) {
    remark(
        fmt::format("workers of beanstalkd took {} meanwhile, and what they took is here as well",
                    counted(import.taken(), "job")));
  }

  if (reserved == 0) return kSuccess;
  throw Failure(
      fmt::format("workers of beanstalkd hold {}; run the command again when they are done",
                  counted(reserved, "job")));
}

}  // namespace carillon::cli
