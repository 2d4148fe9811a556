#include "centre.h"

#include <poll.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "../beanstalk/bodies.h"
#include "../beanstalk/histogram.h"

namespace carillon::bench {
namespace {

constexpr double kGiveUpBehind = 10;  // seconds
constexpr std::uint64_t kLongestSleepUs = 50'000;

std::uint64_t utc_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Counts {
  std::size_t answered = 0;  // puts
  std::size_t begun = 0;
  std::size_t given_back = 0;
  std::size_t finished = 0;
};

class Centre final : public QueueEvents {
 public:
  Centre(const Plan& plan, MakeQueue make_queue)
      : plan_(plan), running_(plan.sites), queue_(make_queue(plan, *this)) {}

  void run_steady() {
    start_us_ = utc_us();
    queue_->start();
    turn_until([this] { return elapsed() >= plan_.warm_up; });
    begin_measuring();
    const double end = plan_.warm_up + plan_.seconds;
    turn_until([this, end] { return elapsed() >= end || behind() > kGiveUpBehind; });
    print_result();
  }

  // Everything is put before anything is taken.
  void run_drain() {
    start_us_ = utc_us();
    turn_until([this] { return count_.answered == plan_.drain; });
    begin_measuring();
    wait_for_lines(1);
    measured_from_ = elapsed();
    queue_->start();
    turn_until([this] { return count_.finished == plan_.drain; });
    print_result();
  }

  void put_answered(std::uint64_t number) override {
    ++count_.answered;
    puts_.add((elapsed() - planned(number)) * 1e6);
  }

  bool take_place(std::uint64_t number) override {
    Life& life = lives_[number];
    if (life.state != State::kWaits) ++wrong_;
    std::size_t& running = running_[site(number)];
    if (plan_.drain == 0 && running == plan_.at_once) {
      count_lateness(number);
      ++count_.given_back;
      return false;
    }
    ++running;
    life.state = State::kRuns;
    return true;
  }

  std::uint64_t comes_back_us(std::uint64_t number) override {
    return lives_[number].due_us = utc_us() + plan_.comes_back_ms * 1'000;
  }

  void begin(Download download) override {
    count_lateness(download.number);
    ++count_.begun;
    const double ms = plan_.drain != 0 ? 0 : lengths_(random_);
    ends_.push({utc_us() + static_cast<std::uint64_t>(ms * 1e3), download});
  }

  void finish_answered(std::uint64_t number) override {
    if (lives_[number].state != State::kEnded) ++wrong_;
    lives_[number].state = State::kGone;
    ++count_.finished;
  }

 private:
  enum class State : std::uint8_t { kWaits, kRuns, kEnded, kGone };
  struct Life {
    std::uint64_t due_us;
    State state = State::kWaits;
  };
  struct Running {
    std::uint64_t until_us;
    Download download;
    bool operator>(const Running& other) const { return until_us > other.until_us; }
  };

  std::size_t site(std::uint64_t number) const {
    if (number % 5 == 0) return 0;
    return 1 + (number * 2'654'435'761 >> 16) % (plan_.sites - 1);
  }

  double elapsed() const { return static_cast<double>(utc_us() - start_us_) / 1e6; }
  double planned(std::size_t put) const {
    return plan_.drain != 0 ? 0 : static_cast<double>(put) / plan_.rate;
  }
  double behind() const { return elapsed() - planned(lives_.size()); }

  template <class Over>
  void turn_until(Over over) {
    while (!over()) {
      const bool producers_busy = !put_what_is_planned();
      end_what_is_over();
      const std::uint64_t now = utc_us();
      std::uint64_t wake = now + kLongestSleepUs;
      if (!ends_.empty()) wake = std::min(wake, ends_.top().until_us);
      if (!producers_busy && more_to_put()) {
        const double next = planned(lives_.size()) * 1e6;
        wake = std::min(wake, start_us_ + static_cast<std::uint64_t>(next) + 1);
      }
      if (const auto time = queue_->on_time(now)) wake = std::min(wake, *time);
      sleep_us(wake > now ? wake - now : 0);
      queue_->on_input();
      print_progress();
    }
  }

  void sleep_us(std::uint64_t us) const {
    pollfd input{.fd = queue_->epoll(), .events = POLLIN, .revents = 0};
    const timespec time{0, static_cast<long>(us) * 1'000};
    ::ppoll(&input, 1, &time, nullptr);
  }

  bool more_to_put() const { return plan_.drain == 0 || lives_.size() < plan_.drain; }

  // Returns false if all producers wait for an answer.
  bool put_what_is_planned() {
    while (more_to_put() && planned(lives_.size()) <= elapsed()) {
      const std::uint64_t now = utc_us();
      const std::uint64_t due = now + (plan_.drain != 0 ? 0 : delays_ms_(random_) * 1'000);
      const std::uint64_t number = lives_.size();
      // The body begins with the number, in the place of a due time.
      if (!queue_->put(number, now, due, bodies_.next(number))) return false;
      lives_.push_back({due});
    }
    return true;
  }

  void end_what_is_over() {
    for (const std::uint64_t now = utc_us(); !ends_.empty() && ends_.top().until_us <= now;) {
      const Download download = ends_.top().download;
      ends_.pop();
      --running_[site(download.number)];
      lives_[download.number].state = State::kEnded;
      queue_->finish(download);
    }
  }

  void count_lateness(std::uint64_t number) {
    const std::uint64_t now = utc_us();
    const std::uint64_t due = lives_[number].due_us;
    if (now < due) ++early_;
    late_.add(static_cast<double>(now) - static_cast<double>(due));
  }

  // With `hold`: whoever reads the events answers each with a line.
  void wait_for_lines(int lines) {
    while (plan_.hold && lines_read_ < lines && std::getchar() != EOF) ++lines_read_;
  }

  void begin_measuring() {
    std::printf("{\"event\": \"begin\"}\n");
    std::fflush(stdout);
    before_ = count_;
    puts_.clear();
    late_.clear();
    cpu_before_ = cpu_seconds();
    measured_from_ = elapsed();
  }

  void print_progress() {
    if (elapsed() < next_line_) return;
    next_line_ = elapsed() + 1;
    std::printf("{\"seconds\": %.0f, \"finished\": %zu}\n", elapsed(), count_.finished);
    std::fflush(stdout);
  }

  void print_result() {
    const double took = elapsed() - measured_from_;
    const double cpu = cpu_seconds() - cpu_before_;
    std::printf("{\"event\": \"end\"}\n");
    std::fflush(stdout);
    wait_for_lines(2);
    std::printf("{\"seconds\": %.3f, \"gave_up\": %s, \"cpu_s\": %.3f, ", took,
                behind() > kGiveUpBehind && plan_.drain == 0 ? "true" : "false", cpu);
    std::printf("\"puts\": %zu, \"begun\": %zu, \"given_back\": %zu, \"finished\": %zu, ",
                count_.answered - before_.answered, count_.begun - before_.begun,
                count_.given_back - before_.given_back, count_.finished - before_.finished);
    std::printf("\"early\": %zu, \"wrong\": %zu", early_, wrong_);
    for (const auto& [name, times] : {std::pair("late", &late_), std::pair("put", &puts_)}) {
      std::printf(", \"%s_p50_ms\": %.3f, \"%s_p99_ms\": %.3f, \"%s_p999_ms\": %.3f", name,
                  times->percentile(0.5) / 1e3, name, times->percentile(0.99) / 1e3, name,
                  times->percentile(0.999) / 1e3);
    }
    std::printf("}\n");
  }

  const Plan& plan_;
  std::mt19937_64 random_{11};
  std::uniform_int_distribution<std::uint64_t> delays_ms_{0, plan_.most_delay_ms};
  std::uniform_real_distribution<double> lengths_{plan_.least_ms, plan_.most_ms};
  Bodies bodies_{7};
  std::vector<Life> lives_;           // by number
  std::vector<std::size_t> running_;  // of each site
  std::priority_queue<Running, std::vector<Running>, std::greater<>> ends_;
  std::unique_ptr<TaskQueue> queue_;
  std::uint64_t start_us_ = 0;
  double measured_from_ = 0;
  double cpu_before_ = 0;
  double next_line_ = 0;
  int lines_read_ = 0;
  Counts count_, before_;
  std::size_t early_ = 0;
  std::size_t wrong_ = 0;  // a download that was taken while it ran, or after its end
  Histogram late_, puts_;
};

}  // namespace

void run_centre(const Plan& plan, MakeQueue make_queue) {
  Centre centre(plan, make_queue);
  plan.drain != 0 ? centre.run_drain() : centre.run_steady();
}

}  // namespace carillon::bench
