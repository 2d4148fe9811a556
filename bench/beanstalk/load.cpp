// Loads a beanstalk server with puts, then drains it by reserve and delete, and prints the rate of
// each phase.
//
//   carillon_bench_beanstalk --port 11300 --connections 16 --pipeline 100 --jobs 400000
//
// One thread drives all connections. Each connection sends its next batch of commands when the last
// batch was answered in full. A phase ends when its work is done or its time is over.

#include <sys/epoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"

namespace carillon::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Load {
  std::string host = "127.0.0.1";
  std::uint16_t port = 11'300;
  std::size_t connections = 1;
  std::size_t pipeline = 1;
  std::size_t jobs = 20'000;
  double seconds = 10;  // for each phase, at most
  std::size_t body = 200;
  bool drain = true;
  bool json = false;
};

struct Phase {
  double per_second = 0;
  // Percentiles of the time from sending a batch to its last reply.
  double p50_us = 0;
  double p99_us = 0;
};

// The commands to send next on one connection. An empty batch: the connection is done.
struct Batch {
  std::string commands;
  std::size_t replies = 0;
};

// The work of one phase: hands out batches and receives the replies, by the connection's index.
class Work {
 public:
  virtual ~Work() = default;
  virtual Batch next(std::size_t connection) = 0;
  virtual void on_reply(std::size_t connection, ReplyLine line) = 0;
  virtual std::size_t done() const = 0;  // in jobs
};

[[noreturn]] void unexpected(ReplyLine line) {
  throw std::runtime_error("unexpected reply: " + std::string(line));
}

class Puts : public Work {
 public:
  explicit Puts(const Load& load) : load_(load), left_(load.jobs) {
    put_ =
        "put 0 0 120 " + std::to_string(load.body) + "\r\n" + std::string(load.body, 'x') + "\r\n";
  }

  Batch next(std::size_t) override {
    Batch batch;
    batch.replies = std::min(left_, load_.pipeline);
    left_ -= batch.replies;
    for (std::size_t i = 0; i < batch.replies; ++i) batch.commands += put_;
    return batch;
  }

  void on_reply(std::size_t, ReplyLine line) override {
    if (!line.starts_with("INSERTED ")) unexpected(line);
    ++done_;
  }

  std::size_t done() const override { return done_; }

 private:
  const Load& load_;
  std::string put_;
  std::size_t left_;
  std::size_t done_ = 0;
};

// Each connection reserves a batch and then deletes it, until nothing is left.
class Drain : public Work {
 public:
  explicit Drain(const Load& load) : load_(load), workers_(load.connections) {}

  Batch next(std::size_t connection) override {
    Worker& worker = workers_[connection];
    Batch batch;
    if (!worker.reserved.empty()) {
      for (const std::string& id : worker.reserved) batch.commands += "delete " + id + "\r\n";
      batch.replies = worker.reserved.size();
      worker.reserved.clear();
    } else if (!worker.empty) {
      for (std::size_t i = 0; i < load_.pipeline; ++i)
        batch.commands += "reserve-with-timeout 0\r\n";
      batch.replies = load_.pipeline;
    }
    return batch;
  }

  void on_reply(std::size_t connection, ReplyLine line) override {
    Worker& worker = workers_[connection];
    if (line == "DELETED") {
      ++done_;
    } else if (line == "TIMED_OUT") {
      worker.empty = true;
    } else if (line.starts_with("RESERVED ")) {
      const std::string_view id = line.substr(9);
      worker.reserved.emplace_back(id.substr(0, id.find(' ')));
    } else {
      unexpected(line);
    }
  }

  std::size_t done() const override { return done_; }

 private:
  struct Worker {
    std::vector<std::string> reserved;
    bool empty = false;
  };

  const Load& load_;
  std::vector<Worker> workers_;
  std::size_t done_ = 0;
};

class Driver {
 public:
  explicit Driver(const Load& load) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < load.connections; ++i) {
      connections_.emplace_back(load.host, load.port);
      epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u64 = i}};
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_[i].fd(), &event);
    }
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() { ::close(epoll_); }

  Phase run(Work& work, double seconds) {
    std::vector<double> round_trips;
    const auto start = Clock::now();
    end_ =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::size_t busy = 0;
    for (std::size_t i = 0; i < connections_.size(); ++i) busy += send_next(work, i) ? 1u : 0u;
    while (busy > 0) {
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_, events, 64, -1);
      for (int e = 0; e < count; ++e) {
        const auto i = static_cast<std::size_t>(events[e].data.u64);
        if (!is_busy_[i] || !connections_[i].step([&](ReplyLine line) { work.on_reply(i, line); }))
          continue;
        round_trips.push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - connections_[i].sent_at())
                .count());
        if (!send_next(work, i)) --busy;
      }
    }
    return summary(work.done(), Clock::now() - start, round_trips);
  }

 private:
  bool send_next(Work& work, std::size_t i) {
    is_busy_.resize(connections_.size());
    const Batch batch = Clock::now() < end_ ? work.next(i) : Batch{};
    is_busy_[i] = batch.replies > 0;
    if (is_busy_[i]) connections_[i].send(batch.commands, batch.replies);
    return is_busy_[i];
  }

  static Phase summary(std::size_t done, Clock::duration took, std::vector<double>& round_trips) {
    std::sort(round_trips.begin(), round_trips.end());
    const auto at = [&](std::size_t percent) {
      return round_trips.empty() ? 0 : round_trips[(round_trips.size() - 1) * percent / 100];
    };
    return {static_cast<double>(done) / std::chrono::duration<double>(took).count(), at(50),
            at(99)};
  }

  int epoll_;
  std::vector<Connection> connections_;
  std::vector<bool> is_busy_;
  Clock::time_point end_;
};

void print(const Load& load, std::size_t jobs, const Phase& puts, const Phase& drain) {
  if (load.json) {
    std::printf(
        "{\"connections\": %zu, \"pipeline\": %zu, \"body_bytes\": %zu, \"jobs\": %zu, "
        "\"puts_per_second\": %.0f, \"put_p50_us\": %.1f, \"put_p99_us\": %.1f, "
        "\"drained_per_second\": %.0f}\n",
        load.connections, load.pipeline, load.body, jobs, puts.per_second, puts.p50_us, puts.p99_us,
        drain.per_second);
    return;
  }
  std::printf("%zu connections, pipelined by %zu, bodies of %zu bytes, %zu jobs\n",
              load.connections, load.pipeline, load.body, jobs);
  std::printf("  put             %10.0f jobs/s    batch p50 %.0f us, p99 %.0f us\n",
              puts.per_second, puts.p50_us, puts.p99_us);
  if (load.drain) std::printf("  reserve+delete  %10.0f jobs/s\n", drain.per_second);
}

int run(const Load& load) {
  Driver driver(load);
  Puts puts(load);
  const Phase put = driver.run(puts, load.seconds);
  Phase drained;
  if (load.drain) {
    Drain drain(load);
    drained = driver.run(drain, load.seconds);
    if (drain.done() > puts.done()) {
      throw std::runtime_error("put " + std::to_string(puts.done()) + " jobs but drained " +
                               std::to_string(drain.done()));
    }
  }
  print(load, puts.done(), put, drained);
  return 0;
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  carillon::bench::Load load;
  CLI::App app{
      "Loads a beanstalk server: puts, then reserve and delete until it is empty. It must be empty "
      "at the start."};
  app.add_option("--host", load.host, "Where it listens")->capture_default_str();
  app.add_option("--port", load.port)->capture_default_str();
  app.add_option("--connections", load.connections)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--pipeline", load.pipeline, "Commands sent at once on a connection")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--jobs", load.jobs, "Jobs to put, over all connections")->capture_default_str();
  app.add_option("--seconds", load.seconds, "Time for each phase, at most")->capture_default_str();
  app.add_option("--body", load.body, "Bytes of each body")->capture_default_str();
  app.add_flag("!--no-drain", load.drain, "Leave the jobs there");
  app.add_flag("--json", load.json, "Print one JSON object");
  CLI11_PARSE(app, argc, argv);
  try {
    return carillon::bench::run(load);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_bench_beanstalk: %s\n", error.what());
    return 1;
  }
}
