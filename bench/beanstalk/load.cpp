// Loads a beanstalk server, Carillon's HTTP or Redis, and prints JSON: one line twice a second, and
// a last one with the result.
//
//   carillon_bench_beanstalk put --connections 16 --pipeline 100 --jobs 400000
//   carillon_bench_beanstalk drain --connections 16 --pipeline 100 --jobs 400000
//
// One thread drives all connections. Each connection sends its next batch of commands when the last
// batch was answered in full. A phase ends when its work is done or its time is over. Steady load
// has a loop of its own (steady.h).

#include <sys/epoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bodies.h"
#include "connection.h"
#include "dialect.h"
#include "histogram.h"
#include "load.h"
#include "steady.h"

namespace carillon::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// The commands to send next on one connection. An empty batch: the connection is done.
struct Batch {
  std::string commands;
  std::size_t replies = 0;
};

// The work of one phase: hands out batches and receives the replies, by the connection's index. It
// is done when `total` puts, or deletes, were answered.
class Work {
 public:
  Work(const Dialect& dialect, std::size_t total) : dialect_(dialect), total_(total) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  virtual Batch next(std::size_t connection) = 0;
  virtual void on_reply(std::size_t, std::string_view reply) { count_change(reply); }

  std::size_t done() const { return replies_ / dialect_.replies_per_change(); }
  std::size_t total() const { return total_; }

 protected:
  void count_change(std::string_view reply) { replies_ += dialect_.expect_changes(reply); }

  const Dialect& dialect_;

 private:
  std::size_t total_;
  std::size_t replies_ = 0;
};

class Puts : public Work {
 public:
  Puts(const Load& load, const Dialect& dialect)
      : Work(dialect, load.jobs), load_(load), delays_(load.least_delay, load.most_delay) {}

  Batch next(std::size_t) override {
    Batch batch;
    const std::uint64_t now = utc_us();
    for (std::size_t i = 0; i < load_.pipeline && sent_ < load_.jobs; ++i) {
      const std::uint64_t delay = delays_(random_);
      const std::string_view body = bodies_.next(now + delay * 1'000'000);
      batch.replies += dialect_.put(batch.commands, {++sent_, now, delay, body});
    }
    if (!batch.commands.empty()) batch.replies += dialect_.end_puts(batch.commands);
    return batch;
  }

 private:
  const Load& load_;
  std::mt19937_64 random_{11};
  std::uniform_int_distribution<std::uint64_t> delays_;
  Bodies bodies_{7};
  std::size_t sent_ = 0;
};

// Deletes a random sample of the ids 1 to `jobs`, which are all there, in random order: one id of
// each of `count` equal stretches.
class Cancels : public Work {
 public:
  Cancels(const Load& load, const Dialect& dialect) : Work(dialect, load.count), load_(load) {
    std::mt19937_64 random(13);
    const std::size_t stretch = load.jobs / load.count;
    for (std::size_t i = 0; i < load.count; ++i)
      ids_.push_back(i * stretch + 1 + random() % stretch);
    std::shuffle(ids_.begin(), ids_.end(), random);
  }

  Batch next(std::size_t) override {
    Batch batch;
    for (std::size_t i = 0; i < load_.pipeline && sent_ < ids_.size(); ++i)
      batch.replies += dialect_.remove(batch.commands, std::to_string(ids_[sent_++]));
    return batch;
  }

 private:
  const Load& load_;
  std::vector<std::size_t> ids_;
  std::size_t sent_ = 0;
};

// Each connection reserves a batch and then deletes it, until nothing is left.
class Drain : public Work {
 public:
  Drain(const Load& load, const Dialect& dialect)
      : Work(dialect, load.jobs), load_(load), workers_(load.connections) {}

  Batch next(std::size_t connection) override {
    Worker& worker = workers_[connection];
    Batch batch;
    worker.deletes = !worker.reserved.empty();
    if (worker.deletes) {
      for (const std::string& id : worker.reserved)
        batch.replies += dialect_.remove(batch.commands, id);
      worker.reserved.clear();
    } else if (!worker.empty) {
      batch.replies = dialect_.reserve(batch.commands, utc_us(), load_.pipeline);
    }
    return batch;
  }

  void on_reply(std::size_t connection, std::string_view reply) override {
    Worker& worker = workers_[connection];
    if (worker.deletes) return count_change(reply);
    jobs_.clear();
    dialect_.read_jobs(reply, jobs_);
    worker.empty = jobs_.empty();
    for (const ReservedJob& job : jobs_) worker.reserved.emplace_back(job.id);
  }

 private:
  struct Worker {
    std::vector<std::string> reserved;
    bool deletes = false;  // what the batch that is out does
    bool empty = false;
  };

  const Load& load_;
  std::vector<Worker> workers_;
  std::vector<ReservedJob> jobs_;
};

class Driver {
 public:
  Driver(const Load& load, const Dialect& dialect) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < load.connections; ++i) {
      connections_.emplace_back(load.host, load.port, dialect);
      epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u64 = i}};
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_[i].fd(), &event);
    }
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() { ::close(epoll_); }

  void run(Work& work, double seconds) {
    start_ = Clock::now();
    end_ = start_ + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
    double next_line = 0.5;
    std::size_t busy = 0;
    for (std::size_t i = 0; i < connections_.size(); ++i) busy += send_next(work, i) ? 1u : 0u;
    while (busy > 0) {
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_, events, 64, -1);
      for (int e = 0; e < count; ++e) {
        const auto i = static_cast<std::size_t>(events[e].data.u64);
        if (!is_busy_[i] ||
            !connections_[i].step([&](std::string_view reply) { work.on_reply(i, reply); }))
          continue;
        round_trips_.add(
            std::chrono::duration<double, std::micro>(Clock::now() - connections_[i].sent_at())
                .count());
        if (!send_next(work, i)) --busy;
      }
      note_tenths(work);
      if (elapsed() < next_line) continue;
      std::printf("{\"done\": %zu}\n", work.done());
      std::fflush(stdout);
      next_line += 0.5;
    }
    print_result(work.done());
  }

 private:
  double elapsed() const { return Seconds(Clock::now() - start_).count(); }

  bool send_next(Work& work, std::size_t i) {
    is_busy_.resize(connections_.size());
    const Batch batch = Clock::now() < end_ ? work.next(i) : Batch{};
    is_busy_[i] = batch.replies > 0;
    if (is_busy_[i]) connections_[i].send(batch.commands, batch.replies);
    return is_busy_[i];
  }

  // Notes the rate of each tenth of the work, once it is done.
  void note_tenths(const Work& work) {
    const std::size_t done = work.done();
    if (tenths_.size() == 10 || done < (tenths_.size() + 1) * work.total() / 10) return;
    tenths_.push_back(static_cast<double>(done - noted_done_) / (elapsed() - noted_at_));
    noted_done_ = done;
    noted_at_ = elapsed();
  }

  void print_result(std::size_t done) const {
    std::printf("{\"jobs\": %zu, \"seconds\": %.3f, \"per_second\": %.0f, \"p50_us\": %.1f, ", done,
                elapsed(), static_cast<double>(done) / elapsed(), round_trips_.percentile(0.5));
    std::printf("\"p99_us\": %.1f, \"tenths\": [", round_trips_.percentile(0.99));
    for (std::size_t i = 0; i < tenths_.size(); ++i)
      std::printf("%s%.0f", i == 0 ? "" : ", ", tenths_[i]);
    std::printf("]}\n");
  }

  int epoll_;
  std::vector<Connection> connections_;
  std::vector<bool> is_busy_;
  Clock::time_point start_;
  Clock::time_point end_;
  Histogram round_trips_;  // one for each batch
  std::vector<double> tenths_;
  std::size_t noted_done_ = 0;
  double noted_at_ = 0;
};

std::unique_ptr<Dialect> dialect_of(const Load& load) {
  if (load.redis) return redis_dialect();
  if (load.http) return load.batches ? http_batch_dialect() : http_dialect();
  return beanstalk_dialect();
}

void run(const Load& load) {
  const auto dialect = dialect_of(load);
  if (load.phase == "steady") return run_steady(load, *dialect);
  std::unique_ptr<Work> work;
  if (load.phase == "put") work = std::make_unique<Puts>(load, *dialect);
  if (load.phase == "cancel") work = std::make_unique<Cancels>(load, *dialect);
  if (load.phase == "drain") work = std::make_unique<Drain>(load, *dialect);
  Driver(load, *dialect).run(*work, load.seconds);
  if (work->done() > load.jobs) {
    throw std::runtime_error(std::to_string(load.jobs) + " jobs were there, but " +
                             std::to_string(work->done()) + " were drained");
  }
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  carillon::bench::Load load;
  CLI::App app{"Loads a beanstalk server, Carillon's HTTP or Redis, and prints JSON."};
  app.add_option("phase", load.phase, "put, cancel (random ids), drain or steady")
      ->required()
      ->check(CLI::IsMember({"put", "cancel", "drain", "steady"}));
  auto* redis = app.add_flag("--redis", load.redis, "Speak to Redis");
  auto* http =
      app.add_flag("--http", load.http, "Speak HTTP, to put and to drain")->excludes(redis);
  app.add_flag("--batches", load.batches, "Put the jobs sent at once by one request")->needs(http);
  app.add_option("--host", load.host, "Where it listens")->capture_default_str();
  app.add_option("--port", load.port)->capture_default_str();
  app.add_option("--connections", load.connections, "Those that put, at steady load")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--pipeline", load.pipeline, "Commands sent at once on a connection")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--jobs", load.jobs, "Jobs to put; to drain, all that there are; to cancel among")
      ->capture_default_str();
  app.add_option("--count", load.count, "Jobs to cancel, of ids 1 to JOBS")->capture_default_str();
  app.add_option("--seconds", load.seconds, "Time for the phase, at most")->capture_default_str();
  app.add_option("--least-delay", load.least_delay, "Of puts, in seconds")->capture_default_str();
  app.add_option("--most-delay", load.most_delay, "Of puts, in seconds")->capture_default_str();
  app.add_option("--rate", load.rate, "Puts per second of steady load")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--workers", load.workers, "Connections that reserve, at steady load")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    carillon::bench::run(load);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_bench_beanstalk: %s\n", error.what());
    return 1;
  }
}
