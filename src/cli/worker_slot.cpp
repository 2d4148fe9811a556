// The loop of one slot: reserve, run, report, reconnect.

#include "cli/worker_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "server/duration.h"

namespace carillon::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr Backoff kReconnect{.first = 100ms, .most = 5s};
constexpr Backoff kSettle{.first = 100ms, .most = 5s};

// Adds 1 to `count` while the object exists.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

struct WorkerSlot::Task {
  Job job;
  std::string tube;
  std::uint32_t priority;
  milliseconds ttr;
  std::uint64_t attempt;  // the first is 1
  std::uint64_t buries;   // how often it was buried before

  Task(Job reserved, const StatsFields& stats)
      : job(std::move(reserved)),
        tube(stats.text("tube")),
        priority(static_cast<std::uint32_t>(stats.number("pri"))),
        ttr(std::chrono::seconds(stats.number("ttr"))),
        // Reserves do not count: a client may reserve a job and give it back without a failure.
        attempt(1 + stats.number("releases") + stats.number("timeouts") + stats.number("buries")),
        buries(stats.number("buries")) {}

  std::string name() const {
    return fmt::format("job {} from tube {}, attempt {}", job.id, tube, attempt);
  }
};

struct WorkerSlot::Result {
  bool succeeded = false;
  std::string end;                  // "exit 0 after 0.02s"
  std::optional<std::string> lost;  // if the connection was lost, and the job with it: the reason
};

struct WorkerSlot::Ending {
  std::string_view verb;  // "delete"
  std::string done;       // "deleted"
  std::function<bool()> command;
};

Client connect_worker(const WorkerOptions& options, int interrupt_fd) {
  Client client(Stream::connect(options.server, interrupt_fd));
  if (!options.tubes.empty()) client.watch_only(options.tubes);
  return client;
}

void WorkerSlot::run() noexcept {
  try {
    work();
  } catch (const Interrupted&) {
    // Stopped: the slot holds no job, or closing the connection gives the job back.
  } catch (const std::exception& error) {
    remark(fmt::format("carillon work: {}", error.what()));
    state_.failed = true;
    state_.stop.set();
  }
}

void WorkerSlot::work() {
  while (!state_.stop.is_set()) {
    try {
      if (!client_) reconnect();
      if (!take_job()) return;
    } catch (const Unavailable& error) {
      client_.reset();
      // One line for all slots, because they lose the server together.
      if (state_.disconnected++ == 0)
        remark(fmt::format("carillon work: {}; trying again until it is back", error.what()));
    }
  }
}

void WorkerSlot::reconnect() {
  std::uniform_real_distribution<double> unit;
  // The delay starts again from kReconnect.first only after a finished job or a connection that
  // lasted longer than kReconnect.most: a server may accept connections and refuse everything else.
  if (Clock::now() - connected_at_ > kReconnect.most) reconnects_ = 0;
  while (!client_) {
    wait_for(-1, 0, kReconnect.delay(reconnects_++, unit(random_)), state_.stop.fd());
    try {
      client_ = connect_worker(options_, state_.stop.fd());
      connected_at_ = Clock::now();
    } catch (const Unavailable&) {
      // It was reported when the connection was lost.
    }
  }
  if (--state_.disconnected == 0)
    remark(fmt::format("carillon work: connected to {} again", to_string(options_.server)));
}

// Takes one job and works on it. Returns false if the slot should end.
bool WorkerSlot::take_job() {
  client_->interrupt_on(state_.stop.fd());
  const Patience patience = options_.until == WorkUntil::kEmpty ? Patience(0ms) : std::nullopt;
  std::optional<Job> job = client_->reserve(patience);
  if (!job) return false;

  // From here on only `kill` interrupts: `stop` lets the job finish.
  client_->interrupt_on(state_.kill.fd());
  const auto stats = client_->stats_job(job->id);
  if (!stats) return true;  // deleted, or its ttr has already run out
  perform(Task(*std::move(job), *stats));
  return options_.until != WorkUntil::kOneJob;
}

void WorkerSlot::perform(const Task& task) {
  const auto started = Clock::now();
  const auto after = [started](std::string_view end) {
    return fmt::format(
        "{} after {}", end,
        server::short_duration(std::chrono::floor<milliseconds>(Clock::now() - started)));
  };
  const auto report = [&task](std::string_view end, std::string_view what) {
    remark(fmt::format("{}: {}, {}", task.name(), end, what));
  };
  Result result;
  try {
    result = run_command(task);
    result.end = after(result.end);
    if (result.lost) throw Unavailable(*result.lost);
    report(result.end, settle(task, result));
  } catch (const Unavailable&) {
    report(result.end, "connection lost: it may run again");
    throw;
  } catch (const Interrupted&) {
    const bool killed = result.end.empty();
    report(killed ? after("killed") : result.end,
           killed ? "given back" : "stopped before the server answered: it may run again");
    state_.failed = true;
    throw;
  }
  if (!result.succeeded && options_.until == WorkUntil::kOneJob) state_.failed = true;
}

WorkerSlot::Result WorkerSlot::run_command(const Task& task) {
  const Counted running(state_.running);
  Result result;
  try {
    ChildProcess child(
        options_.command,
        {fmt::format("CARILLON_JOB_ID={}", task.job.id), fmt::format("CARILLON_TUBE={}", task.tube),
         fmt::format("CARILLON_ATTEMPT={}", task.attempt)},
        task.job.body);
    result.lost = wait_and_touch(child, task);
    result.succeeded = child.succeeded();
    result.end = child.describe_end();
  } catch (const Failure& error) {
    result.end = error.what();  // it could not be started: a failed attempt
  }
  return result;
}

// Waits for the command's end, and touches the job meanwhile. If the connection is lost, returns
// the reason.
std::optional<std::string> WorkerSlot::wait_and_touch(ChildProcess& child, const Task& task) {
  Patience until_touch = task.ttr / 2;
  std::optional<std::string> lost;
  while (!child.wait(until_touch, state_.kill.fd())) {
    try {
      if (client_->touch(task.job.id)) continue;
      remark(fmt::format("{}: its ttr ran out before it was touched; another worker may run it too",
                         task.name()));
    } catch (const Unavailable& error) {
      lost = error.what();
    }
    until_touch = std::nullopt;
  }
  return lost;
}

WorkerSlot::Ending WorkerSlot::ending_of(const Task& task, bool succeeded) {
  const std::uint64_t id = task.job.id;
  const std::uint32_t priority = task.priority;
  if (succeeded) return {"delete", "deleted", [this, id] { return client_->delete_job(id); }};

  std::uint64_t failures = task.attempt - 1;
  if (options_.max_attempts) {
    const std::uint64_t most = *options_.max_attempts;
    // Each earlier bury, with the kick after it, allows `most` more attempts.
    if (task.attempt >= most * (1 + task.buries)) {
      return {"bury", "buried", [this, id, priority] { return client_->bury(id, priority); }};
    }
    failures %= most;
  }
  std::uniform_real_distribution<double> unit;
  const milliseconds delay = options_.backoff.delay(failures, unit(random_));
  return {"release", fmt::format("released for {}", server::short_duration(delay)),
          [this, id, priority, delay] { return client_->release(id, priority, delay); }};
}

// Sends the job's result to the server, and repeats it while the server refuses. It does not give
// the job back instead: the job would run again, and that result would be refused too. Returns a
// description of what was done.
std::string WorkerSlot::settle(const Task& task, const Result& result) {
  const Ending ending = ending_of(task, result.succeeded);
  for (std::uint64_t refusals = 0;; ++refusals) {
    try {
      const bool in_time = ending.command();
      reconnects_ = 0;
      return in_time ? ending.done : "too late: its ttr had run out";
    } catch (const Refused& refused) {
      const std::string but =
          fmt::format("but the server refused to {} it ({})", ending.verb, refused.reply);
      if (state_.stop.is_set()) {
        state_.failed = true;
        return but + ", and the worker stops: it may run again";
      }
      if (refusals == 0)
        remark(fmt::format("{}: {}, {}; trying again until it does", task.name(), result.end, but));
    }
    hold(task, kSettle.delay(refusals, 0));
  }
}

// Keeps the job reserved for `pause`, or until the worker is told to stop.
void WorkerSlot::hold(const Task& task, milliseconds pause) {
  client_->touch(task.job.id);  // if it is too late, the next try reports it
  try {
    wait_for(-1, 0, std::min(pause, task.ttr / 2), state_.stop.fd());
  } catch (const Interrupted&) {
    // The caller tries once more.
  }
}

}  // namespace carillon::cli
