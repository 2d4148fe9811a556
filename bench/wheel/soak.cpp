// carillon_soak_wheel: a billion operations on the default wheel. It watches the memory and
// accounts for every timer.
//
//   carillon_soak_wheel                           # 10^9 operations, a minute or so
//   carillon_soak_wheel --operations 1e8 --json
//
// Time is virtual, in ticks of a millisecond. At each tick a thousand requests start, and are
// answered 100 ticks later: each is a timer of 30 s that never fires. Beside them, up to 800 000
// sessions have timers of 1 tick to 17 minutes, any magnitude as likely as any other. These timers
// are scheduled, cancelled, put off and brought forward at random, and fire. Every 50 million
// operations the sessions shrink to 10 000, or grow back.
//
// It fails, with exit code 1,
//  - if a timer fires at another tick than its own, or is lost;
//  - if the wheel has allocated more memory than hierarchical_wheel.h allows for the most timers
//    that were ever pending;
//  - if the program's resident memory grows by 16 MiB more than that.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "carillon/wheel/hierarchical_wheel.h"
#include "stopwatch.h"

namespace carillon::bench {
namespace {

using Wheel = HierarchicalWheel<>;

constexpr std::size_t kSessions = 800'000;
constexpr std::size_t kFewSessions = 10'000;
constexpr std::size_t kRequests = 200'000;
constexpr std::size_t kRequestsPerTick = 1000;
constexpr std::size_t kUnanswered = 100 * kRequestsPerTick;
constexpr std::uint64_t kPhase = 50'000'000;  // operations
constexpr Tick kTimeout = 30'000;
constexpr std::size_t kHeap = 16 << 20;  // bytes of heap that may be lost between slabs

class Random {
 public:
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(((*this)() >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_ = 88172645463325252ULL;
};

std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

struct Counts {
  std::uint64_t scheduled = 0, cancelled = 0, put_off = 0, brought_forward = 0, fired = 0;
  std::uint64_t operations() const { return scheduled + cancelled + put_off + brought_forward; }
};

class Soak {
 public:
  explicit Soak(std::uint64_t operations) : operations_(operations) {}

  void run(bool tell) {
    nodes_bytes_ = resident_bytes();
    std::uint64_t told = 0;
    while (counts_.operations() < operations_) {
      tick();
      if (wheel_.now() % 1024 == 0) watch();
      if (counts_.operations() / kPhase == told) continue;
      told = counts_.operations() / kPhase;
      if (tell) print_progress();
      shrunken_ = !shrunken_;
    }
    watch();
    wheel_.check_invariants();
    at_end_ = wheel_.size();
    ticks_ = wheel_.now();
    drain();
  }

  void print_summary() const {
    std::printf(
        "%.0f operations in %.1f s of CPU, %.1f ns each, %llu ticks: %llu scheduled, %llu "
        "cancelled, %llu put off, "
        "%llu brought forward, %llu fired, %zu of them after the last operation; none early, late "
        "or lost\n",
        static_cast<double>(counts_.operations()), seconds_, ns_each(), show(ticks_),
        show(counts_.scheduled), show(counts_.cancelled), show(counts_.put_off),
        show(counts_.brought_forward), show(counts_.fired), at_end_);
    std::printf(
        "at most %zu pending; the wheel allocated at most %.1f MiB of the %.1f that its header "
        "allows, resident %.1f "
        "MiB "
        "at most and %.1f before the first timer\n",
        peak_live_, mib(peak_bytes_), mib(allowed()), mib(peak_resident_), mib(nodes_bytes_));
  }

  void print_json() const {
    std::printf(
        "{\"operations\": %llu, \"cpu_seconds\": %.2f, \"ns_per_operation\": %.2f, \"scheduled\": "
        "%llu, "
        "\"cancelled\": %llu, \"put_off\": %llu, \"brought_forward\": %llu, \"fired\": %llu, "
        "\"fired_after_the_end\": "
        "%zu, "
        "\"ticks\": %llu, \"peak_pending\": %zu, \"peak_allocated_bytes\": %zu, \"allowed_bytes\": "
        "%zu, "
        "\"allocated_bytes_when_empty\": %zu, \"resident_bytes_before\": %zu, "
        "\"peak_resident_bytes\": %zu}\n",
        show(counts_.operations()), seconds_, ns_each(), show(counts_.scheduled),
        show(counts_.cancelled), show(counts_.put_off), show(counts_.brought_forward),
        show(counts_.fired), at_end_, show(ticks_), peak_live_, peak_bytes_, allowed(),
        wheel_.allocated_bytes(), nodes_bytes_, peak_resident_);
  }

 private:
  static unsigned long long show(std::uint64_t count) { return count; }
  static double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
  double ns_each() const { return seconds_ * 1e9 / static_cast<double>(counts_.operations()); }

  static void require(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
  }

  void tick() {
    for (std::size_t i = 0; i < kRequestsPerTick; ++i) {
      if (started_ - answered_ >= kUnanswered) answer();
      start();
      use_a_session();
      use_a_session();
    }
    advance(wheel_.now() + 1);
  }

  // The requests are a ring. Their answers come in nearly the order of the requests.
  void start() {
    TimerNode& request = requests_[started_++ % kRequests];
    require(!request.armed(), "a request was never answered");
    wheel_.schedule(request, wheel_.now() + kTimeout);
    ++counts_.scheduled;
  }

  void answer() {
    constexpr std::size_t kShuffled = 64;
    const std::size_t block = answered_ / kShuffled * kShuffled;
    const std::size_t which = block + (answered_ * 37 + block / kShuffled) % kShuffled;
    ++answered_;
    require(wheel_.cancel(requests_[which % kRequests]), "a request's timer was lost");
    ++counts_.cancelled;
  }

  void use_a_session() {
    const std::uint64_t dice = random_();
    const std::size_t number =
        random_.below(shrunken_ && dice >> 63 == 0 ? kFewSessions : kSessions);
    TimerNode& session = sessions_[number];
    if (shrunken_ && number >= kFewSessions) {
      if (wheel_.cancel(session)) ++counts_.cancelled;
      return;
    }
    if (!session.armed()) {
      wheel_.schedule(session, wheel_.now() + some_delay(dice));
      ++counts_.scheduled;
    } else if (dice % 8 == 0) {
      wheel_.cancel(session);
      ++counts_.cancelled;
    } else if (dice % 8 == 1) {
      wheel_.reschedule(session, wheel_.now() + 1 + (session.expiry() - wheel_.now()) / 2);
      ++counts_.brought_forward;
    } else {
      wheel_.reschedule(session, session.expiry() + some_delay(dice));
      ++counts_.put_off;
    }
  }

  static Tick some_delay(std::uint64_t dice) {
    const unsigned bits = static_cast<unsigned>(dice >> 3) % 20;
    return (Tick{1} << bits) + ((dice >> 20) & ((Tick{1} << bits) - 1));
  }

  void advance(Tick to) {
    wheel_.advance(to, [this](TimerNode& node) {
      ++counts_.fired;
      if (node.expiry() != wheel_.now())
        throw std::runtime_error("a timer of tick " + std::to_string(node.expiry()) +
                                 " fired at tick " + std::to_string(wheel_.now()));
    });
  }

  void watch() {
    peak_live_ = std::max(peak_live_, wheel_.size());
    peak_bytes_ = std::max(peak_bytes_, wheel_.allocated_bytes());
    peak_resident_ = std::max(peak_resident_, resident_bytes());
    require(counts_.fired + counts_.cancelled + wheel_.size() == counts_.scheduled,
            "timers were lost, or fired twice");
    require(peak_bytes_ <= allowed(), "the wheel has allocated " + std::to_string(peak_bytes_) +
                                          " bytes for at most " + std::to_string(peak_live_) +
                                          " timers");
    require(peak_resident_ <= nodes_bytes_ + allowed() + kHeap,
            "the program's memory has grown to " + std::to_string(peak_resident_) + " bytes");
  }

  // The bytes that the wheel may have allocated: three entries of 8 bytes per timer, in chunks of
  // 64 words of which 62 are entries; a chunk of 512 bytes per slot; and 512 KiB.
  std::size_t allowed() const {
    return 24 * peak_live_ * 64 / 62 + Wheel::kSlots * 512 + (512 << 10);
  }

  // Fires the timers that are left, each at its tick. Then all are accounted for.
  void drain() {
    seconds_ = watch_.nanoseconds() / 1e9;
    while (const std::optional<Tick> wakeup = wheel_.next_wakeup()) advance(*wakeup);
    require(counts_.fired + counts_.cancelled == counts_.scheduled,
            "timers were lost, or fired twice");
    wheel_.check_invariants();
    require(wheel_.allocated_bytes() <= 600 << 10,
            "an empty wheel keeps more than half a megabyte");
  }

  void print_progress() const {
    std::printf(
        "%11llu operations, %6.1f s, tick %9llu: %7zu pending, %5.1f MiB allocated, %6.1f MiB "
        "resident\n",
        show(counts_.operations()), watch_.nanoseconds() / 1e9, show(wheel_.now()), wheel_.size(),
        mib(wheel_.allocated_bytes()), mib(resident_bytes()));
    std::fflush(stdout);
  }

  std::uint64_t operations_;
  std::unique_ptr<TimerNode[]> requests_ = std::make_unique<TimerNode[]>(kRequests);
  std::unique_ptr<TimerNode[]> sessions_ = std::make_unique<TimerNode[]>(kSessions);
  std::size_t started_ = 0, answered_ = 0;
  bool shrunken_ = false;
  Wheel wheel_;
  Random random_;
  Counts counts_;
  Stopwatch watch_;
  double seconds_ = 0;
  std::size_t at_end_ = 0;
  Tick ticks_ = 0;
  std::size_t peak_live_ = 0, peak_bytes_ = 0, peak_resident_ = 0, nodes_bytes_ = 0;
};

constexpr const char* kUsage =
    "usage: carillon_soak_wheel [--operations COUNT] [--json]\n"
    "  --operations COUNT  how many calls (default 1e9)\n"
    "  --json              print the outcome as JSON, and no progress\n";

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  using carillon::bench::kUsage;
  using carillon::bench::Soak;
  double operations = 1e9;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json") {
      json = true;
    } else if (flag == "--operations" && i + 1 < argc) {
      char* end = nullptr;
      operations = std::strtod(argv[++i], &end);
      if (*end != '\0') operations = 0;
    } else {
      operations = 0;
    }
  }
  if (!(operations >= 1 && operations <= 1e15)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    Soak soak(static_cast<std::uint64_t>(operations));
    soak.run(!json);
    json ? soak.print_json() : soak.print_summary();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_soak_wheel: %s\n", error.what());
    return 1;
  }
  return 0;
}
