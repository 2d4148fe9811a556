// The slots of a worker: each takes jobs, runs the command and reports. And the worker that starts
// them, and stops them at a signal.

#include "cli/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "cli/child_process.h"
#include "cli/client.h"
#include "cli/exit_status.h"
#include "cli/output.h"
#include "cli/wait.h"
#include "cli/worker_tubes.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr Backoff kReconnect{.first = 100ms, .most = 5s};
constexpr Backoff kSettle{.first = 100ms, .most = 5s};

// A cancel is noticed within this time.
constexpr milliseconds kLookForCancel = 5s;

// A worker notices at once that jobs are held back no more; within this time, that they are gone.
constexpr milliseconds kLookForReady = 1s;

// The name of this worker in the stories of jobs: HOST:PID.
std::string worker_name() {
  constexpr std::size_t kMost = 80;
  std::array<char, kMost> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"worker"};
  std::string name(host.data());
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c <= ' ' || c > '~'; }, '-');
  return fmt::format("{}:{}", name, ::getpid());
}

// Says what became of a job whose attempt has failed; nothing if the client does not hold it.
std::optional<std::string> said(const FailAnswer& answer) {
  using Result = FailAnswer::Result;
  switch (answer.result) {
    case Result::kAgain:
      return "again in " + server::short_duration(answer.delay);
    case Result::kDead:
      return "dead: it is buried";
    case Result::kCancelled:
      return "cancelled";
    case Result::kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

// Connects to the server. Throws Unavailable.
Client connect_worker(const WorkerOptions& options, int interrupt_fd) {
  return Client(Stream::connect(options.server, interrupt_fd));
}

// State that the slots of one worker share. Every member may be used from any thread.
struct WorkerState {
  explicit WorkerState(const std::vector<std::string>& of) : tubes(of) {}

  ProcessGuard guard;                      // ends running commands; made first: it forks
  WorkerTubes tubes;                       // to take jobs from
  Event stop;                              // take no more jobs
  Event kill;                              // kill the running commands
  std::atomic<int> running{0};             // number of running commands
  std::atomic<int> disconnected{0};        // number of slots without a connection
  std::atomic<bool> told{false};           // that ready jobs are held back for a time
  std::atomic<bool> told_for_good{false};  // that a tube with ready jobs is paused for good
  std::atomic<bool> failed{false};         // run_worker() returns kFailure
};

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

class WorkerSlot {
 public:
  // `options` and `state` must outlive the slot.
  WorkerSlot(const WorkerOptions& options, WorkerState& state, Client client);

  // Works until the worker is stopped, or `options.until` ends it. Writes errors to standard error;
  // throws nothing.
  void run() noexcept;

 private:
  struct Task;    // a reserved job and its counters at the server
  struct Result;  // how its command ended
  struct Ending;  // the command to the server that ends the reservation

  void work();
  void introduce(Client& client);
  void reconnect();
  bool take_job();
  bool wait_for_held_back();
  void perform(const Task& task);
  Result run_command(const Task& task);
  void wait_and_touch(ChildProcess& child, const Task& task, Result& result);
  bool touch(const Task& task, Result& result);
  Ending ending_of(const Task& task, const Result& result);
  Ending failed(const Task& task, const Result& result);
  Ending failed_uncounted(const Task& task);
  std::chrono::milliseconds delay_after(std::uint64_t failures);
  std::string settle(const Task& task, const Result& result);
  void hold(const Task& task, std::chrono::milliseconds pause);

  const WorkerOptions& options_;
  WorkerState& state_;
  ErrorOutput errors_;              // the errors of its commands
  std::optional<Client> client_;    // none: disconnected
  std::optional<TubeWatch> watch_;  // none until client_ has sent a command
  bool held_back_ = false;          // the tubes have ready jobs that a reserve does not get now
  std::uint64_t reconnects_ = 0;    // tries since the last finished job or lasting connection
  std::chrono::steady_clock::time_point connected_at_ = std::chrono::steady_clock::now();
  std::mt19937_64 random_{std::random_device{}()};
};

struct WorkerSlot::Task {
  Job job;
  std::string tube;
  std::uint32_t priority;
  milliseconds ttr;
  std::uint64_t attempt;  // the first is 1
  std::uint64_t buries;   // how often it was buried before
  // The policy of the job or its tube has these.
  bool has_backoff;
  bool has_max_attempts;

  Task(Job reserved, const StatsFields& stats, bool are_counted)
      : job(std::move(reserved)),
        tube(stats.text("tube")),
        priority(static_cast<std::uint32_t>(stats.number("pri"))),
        ttr(std::chrono::seconds(stats.number("ttr"))),
        attempt(1 + (are_counted ? counted(stats) : uncounted(stats))),
        buries(stats.number("buries")),
        has_backoff(stats.has("backoff-ms")),
        has_max_attempts(stats.has("max-attempts")) {}

  std::string name() const {
    return fmt::format("job {} from tube {}, attempt {}", job.id, tube, attempt);
  }

 private:
  static std::uint64_t counted(const StatsFields& stats) {
    return stats.has("attempts") ? stats.number("attempts") : 0;
  }
  // Reserves do not count: a client may reserve a job and give it back without a failure.
  static std::uint64_t uncounted(const StatsFields& stats) {
    return stats.number("releases") + stats.number("timeouts") + stats.number("buries");
  }
};

struct WorkerSlot::Result {
  bool succeeded = false;
  bool cancelled = false;  // somebody has asked for the job's cancel
  bool over_limit = false;
  std::string why;                  // "exit status 3"
  std::string end;                  // "exit status 3 after 0.02s"
  std::string last_error;           // the last line of standard error
  std::optional<std::string> lost;  // if the connection was lost, and the job with it: the reason

  // Returns the text of this attempt in the story of the job.
  std::string error() const {
    return last_error.empty() ? why : fmt::format("{}: {}", why, last_error);
  }
};

struct WorkerSlot::Ending {
  std::string_view verb;  // "delete"
  // Returns what was done ("deleted"), or nothing if this client does not hold the job any more.
  std::function<std::optional<std::string>()> command;
};

WorkerSlot::WorkerSlot(const WorkerOptions& options, WorkerState& state, Client client)
    : options_(options), state_(state), client_(std::move(client)) {}

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
      if (!watch_) introduce(*client_);
      if (!take_job()) return;
    } catch (const Unavailable& error) {
      client_.reset();
      watch_.reset();
      // One line for all slots, because they lose the server together.
      if (state_.disconnected++ == 0)
        remark(fmt::format("carillon work: {}; trying again until it is back", error.what()));
    }
  }
}

// The first commands of a connection. A server at its limit of connections refuses them.
void WorkerSlot::introduce(Client& client) {
  client.name(worker_name());
  watch_.emplace(state_.tubes, client);
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
      // The loss of the connection was reported.
    }
  }
  if (--state_.disconnected == 0)
    remark(fmt::format("carillon work: connected to {} again", to_string(options_.server)));
}

// Takes one job and works on it. Returns false if the slot should end.
bool WorkerSlot::take_job() {
  client_->interrupt_on(state_.stop.fd());
  const bool until_empty = options_.until == WorkUntil::kEmpty;
  if (!watch_->follow(*client_)) {
    if (!until_empty) wait_for(-1, 0, WorkerTubes::kAge, state_.stop.fd());
    return !until_empty;
  }
  const Patience patience = until_empty ? Patience(held_back_ ? kLookForReady : 0ms) : std::nullopt;
  std::optional<Job> job = client_->reserve(watch_->patience(patience));
  if (!job) return !until_empty || wait_for_held_back();
  held_back_ = false;

  // From here on only `kill` interrupts: `stop` lets the job finish.
  client_->interrupt_on(state_.kill.fd());
  const auto stats = client_->stats_job(job->id);
  if (!stats) return true;  // deleted, or its ttr has already run out
  perform(Task(*std::move(job), *stats, client_->knows_own_verbs()));
  return options_.until != WorkUntil::kOneJob;
}

// Nothing was reserved. Returns false if no job is ready, or those that are will not come by
// themselves.
bool WorkerSlot::wait_for_held_back() {
  const TubeWatch::HeldBack held = watch_->held_back(*client_);
  const bool have_waited = std::exchange(held_back_, held.for_a_time);
  if (have_waited && held_back_ && !state_.told.exchange(true))
    remark("carillon work: waits for ready jobs that a pause or a limit holds back");
  if (held_back_ || held.for_good.empty()) return held_back_;
  state_.failed = true;
  if (!state_.told_for_good.exchange(true)) {
    remark(
        fmt::format("carillon work: tube {} has ready jobs, and is paused until carillon resume {}",
                    held.for_good, held.for_good));
  }
  return false;
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
    result.end = after(result.why);
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
  errors_.begin();
  try {
    ChildProcess child(
        options_.command,
        {fmt::format("CARILLON_JOB_ID={}", task.job.id), fmt::format("CARILLON_TUBE={}", task.tube),
         fmt::format("CARILLON_ATTEMPT={}", task.attempt)},
        task.job.body, {.standard_error = errors_.fd(), .guard = &state_.guard});
    wait_and_touch(child, task, result);
    result.succeeded = child.succeeded() && !result.over_limit;
    result.why = result.over_limit ? fmt::format("over its time limit of {}",
                                                 server::short_duration(*options_.time_limit))
                                   : child.describe_end();
    if (!result.succeeded) result.last_error = errors_.last_line();
  } catch (const Failure& error) {
    result.why = error.what();  // it could not be started: a failed attempt
  }
  return result;
}

// Waits for the command's end, and touches the job meanwhile. Ends a command that runs too long, or
// whose cancel was asked for.
void WorkerSlot::wait_and_touch(ChildProcess& child, const Task& task, Result& result) {
  using Moment = Clock::time_point;
  const milliseconds between =
      client_->knows_own_verbs() ? std::min(task.ttr / 2, kLookForCancel) : task.ttr / 2;
  const Moment begin = Clock::now();
  const Moment never = begin + std::chrono::years(50);
  const auto after = [never](Moment from, milliseconds time) {
    return time < std::chrono::floor<milliseconds>(never - from) ? from + time : never;
  };
  Moment touch_at = after(begin, between);
  Moment limit_at = options_.time_limit ? after(begin, *options_.time_limit) : never;
  Moment kill_at = never;
  const auto next = [&] {
    const auto left = std::min({touch_at, limit_at, kill_at}) - Clock::now();
    return std::max(0ms, std::chrono::ceil<milliseconds>(left));
  };
  while (!child.wait(next(), state_.kill.fd())) {
    const Moment now = Clock::now();
    if (now >= kill_at) return child.kill();
    result.over_limit = result.over_limit || now >= limit_at;
    if (now >= limit_at) limit_at = never;
    if (now >= touch_at) touch_at = touch(task, result) ? after(now, between) : never;
    if (kill_at != never || !(result.over_limit || result.cancelled)) continue;
    child.terminate();
    kill_at = after(now, options_.grace);
  }
}

// Returns false if the job is not this client's any more.
bool WorkerSlot::touch(const Task& task, Result& result) {
  try {
    const std::uint64_t id = task.job.id;
    using Answer = TouchAnswer;
    const auto answer = client_->knows_own_verbs() ? client_->touch_job(id)
                        : client_->touch(id)       ? Answer::kTouched
                                                   : Answer::kNone;
    result.cancelled = result.cancelled || answer == Answer::kCancelAsked;
    if (answer != Answer::kNone) return true;
    remark(fmt::format("{}: its ttr ran out before it was touched; another worker may run it too",
                       task.name()));
  } catch (const Unavailable& error) {
    result.lost = error.what();
  }
  return false;
}

WorkerSlot::Ending WorkerSlot::ending_of(const Task& task, const Result& result) {
  if (!result.succeeded && !result.cancelled)
    return client_->knows_own_verbs() ? failed(task, result) : failed_uncounted(task);
  const std::string done = result.cancelled ? "cancelled" : "deleted";
  return {"delete", [this, id = task.job.id, done] {
            return client_->delete_job(id) ? std::optional(done) : std::nullopt;
          }};
}

// The policy of the job or its tube decides; where it leaves something open, the worker's options.
WorkerSlot::Ending WorkerSlot::failed(const Task& task, const Result& result) {
  FailOptions options;
  if (!task.has_max_attempts) options.max_attempts = options_.max_attempts;
  if (!task.has_backoff) options.delay = delay_after(task.attempt - 1);
  return {"fail", [this, id = task.job.id, error = result.error(), options] {
            return said(client_->fail(id, error, options));
          }};
}

WorkerSlot::Ending WorkerSlot::failed_uncounted(const Task& task) {
  const std::uint64_t id = task.job.id;
  const std::uint32_t priority = task.priority;
  std::uint64_t failures = task.attempt - 1;
  if (options_.max_attempts) {
    const std::uint64_t most = *options_.max_attempts;
    // Each earlier bury, with the kick after it, allows `most` more attempts.
    if (task.attempt >= most * (1 + task.buries)) {
      return {"bury", [this, id, priority] {
                return client_->bury(id, priority) ? std::optional<std::string>("buried")
                                                   : std::nullopt;
              }};
    }
    failures %= most;
  }
  const milliseconds delay = delay_after(failures);
  return {"release", [this, id, priority, delay] {
            return client_->release(id, priority, delay)
                       ? std::optional("released for " + server::short_duration(delay))
                       : std::nullopt;
          }};
}

milliseconds WorkerSlot::delay_after(std::uint64_t failures) {
  std::uniform_real_distribution<double> unit;
  return options_.backoff.delay(failures, unit(random_));
}

// Sends the job's result to the server, and repeats it while the server refuses. It does not give
// the job back instead: the job would run again, and that result would be refused too. Returns a
// description of what was done.
std::string WorkerSlot::settle(const Task& task, const Result& result) {
  const Ending ending = ending_of(task, result);
  for (std::uint64_t refusals = 0;; ++refusals) {
    try {
      const std::optional<std::string> done = ending.command();
      reconnects_ = 0;
      return done.value_or("too late: its ttr had run out");
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

class Worker {
 public:
  explicit Worker(const WorkerOptions& options) : state_(options.tubes) {
    // All connections are made before the first slot works: if the server is not there, the user
    // gets one error, and no job has been taken.
    for (std::uint32_t i = 0; i < options.slots; ++i)
      slots_.emplace_back(options, state_, connect_worker(options, -1));
  }

  int run() {
    StopSignals signals;
    std::atomic<std::size_t> left{slots_.size()};
    std::vector<std::thread> threads;
    for (WorkerSlot& slot : slots_) {
      threads.emplace_back([this, &slot, &left] {
        slot.run();
        if (--left == 0) all_ended_.set();
      });
    }
    obey(signals);
    for (std::thread& thread : threads) thread.join();
    return state_.failed ? kFailure : kSuccess;
  }

 private:
  // Handles signals until all slots have ended.
  void obey(StopSignals& signals) {
    try {
      signals.wait(all_ended_.fd());
      state_.stop.set();
      const int running = state_.running;
      remark(
          running == 0
              ? std::string("carillon work: stopping")
              : fmt::format(
                    "carillon work: stopping when {} running job{} done; a second signal kills {}",
                    running, running == 1 ? " is" : "s are", running == 1 ? "it" : "them"));
      signals.wait(all_ended_.fd());
      state_.kill.set();
      while (true) signals.wait(all_ended_.fd());
    } catch (const Interrupted&) {
      // All slots have ended.
    }
  }

  WorkerState state_;
  Event all_ended_;
  std::deque<WorkerSlot> slots_;  // emplace_back() does not move earlier slots
};

}  // namespace

int run_worker(const WorkerOptions& options) {
  return Worker(options).run();
}

}  // namespace carillon::cli
