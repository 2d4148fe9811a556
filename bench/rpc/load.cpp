#include "load.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <memory>
#include <random>
#include <thread>

#include "channel.h"

namespace rpc {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// Seconds to wait for the last calls to end, and for the last late replies.
constexpr double kPatience = 60;
constexpr std::chrono::seconds kStatusTimeout{10};

nanoseconds duration_of(double seconds) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds));
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// A line has one call at a time. The thread that ends a call begins the next.
struct Line {
  std::minstd_rand random;
  std::atomic<std::uint64_t> begun{0}, ended{0};
};

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options), lines_(options.outstanding) {
    std::seed_seq seeds{options.seed};
    std::vector<std::uint32_t> seed(lines_.size());
    seeds.generate(seed.begin(), seed.end());
    for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].random.seed(seed[i]);
    connect();
  }

  ~Load() { shut_down(); }

  LoadReport run() {
    ramp_up();
    rest(options_.warm_up);
    measure();
    stopping_ = true;
    report_.counts = await_ends();
    if (report_.failure.empty()) ask_server();
    shut_down();  // from here on no thread writes to what is read below
    for (const Line& line : lines_) report_.never_ended += line.begun > line.ended ? 1U : 0U;
    report_.ended_twice = ended_twice_;
    report_.early = early_;
    std::sort(report_.lateness_ms.begin(), report_.lateness_ms.end());
    return std::move(report_);
  }

 private:
  void connect() {
    Tcp::socket socket(io_);
    socket.connect({asio::ip::address_v4::loopback(), options_.port});
    channel_ = std::make_shared<Channel>(std::move(socket));
    if (options_.design == Design::kTimers) {
      deadlines_ = std::make_unique<TimerDeadlines>();
    } else {
      deadlines_ = std::make_unique<ScanDeadlines>(calls_, options_.scan_every);
    }
    caller_ = std::make_unique<Caller>(
        calls_, *deadlines_, [this](std::string_view frame) { channel_->send(frame); },
        CallerOptions{.attempts = options_.attempts,
                      .seed = options_.seed,
                      .on_timeout = [this](nanoseconds late) { on_timeout(late); }});
    channel_->start(
        [this](std::uint64_t id, std::string_view result) { caller_->on_reply(id, result); },
        [this](const std::string& why) {
          stopping_ = true;
          disconnected_ = true;
          caller_->on_disconnect(why);
        });
    network_ = std::thread([this] { io_.run(); });
  }

  void shut_down() {
    if (!network_.joinable()) return;
    channel_->close();
    work_.reset();
    network_.join();
    caller_.reset();
  }

  void on_timeout(nanoseconds late) {
    if (late.count() < 0) ++early_;
    if (measuring_) report_.lateness_ms.push_back(static_cast<double>(late.count()) / 1e6);
  }

  void begin(Line& line) {
    ++line.begun;
    std::uniform_real_distribution<double> timeout(options_.least_timeout, options_.most_timeout);
    caller_->call(Method::kEcho, "sixteen bytes ..", duration_of(timeout(line.random)),
                  [this, &line](const Outcome&) { on_end(line); });
  }

  void on_end(Line& line) {
    if (line.begun < ++line.ended) ++ended_twice_;
    if (!stopping_) begin(line);
  }

  void ramp_up() {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < lines_.size() && !disconnected_;) {
      const auto until = static_cast<std::size_t>(
          static_cast<double>(lines_.size()) * std::min(1.0, seconds_since(start) / options_.ramp));
      while (i < until) begin(lines_[i++]);
      rest(0.001);
    }
  }

  void rest(double seconds) { std::this_thread::sleep_for(duration_of(seconds)); }

  void measure() {
    const auto start = Clock::now();
    const CallerCounts before = caller_->counts();
    report_.cpu_seconds = -cpu_seconds();
    report_.deadline_cpu_seconds = -deadlines_->thread_cpu_seconds();
    measuring_ = true;
    rest(options_.duration);
    measuring_ = false;
    const CallerCounts after = caller_->counts();
    report_.seconds = seconds_since(start);
    report_.cpu_seconds += cpu_seconds();
    report_.deadline_cpu_seconds += deadlines_->thread_cpu_seconds();
    report_.ended = after.answered + after.failed - before.answered - before.failed;
    report_.sent = after.sent - before.sent;
  }

  CallerCounts await_ends() {
    const auto start = Clock::now();
    for (;;) {
      const CallerCounts counts = caller_->counts();
      if (disconnected_) report_.failure = "the connection ended";
      if (disconnected_ || counts.started == counts.answered + counts.failed) return counts;
      if (seconds_since(start) > kPatience) {
        report_.failure = "not all calls ended";
        return counts;
      }
      rest(0.01);
    }
  }

  // Asks until the server has answered all requests that it will answer. Replies come in order, so
  // all of them have arrived when the server says so.
  void ask_server() {
    for (const auto start = Clock::now();;) {
      const auto promise = std::make_shared<std::promise<Outcome>>();
      std::future<Outcome> future = promise->get_future();
      caller_->call(Method::kStatus, "", kStatusTimeout,
                    [=](const Outcome& end) { promise->set_value(end); });
      const Outcome outcome = future.get();
      if (!outcome.answered || outcome.text.size() != 3 * kNumberBytes) {
        report_.failure = "the server does not tell its status";
        return;
      }
      const auto number = [&](std::size_t i) {
        return read_number(std::string_view(outcome.text).substr(i * kNumberBytes, kNumberBytes));
      };
      report_.server_requests = number(0);
      report_.server_answers = number(1);
      report_.counts.late = caller_->counts().late;
      if (number(2) == 0) return;
      if (seconds_since(start) > kPatience) {
        report_.failure = "the server has still not answered all";
        return;
      }
      rest(0.05);
    }
  }

  const LoadOptions options_;
  std::vector<Line> lines_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::shared_ptr<Channel> channel_;
  PendingCalls calls_;
  std::unique_ptr<Deadlines> deadlines_;
  std::unique_ptr<Caller> caller_;
  std::thread network_;
  std::atomic<bool> stopping_{false}, disconnected_{false}, measuring_{false};
  std::atomic<std::uint64_t> early_{0}, ended_twice_{0};
  LoadReport report_;  // the thread of the deadlines writes lateness_ms until the caller is gone
};

}  // namespace

std::string LoadReport::wrong() const {
  std::string what;
  const auto expect = [&](bool right, const char* otherwise) {
    if (!right) what += (what.empty() ? "" : "; ") + std::string(otherwise);
  };
  expect(ended_twice == 0, "calls ended twice");
  expect(never_ended == 0, "calls never ended");
  expect(counts.started == counts.answered + counts.failed, "not as many calls ended as began");
  expect(counts.sent == counts.answered + counts.timed_out,
         "attempts are neither answered nor timed out");
  expect(counts.sent == server_requests,
         "the server saw another number of requests than were sent");
  expect(counts.answered + counts.late == server_answers,
         "replies are neither an end of a call nor late");
  expect(early == 0, "time-outs came early");
  return what;
}

LoadReport run_load(const LoadOptions& options) {
  return Load(options).run();
}

}  // namespace rpc
