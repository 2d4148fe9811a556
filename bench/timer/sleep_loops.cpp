// Reference values for lateness and CPU: loops that sleep one millisecond at a time.
//   bare     does nothing else. Each sleep counts as a timer that is due one millisecond after the
//            sleep began, so the lateness is the machine's jitter.
//   sorted   has all deadlines in a sorted list and fires the timers that are due: the least work
//            that such a loop can do.
#include <time.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "timer/contestant.h"

namespace carillon::bench {
namespace {

constexpr timespec kTick{0, 1'000'000};

Figures sleep_bare(const Plan& plan) {
  std::vector<double> late;
  Usage used;
  const std::int64_t start = FireLog::now();
  const std::int64_t end = start + plan.span_ms * std::int64_t{1'000'000};
  std::thread([&] {
    late.reserve(plan.span_ms);
    for (std::int64_t now = start; now < end;) {
      nanosleep(&kTick, nullptr);
      const std::int64_t before = std::exchange(now, FireLog::now());
      late.push_back(static_cast<double>(now - before) / 1e3 - 1000);
    }
    used = Usage::now();
  }).join();
  rusage all{};
  getrusage(RUSAGE_SELF, &all);
  std::sort(late.begin(), late.end());
  const auto percentile = [&](double p) {
    return late[static_cast<std::size_t>(p * static_cast<double>(late.size() - 1))];
  };
  return {{"cpu_ms", used.cpu_ns / 1e6}, {"sleeps", static_cast<double>(all.ru_nvcsw)},
          {"min", late.front()},         {"p50", percentile(0.50)},
          {"p99", percentile(0.99)},     {"max", late.back()}};
}

class SortedLoop {
 public:
  static bool takes_part(Trial) { return false; }

  SortedLoop(std::size_t slots, unsigned, FireLog& log) : log_(log), order_(slots) {}

  void schedule(unsigned, std::size_t slot, milliseconds delay) { log_.expect(slot, delay); }
  void cancel(unsigned, std::size_t) {}
  void finish(unsigned) {}
  void settle() {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto& deadlines = log_.deadlines();
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return deadlines[a] < deadlines[b]; });
    thread_ = std::thread([this, &deadlines] {
      for (std::size_t next = 0; next < order_.size();) {
        nanosleep(&kTick, nullptr);
        const std::int64_t now = FireLog::now();
        while (next < order_.size() && deadlines[order_[next]] <= now) log_.fire(order_[next++]);
      }
    });
  }

 private:
  FireLog& log_;
  std::vector<std::size_t> order_;
  std::thread thread_;
};

struct Loops {
  Loops() {
    const auto only_late = [](Trial trial) { return trial == Trial::kLate; };
    enter(Contestant{"(sleeps 1 ms, does nothing)", 400, sleep_bare, only_late});
    enter(Contestant{"(sleeps 1 ms, sorted list)", 401, fire<SortedLoop>, only_late});
  }
};
const Loops kLoops;

}  // namespace
}  // namespace carillon::bench
