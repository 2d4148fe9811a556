// The trials T1 to T4, for any system that fires timers by itself, in real time.
//
// A System is constructed with the number of timers, the number of producers, and the log. A timer
// is named by its number `slot`; one producer uses it at a time. A System has these functions,
// which are called on the producer's thread, except settle():
//
//   schedule(producer, slot, delay)   calls log.expect(slot, delay), then schedules a task, which
//                                     calls log.fire(slot)
//   cancel(producer, slot)
//   finish(producer)                  called when the producer pauses or ends
//   settle()                          returns when all calls of all producers have taken effect
//
// A System is never destroyed: its process ends instead.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "timer/fire_log.h"
#include "timer/plan.h"
#include "timer/usage.h"

namespace carillon::bench {

using std::chrono::milliseconds;

// The random delays of T1 and T4.
class FarDelays {
 public:
  explicit FarDelays(unsigned seed) : random_(seed) {}
  milliseconds next() { return milliseconds(kFarMs + (random_() * std::uint64_t{kFarMs} >> 31U)); }

 private:
  std::minstd_rand random_;
  static_assert(std::minstd_rand::max() == 0x7ffffffeU);
};

// T1. The rate is pairs per second of the producers' wall time. CPU is that of the whole process,
// until all calls have taken effect.
template <class System>
Figures make_pairs(const Plan& plan) {
  FireLog& log = *new FireLog(0);
  const std::size_t each = plan.timers / plan.producers;
  const std::size_t pairs = plan.pairs / plan.producers;
  const std::size_t slots = each + kOnTheWay;  // per producer
  System& system = *new System(slots * plan.producers, plan.producers, log);
  std::barrier line(static_cast<std::ptrdiff_t>(plan.producers) + 1);
  std::vector<std::thread> producers;
  for (unsigned producer = 0; producer < plan.producers; ++producer) {
    producers.emplace_back([&, producer] {
      FarDelays delays(producer + 1);
      const std::size_t first = slots * producer;
      for (std::size_t i = 0; i < slots; ++i) system.schedule(producer, first + i, delays.next());
      system.finish(producer);
      line.arrive_and_wait();
      line.arrive_and_wait();
      for (std::size_t i = 0, slot = first + each; i < pairs; ++i) {
        system.cancel(producer, slot);
        system.schedule(producer, slot, delays.next());
        if (++slot == first + slots) slot = first + each;
      }
      system.finish(producer);
      line.arrive_and_wait();
    });
  }
  line.arrive_and_wait();
  system.settle();
  const Usage before = Usage::now();
  const std::int64_t start = FireLog::now();
  line.arrive_and_wait();
  line.arrive_and_wait();
  const double seconds = static_cast<double>(FireLog::now() - start) / 1e9;
  system.settle();
  const Usage used = Usage::now() - before;
  for (auto& producer : producers) producer.join();
  const auto done = static_cast<double>(pairs * plan.producers);
  return {{"rate", done / seconds}, {"cpu", used.cpu_ns / done}};
}

// T2, T3. One producer schedules all timers, with delays in whole milliseconds, because all systems
// take those. Then the timers fire, spread evenly over the span, in an order unrelated to that of
// scheduling.
template <class System>
Figures fire(const Plan& plan) {
  FireLog& log = *new FireLog(plan.timers);
  System& system = *new System(plan.timers, 1, log);
  std::mt19937_64 random(42);
  const std::int64_t start = FireLog::now();
  const std::int64_t first = start + plan.lead_ms * std::int64_t{1'000'000};
  for (std::size_t slot = 0; slot < plan.timers; ++slot) {
    const auto at =
        first + static_cast<std::int64_t>(random() % (plan.span_ms * std::uint64_t{1'000'000}));
    system.schedule(0, slot,
                    milliseconds(std::max<std::int64_t>(1, (at - FireLog::now()) / 1'000'000)));
  }
  system.finish(0);
  system.settle();
  if (FireLog::now() >= first) throw std::runtime_error("scheduling took longer than the lead");
  std::this_thread::sleep_for(std::chrono::nanoseconds(first - FireLog::now()));
  const Usage before = Usage::now();
  std::this_thread::sleep_for(milliseconds(plan.span_ms));
  while (log.fired() < plan.timers) std::this_thread::sleep_for(milliseconds(5));
  const Usage used = Usage::now() - before;

  std::vector<double> late(plan.timers);
  double early = 0;
  for (std::size_t slot = 0; slot < plan.timers; ++slot) {
    late[slot] = static_cast<double>(log.fired_at()[slot] - log.deadlines()[slot]) / 1e3;
    if (late[slot] < 0) ++early;
  }
  std::sort(late.begin(), late.end());
  const auto took = *std::max_element(log.fired_at().begin(), log.fired_at().end()) -
                    *std::min_element(log.deadlines().begin(), log.deadlines().end());
  const auto timers = static_cast<double>(plan.timers);
  const auto percentile = [&](double p) {
    return late[static_cast<std::size_t>(p * (timers - 1))];
  };
  return {{"rate", timers / (static_cast<double>(took) / 1e9)},
          {"cpu", used.cpu_ns / timers},
          {"cpu_ms", used.cpu_ns / 1e6},
          {"sleeps", used.sleeps},
          {"early", early},
          {"min", late.front()},
          {"p50", percentile(0.50)},
          {"p99", percentile(0.99)},
          {"max", late.back()}};
}

// T4.
template <class System>
Figures idle(const Plan& plan) {
  FireLog& log = *new FireLog(0);
  System& system = *new System(plan.timers, 1, log);
  FarDelays delays(1);
  for (std::size_t slot = 0; slot < plan.timers; ++slot)
    system.schedule(0, slot, 60 * delays.next());
  system.finish(0);
  system.settle();
  std::this_thread::sleep_for(milliseconds(200));
  const Usage before = Usage::now();
  std::this_thread::sleep_for(milliseconds(plan.span_ms));
  const Usage used = Usage::now() - before;
  const double seconds = plan.span_ms / 1e3;
  return {{"cpu_ms", used.cpu_ns / 1e6 / seconds}, {"sleeps", used.sleeps / seconds}};
}

}  // namespace carillon::bench
