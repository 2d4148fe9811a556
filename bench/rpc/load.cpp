// The load: keeps calls outstanding, and counts how each ends.
//
// If no reply to an attempt comes within the call's time-out, the attempt is over. After a pause
// the call is sent again with another id, up to 3 times in all. The longest pause doubles from one
// attempt to the next, and each pause is drawn between half of that and the whole, so that calls
// which failed together are not sent again together. A reply to an attempt that is over finds no
// call with its id, and is dropped. Each call ends exactly once, answered or failed.

#include "load.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "channel.h"
#include "pending_calls.h"

namespace rpc {

// A line has one call at a time. The thread that ends a call begins the next.
struct Line {
  std::minstd_rand random;
  std::atomic<std::uint64_t> begun{0}, ended{0};
};

namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int kAttempts = 3;
constexpr nanoseconds kFirstPause = std::chrono::milliseconds(100);  // at most
constexpr double kPatience = 60;  // seconds for the last calls to end, and for the last replies

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void rest(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "rpc: %s\n", why);
  std::_Exit(1);
}

using Count = std::atomic<std::uint64_t>;

class Load {
 public:
  explicit Load(const std::vector<std::string>& a)
      : least_timeout_(std::stod(a[3])),
        most_timeout_(std::stod(a[4])),
        ramp_(std::stod(a[5])),
        warm_up_(std::stod(a[6])),
        duration_(std::stod(a[7])),
        lines_(std::stoul(a[2])),
        channel_(
            connection(static_cast<std::uint16_t>(std::stoul(a[1]))),
            [this](const Message& reply) { on_reply(reply); },
            [] { give_up("the server has closed the connection"); }),
        deadlines_(calls_, a[0] == "scan", [this](std::uint64_t id) { on_due(id); }),
        network_([this] { io_.run(); }) {
    const auto seed = static_cast<std::uint32_t>(std::stoul(a[8]));
    std::seed_seq seeds{seed};
    std::vector<std::uint32_t> each(lines_.size());
    seeds.generate(each.begin(), each.end());
    for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].random.seed(each[i]);
    pauses_.seed(seed);
  }

  // Returns true if all counts add up.
  bool run() {
    ramp_up();
    rest(warm_up_);
    measure();
    stopping_ = true;
    await("not all calls ended", [this] { return started_ == answered_ + failed_; });
    // Replies come in order: when the server says that it has answered all, all have arrived.
    await("the server has not answered all", [this] {
      channel_.send({});
      rest(0.05);
      return has_status_ && still_to_answer_ == 0;
    });
    deadlines_.stop();
    io_.stop();
    network_.join();
    std::sort(lateness_ms_.begin(), lateness_ms_.end());
    return report();
  }

 private:
  Tcp::socket connection(std::uint16_t port) {
    Tcp::socket socket(io_);
    socket.connect({asio::ip::address_v4::loopback(), port});
    return socket;
  }

  template <class Condition>
  void await(const char* otherwise, Condition condition) {
    for (const auto start = Clock::now(); !condition(); rest(0.01))
      if (seconds_since(start) > kPatience) give_up(otherwise);
  }

  // --- Calls.

  void begin(Line& line) {
    ++line.begun;
    ++started_;
    std::uniform_real_distribution<double> timeout(least_timeout_, most_timeout_);
    auto call = std::make_unique<Call>();
    call->line = &line;
    call->timeout = std::chrono::duration_cast<nanoseconds>(
        std::chrono::duration<double>(timeout(line.random)));
    send(std::move(call));
  }

  void send(CallPtr call) {
    ++sent_;
    ++call->attempt;
    const std::uint64_t id = next_id_++;
    const nanoseconds timeout = call->timeout;
    enter(std::move(call), id, true, timeout);
    channel_.send({.id = id});  // after enter(), because the reply must find the call
  }

  void enter(CallPtr call, std::uint64_t id, bool is_sent, nanoseconds until_due) {
    call->id = id;
    call->is_sent = is_sent;
    call->due = carillon::machine_clock()->now() + until_due;
    calls_.add(std::move(call), [this](Call& added) { deadlines_.set(added); });
  }

  void on_reply(const Message& reply) {
    if (reply.id == 0) {
      server_requests_ = reply.rest[0];
      server_answers_ = reply.rest[1];
      still_to_answer_ = reply.rest[2];
      has_status_ = true;
      return;
    }
    const CallPtr call = calls_.take(reply.id, true);
    if (call == nullptr) return static_cast<void>(++late_);
    call->timer.cancel();  // if that is too late, on_due() finds the call taken
    end(*call, answered_);
  }

  void on_due(std::uint64_t id) {
    CallPtr call = calls_.take(id, false);
    if (call == nullptr) return;
    if (!call->is_sent) return send(std::move(call));
    ++timed_out_;
    const nanoseconds late = carillon::machine_clock()->now() - call->due;
    if (late.count() < 0) ++early_;
    if (measuring_) lateness_ms_.push_back(static_cast<double>(late.count()) / 1e6);
    if (call->attempt == kAttempts) return end(*call, failed_);
    const nanoseconds longest = kFirstPause * (1 << (call->attempt - 1));
    std::uniform_int_distribution<nanoseconds::rep> pause(longest.count() / 2, longest.count());
    enter(std::move(call), next_id_++, false, nanoseconds(pause(pauses_)));
  }

  void end(Call& call, Count& how) {
    Line& line = *call.line;
    if (line.begun < ++line.ended) ++ended_twice_;
    if (!stopping_) begin(line);
    ++how;  // last: when the counts are equal, all is done
  }

  // --- The run.

  void ramp_up() {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < lines_.size(); rest(0.001)) {
      const double share = std::min(1.0, seconds_since(start) / ramp_);
      const auto until = static_cast<std::size_t>(static_cast<double>(lines_.size()) * share);
      while (i < until) begin(lines_[i++]);
    }
  }

  void measure() {
    const auto start = Clock::now();
    const std::uint64_t ended = answered_ + failed_;
    cpu_ = -cpu_seconds();
    deadlines_cpu_ = -deadlines_.thread_cpu_seconds();
    measuring_ = true;
    rest(duration_);
    measuring_ = false;
    ended_ = answered_ + failed_ - ended;
    seconds_ = seconds_since(start);
    cpu_ += cpu_seconds();
    deadlines_cpu_ += deadlines_.thread_cpu_seconds();
  }

  double late_by(double share) const {
    if (lateness_ms_.empty()) return 0;
    return lateness_ms_[static_cast<std::size_t>(share *
                                                 static_cast<double>(lateness_ms_.size() - 1))];
  }

  bool report() const {
    const auto is_open = [](const Line& line) { return line.begun != line.ended; };
    const bool good = early_ == 0 && ended_twice_ == 0 && sent_ == answered_ + timed_out_ &&
                      sent_ == server_requests_ && answered_ + late_ == server_answers_ &&
                      std::none_of(lines_.begin(), lines_.end(), is_open);
    const auto number = [](const Count& count) {
      return static_cast<unsigned long long>(count.load());
    };
    const auto ended = static_cast<double>(ended_);
    std::printf(R"({"good":%s,"calls_per_s":%.1f,"late_p50_ms":%.3f,"late_p99_ms":%.3f,)"
                R"("late_max_ms":%.3f,"cpu_us_per_call":%.4f,"cpu_percent":%.2f,)"
                R"("deadlines_cpu_percent":%.2f,"calls":%llu,"answered":%llu,"failed":%llu,)"
                R"("attempts":%llu,"timed_out":%llu,"late_replies":%llu,"early":%llu,)"
                R"("ended_twice":%llu,"server_requests":%llu,"server_answers":%llu})"
                "\n",
                good ? "true" : "false", ended / seconds_, late_by(0.5), late_by(0.99), late_by(1),
                1e6 * cpu_ / ended, 100 * cpu_ / seconds_, 100 * deadlines_cpu_ / seconds_,
                number(started_), number(answered_), number(failed_), number(sent_),
                number(timed_out_), number(late_), number(early_), number(ended_twice_),
                number(server_requests_), number(server_answers_));
    return good;
  }

  const double least_timeout_, most_timeout_;  // seconds; each call draws one between the two
  const double ramp_;                          // seconds in which the first calls begin
  const double warm_up_;                       // seconds from then until the measurement
  const double duration_;                      // seconds of the measurement
  std::vector<Line> lines_;
  std::mt19937_64 pauses_;           // used by the thread of the deadlines only
  std::vector<double> lateness_ms_;  // so is this; sorted at the end
  std::atomic<bool> stopping_{false}, measuring_{false}, has_status_{false};
  Count next_id_{1};
  Count started_{0}, answered_{0}, failed_{0};  // calls
  Count sent_{0}, timed_out_{0};                // attempts
  Count late_{0};                               // replies to attempts that were over
  Count early_{0};                              // time-outs
  Count ended_twice_{0};                        // calls
  Count server_requests_{0}, server_answers_{0}, still_to_answer_{0};
  double seconds_ = 0, cpu_ = 0, deadlines_cpu_ = 0;
  std::uint64_t ended_ = 0;  // calls, during the measurement
  PendingCalls calls_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  Channel channel_;
  Deadlines deadlines_;
  std::thread network_;
};

}  // namespace

int load(const std::vector<std::string>& arguments) {
  return Load(arguments).run() ? 0 : 1;
}

}  // namespace rpc
