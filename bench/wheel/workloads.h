// The workloads W1 .. W6, each the time in ns per operation that one run of one system took.
#pragma once

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "carillon/wheel/timer_node.h"

namespace carillon::bench {

// What all systems of one N are given: the same delays, and the same orders.
struct Inputs {
  std::vector<std::uint32_t> delays;        // 1 .. 60 000, uniform
  std::vector<std::uint32_t> wide_delays;   // 1 .. 2.6e9, log-uniform
  std::vector<std::uint32_t> random_order;  // a permutation

  explicit Inputs(std::size_t n) : delays(n), wide_delays(n), random_order(n) {
    std::mt19937_64 random(42);
    for (auto& delay : delays) delay = static_cast<std::uint32_t>(1 + random() % 60'000);
    std::uniform_real_distribution<double> magnitude(0.0, std::log(2.6e9));
    for (auto& delay : wide_delays) delay = static_cast<std::uint32_t>(std::max(1.0, std::exp(magnitude(random))));
    std::iota(random_order.begin(), random_order.end(), 0U);
    std::shuffle(random_order.begin(), random_order.end(), random);
  }
};

// Counts this thread's time on a CPU: what else the machine runs lengthens the wall clock, not this.
class Stopwatch {
 public:
  double nanoseconds() const { return now() - start_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }

  double start_ = now();
};

// How often a run repeats a workload of `n` timers, so that small ones last long enough to be measured.
inline std::size_t repetitions(std::size_t n) {
  return std::max<std::size_t>(1, 200'000 / n);
}

struct ScheduleAndCancel {
  double schedule, cancel;
};

// W1 schedules N timers, W2 cancels them in random order. The same system serves all runs, so that its memory is as warm as its
// timers', and time moves on between them.
template <class System, class Timers>
ScheduleAndCancel schedule_and_cancel(System& system, Timers& timers, const Inputs& in, Tick& now) {
  ScheduleAndCancel sum{};
  for (std::size_t repetition = 0; repetition < repetitions(timers.size()); ++repetition) {
    const Stopwatch scheduling;
    for (std::size_t i = 0; i < timers.size(); ++i) system.schedule(timers[i], now + in.delays[i]);
    sum.schedule += scheduling.nanoseconds();
    const Stopwatch cancelling;
    for (const std::uint32_t i : in.random_order) system.cancel(timers[i]);
    sum.cancel += cancelling.nanoseconds();
    system.advance(now += 65'536, [](auto&) {});
  }
  const auto operations = static_cast<double>(timers.size() * repetitions(timers.size()));
  return {sum.schedule / operations, sum.cancel / operations};
}

// W3: N timers, then tick by tick until all have fired; per timer, the scheduling not counted.
template <class System, class Timers>
double fire_all(Timers& timers, const Inputs& in) {
  const std::size_t times = repetitions(timers.size());
  double sum = 0;
  std::size_t fired = 0;
  for (std::size_t repetition = 0; repetition < times; ++repetition) {
    const auto system = std::make_unique<System>();
    for (std::size_t i = 0; i < timers.size(); ++i) system->schedule(timers[i], in.delays[i]);
    const Stopwatch stepping;
    for (Tick now = 1; now <= 60'000; ++now) {
      system->advance(now, [&](auto& timer) {
        ++timer.payload[0];
        ++fired;
      });
    }
    sum += stepping.nanoseconds();
  }
  if (fired != timers.size() * times) throw std::logic_error("W3: a timer was lost");
  return sum / static_cast<double>(fired);
}

// W3e: a tick at which nothing is due, with one timer far away; per tick.
template <class System, class Timers>
double empty_ticks(Timers& timers) {
  const auto system = std::make_unique<System>();
  constexpr Tick kTicks = 10'000'000;
  system->schedule(timers[0], 4'000'000'000);
  const Stopwatch stepping;
  for (Tick now = 1; now <= kTicks; ++now) system->advance(now, [](auto&) {});
  const double time = stepping.nanoseconds();
  system->cancel(timers[0]);
  return time / static_cast<double>(kTicks);
}

// W4: N timers of 30 000 ticks, at each of 60 000 ticks N/10 000 of them, at random, are re-armed; per re-arm.
template <class System, class Timers>
double keepalive(Timers& timers) {
  const auto system = std::make_unique<System>();
  const std::size_t per_tick = timers.size() / 10'000;
  for (auto& timer : timers) system->schedule(timer, 30'000);
  std::uint64_t random = 88172645463325252ULL;
  std::size_t idle = 0;
  const Stopwatch stepping;
  for (Tick now = 1; now <= 60'000; ++now) {
    system->advance(now, [&](auto& timer) {
      ++idle;
      system->schedule(timer, now + 30'000);
    });
    for (std::size_t i = 0; i < per_tick; ++i) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      system->reschedule(timers[(random >> 32) * timers.size() >> 32], now + 30'000);
    }
  }
  const double time = stepping.nanoseconds();
  for (auto& timer : timers) system->cancel(timer);
  return time / static_cast<double>(per_tick * 60'000);
}

// W5: N timers over a wide range, from wake-up to wake-up until all have fired; per timer, with the scheduling.
template <class System, class Timers>
double wide_range(Timers& timers, const Inputs& in) {
  const auto system = std::make_unique<System>();
  std::size_t fired = 0;
  const Stopwatch stopwatch;
  for (std::size_t i = 0; i < timers.size(); ++i) system->schedule(timers[i], in.wide_delays[i]);
  while (const auto wakeup = system->next_wakeup()) {
    system->advance(*wakeup, [&](auto& timer) {
      ++timer.payload[0];
      ++fired;
    });
  }
  const double time = stopwatch.nanoseconds();
  if (fired != timers.size()) throw std::logic_error("W5: a timer was lost");
  return time / static_cast<double>(timers.size());
}

// W6: bytes per pending timer beyond its payload.
template <class System, class Timers>
double bytes_per_timer(Timers& timers, const Inputs& in) {
  const auto system = std::make_unique<System>();
  for (std::size_t i = 0; i < timers.size(); ++i) system->schedule(timers[i], in.delays[i]);
  const double allocated = static_cast<double>(system->allocated_bytes()) / static_cast<double>(timers.size());
  for (auto& timer : timers) system->cancel(timer);
  return allocated + static_cast<double>(sizeof(typename System::Timer) - sizeof(timers[0].payload));
}

}  // namespace carillon::bench
