#include "steady.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bodies.h"
#include "connection.h"
#include "histogram.h"

namespace carillon::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kMostPuts = 100;  // in one batch, once they are behind their schedule
constexpr double kGiveUpBehind = 30;    // seconds
// Lateness is told for windows of due times, too: over a whole run a bad moment hardly counts.
constexpr std::uint64_t kWindowUs = 100'000;
constexpr std::uint64_t kOpenWindows = 100;
constexpr std::uint64_t kPollUs = 10'000;  // until a worker asks again that found nothing (Redis)

struct Producer {
  Connection connection;
  std::size_t first = 0;     // place in the schedule of the batch's first put
  std::size_t answered = 0;  // replies
  bool idle = true;
};

struct Worker {
  Connection connection;
  std::vector<std::string> reserved;  // to be deleted by the next batch
  std::size_t deletions = 0;          // replies to deletes that are still to come
  std::uint64_t asks_again_us = 0;    // 0: a batch is out
};

class Steady {
 public:
  Steady(const Load& load, const Dialect& dialect)
      : load_(load),
        dialect_(dialect),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        ticks_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    const itimerspec each_millisecond{{0, 1'000'000}, {0, 1'000'000}};
    ::timerfd_settime(ticks_, 0, &each_millisecond, nullptr);
    for (std::size_t i = 0; i < load.connections; ++i) {
      producers_.push_back({Connection(load.host, load.port, dialect)});
      watch(producers_[i].connection.fd(), EPOLLIN | EPOLLOUT | EPOLLET, i);
    }
    for (std::size_t i = 0; i < load.workers; ++i) {
      workers_.push_back({Connection(load.host, load.port, dialect), {}});
      watch(workers_[i].connection.fd(), EPOLLIN | EPOLLOUT | EPOLLET, load.connections + i);
    }
    watch(ticks_, EPOLLIN, load.connections + load.workers);
  }
  Steady(const Steady&) = delete;
  Steady& operator=(const Steady&) = delete;
  ~Steady() {
    ::close(ticks_);
    ::close(epoll_);
  }

  void run() {
    start_ = Clock::now();
    for (Worker& worker : workers_) ask(worker);
    double next_line = 1;
    while (elapsed() < load_.seconds && behind() < kGiveUpBehind) {
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_, events, 64, -1);
      for (int e = 0; e < count; ++e) serve(static_cast<std::size_t>(events[e].data.u64));
      if (elapsed() < next_line) continue;
      print_second();
      next_line += 1;
    }
    print_result();
  }

 private:
  void watch(int fd, std::uint32_t what, std::size_t index) const {
    epoll_event event{.events = what, .data = {.u64 = index}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  double elapsed() const { return Seconds(Clock::now() - start_).count(); }

  // The schedule. Put i is due at the first whole millisecond after i / rate seconds.
  double planned(std::size_t put) const {
    return std::ceil(static_cast<double>(put) / load_.rate * 1e3) / 1e3;
  }
  double behind() const { return elapsed() - planned(sent_); }

  void serve(std::size_t index) {
    if (index == load_.connections + load_.workers) {
      std::uint64_t ticks = 0;
      if (::read(ticks_, &ticks, sizeof ticks) > 0) on_tick();
    } else if (index >= load_.connections) {
      on_input(workers_[index - load_.connections]);
    } else {
      on_input(producers_[index]);
    }
  }

  void on_tick() {
    // Spread what is due evenly over the producers, as many clients of their own would send it.
    const auto idle = static_cast<std::size_t>(
        std::count_if(producers_.begin(), producers_.end(), [](auto& each) { return each.idle; }));
    const std::size_t due = due_now();
    for (Producer& producer : producers_)
      if (producer.idle) put(producer, (due + idle - 1) / idle);
    for (Worker& worker : workers_)
      if (worker.asks_again_us != 0 && worker.asks_again_us <= utc_us()) ask(worker);
  }

  // How many puts the schedule wants that are not sent yet.
  std::size_t due_now() const {
    const double whole_ms = std::floor(elapsed() * 1e3) / 1e3;
    const auto wanted = static_cast<std::size_t>(whole_ms * load_.rate);
    return wanted > sent_ ? wanted - sent_ : 0;
  }

  void put(Producer& producer, std::size_t most) {
    const std::size_t count = std::min({most, due_now(), kMostPuts});
    producer.idle = count == 0;
    if (producer.idle) return;
    producer.first = sent_;
    producer.answered = 0;
    out_.clear();
    std::size_t replies = 0;
    for (const std::uint64_t now = utc_us(), end = sent_ + count; sent_ < end; ++sent_) {
      const std::uint64_t delay = delays_(random_);
      replies += dialect_.put(out_, {sent_ + 1, now, delay, bodies_.next(now + delay * 1'000'000)});
    }
    producer.connection.send(out_, replies);
  }

  void on_input(Producer& producer) {
    if (producer.idle) return;
    const bool all = producer.connection.step([&](std::string_view reply) {
      dialect_.expect_changes(reply);
      if (++producer.answered % dialect_.replies_per_change() != 0) return;
      const std::size_t put =
          producer.first + producer.answered / dialect_.replies_per_change() - 1;
      const double us = (elapsed() - planned(put)) * 1e6;
      replies_.add(us);
      replies_of_second_.add(us);
      ++put_;
    });
    if (all) put(producer, kMostPuts);
  }

  // Deletes what the worker has reserved, and asks for more.
  void ask(Worker& worker) {
    out_.clear();
    worker.deletions = 0;
    for (const std::string& id : worker.reserved) worker.deletions += dialect_.remove(out_, id);
    worker.reserved.clear();
    worker.asks_again_us = 0;
    const std::size_t reserves = dialect_.wait(out_, utc_us());
    worker.connection.send(out_, worker.deletions + reserves);
  }

  void on_input(Worker& worker) {
    if (worker.asks_again_us != 0) return;
    const bool all = worker.connection.step([&](std::string_view reply) {
      if (worker.deletions == 0) return on_jobs(worker, reply);
      dialect_.expect_changes(reply);
      if (--worker.deletions % dialect_.replies_per_change() == 0) ++deleted_;
    });
    if (!all) return;
    if (worker.reserved.empty()) {
      worker.asks_again_us = utc_us() + kPollUs;
    } else {
      ask(worker);
    }
  }

  void on_jobs(Worker& worker, std::string_view reply) {
    jobs_.clear();
    dialect_.read_jobs(reply, jobs_);
    const std::uint64_t now = utc_us();
    for (const ReservedJob& job : jobs_) {
      const std::uint64_t due = Bodies::due_us(job.body);
      const double late = static_cast<double>(now) - static_cast<double>(due);
      if (late < 0) ++early_;
      windows_[due / kWindowUs].push_back(late);
      if (windows_.rbegin()->first - windows_.begin()->first > kOpenWindows) close_window();
      lateness_.add(late);
      lateness_of_second_.add(late);
      worker.reserved.emplace_back(job.id);
    }
  }

  void close_window() {
    std::vector<double>& late = windows_.begin()->second;
    const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(late.size() - 1) * 0.99);
    std::nth_element(late.begin(), late.begin() + at, late.end());
    worst_window_ = std::max(worst_window_, late[static_cast<std::size_t>(at)]);
    windows_.erase(windows_.begin());
  }

  void print_second() {
    std::printf(
        "{\"seconds\": %.1f, \"done\": %zu, \"deleted\": %zu, \"late_p99_us\": %.0f, "
        "\"put_p99_us\": %.0f}\n",
        elapsed(), put_, deleted_, lateness_of_second_.percentile(0.99),
        replies_of_second_.percentile(0.99));
    std::fflush(stdout);
    lateness_of_second_.clear();
    replies_of_second_.clear();
  }

  void print_result() {
    const double took = elapsed();
    while (!windows_.empty()) close_window();
    std::printf("{\"rate\": %.0f, \"seconds\": %.1f, \"gave_up\": %s, \"puts_per_second\": %.0f, ",
                load_.rate, took, took < load_.seconds ? "true" : "false",
                static_cast<double>(put_) / took);
    std::printf("\"deletes_per_second\": %.0f, \"deleted\": %zu, \"early\": %zu",
                static_cast<double>(deleted_) / took, deleted_, early_);
    for (const auto& [name, times] : {std::pair("late", &lateness_), std::pair("put", &replies_)}) {
      std::printf(", \"%s_p50_us\": %.0f, \"%s_p99_us\": %.0f, \"%s_p999_us\": %.0f", name,
                  times->percentile(0.5), name, times->percentile(0.99), name,
                  times->percentile(0.999));
    }
    std::printf(", \"late_worst_window_us\": %.0f}\n", worst_window_);
  }

  const Load& load_;
  const Dialect& dialect_;
  int epoll_;
  int ticks_;
  std::vector<Producer> producers_;
  std::vector<Worker> workers_;
  std::mt19937_64 random_{11};
  std::uniform_int_distribution<std::uint64_t> delays_{load_.least_delay, load_.most_delay};
  Bodies bodies_{7};
  std::string out_;
  std::vector<ReservedJob> jobs_;
  Clock::time_point start_;
  std::size_t sent_ = 0;
  std::size_t put_ = 0;
  std::size_t deleted_ = 0;
  std::size_t early_ = 0;
  std::map<std::uint64_t, std::vector<double>> windows_;  // lateness, by due time
  double worst_window_ = 0;                               // p99
  Histogram lateness_;
  Histogram lateness_of_second_;
  Histogram replies_;
  Histogram replies_of_second_;
};

}  // namespace

void run_steady(const Load& load, const Dialect& dialect) {
  Steady(load, dialect).run();
}

}  // namespace carillon::bench
