// The workloads W1 .. W7. Each is a function that runs one system once, and returns ns per
// operation, or bytes.
//
// A System is built over N timers, which it may prepare. Each timer has a 16-byte payload. A System
// has
//
//   schedule(timer, expiry)      for a timer that is not pending
//   cancel(timer)                for a timer that is pending
//   reschedule(timer, expiry)    for any timer
//   advance(to, fire)            calls fire(timer, payload) for each timer that is due, and no
//                                longer pending
//   next_wakeup()                for W5, or instead of it
//   run_to_end(fire)             for event loops that decide by themselves how long they sleep
//   reserve(n)                   makes room for n timers; optional
//   finish_cancels()             does the work that cancels leave to the next turn of a loop;
//                                optional
//   kRange                       the first delay that it cannot take, in ticks
//   kSleeps                      true if it has run_to_end()
//   kHandles                     true if Timer is only a handle to a timer that is kept elsewhere
#pragma once

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "carillon/wheel/timer_node.h"
#include "inputs.h"
#include "stopwatch.h"

namespace carillon::bench {

using Payload = std::array<std::uint64_t, 2>;

// The result of one run: two figures for W1 with W2, one for the others. Each is a mean over the
// passes of the run.
struct Outcome {
  std::vector<double> figures;
  double passes = 1;
};

inline constexpr Tick kEveryRange = Tick{1} << 40;  // as kRange: more than any workload asks for

// A system and its timers. The timers are destroyed after the system.
template <class System>
struct Field {
  std::vector<typename System::Timer> timers;
  System system;

  explicit Field(std::size_t n) : timers(n), system(std::span(timers)) {}
};

template <class System>
std::unique_ptr<Field<System>> new_field(std::size_t n) {
  return std::make_unique<Field<System>>(n);
}

// Small workloads are repeated within a run until they have lasted long enough to be measured.
class Repetition {
 public:
  explicit Repetition(std::size_t operations) : operations_(static_cast<double>(operations)) {}

  // Ends a pass. Returns true if another pass must follow.
  bool again() {
    ++passes_;
    return operations() < 3e5 && watch_.nanoseconds() < 5e7;
  }
  double operations() const { return operations_ * passes_; }
  double passes() const { return passes_; }

 private:
  double operations_;
  double passes_ = 0;
  Stopwatch watch_;
};

// Throws if a timer was lost.
inline void require_all(std::size_t fired, std::size_t n, const char* workload) {
  if (fired != n)
    throw std::logic_error(std::string(workload) + ": " + std::to_string(fired) + " of " +
                           std::to_string(n) + " timers fired");
}

// W1 schedules N timers, W2 cancels them in random order. Before anything is measured, all of them
// are scheduled and cancelled once, so that memory is warm. Time moves on in between, unmeasured,
// which is when some systems clear up after cancels; W7 counts that.
//
// A pool hands out first the memory that was freed last. After cancels in random order, its timers
// would lie in random order, while those of all other systems lie one behind the other. So each
// pass has a new pool, and the cancels that warm its memory go backwards. In W7, a pool's timers
// lie in the order that comes about.
template <class System>
class ScheduleAndCancel {
 public:
  explicit ScheduleAndCancel(const Inputs& in) : in_(in) {
    if constexpr (requires(System system) { system.reserve(in.size()); })
      system_.reserve(in.size());
    schedule();
    for (std::size_t i = in.size(); i-- > 0;) system_.cancel(timers_[i]);
    move_on();
  }

  void pass(double& scheduling, double& cancelling) {
    const Stopwatch schedule_watch;
    schedule();
    scheduling += schedule_watch.nanoseconds();
    // Handles, in the order in which they are needed, as the addresses of other timers are.
    std::vector<typename System::Timer> shuffled;
    if constexpr (System::kHandles) {
      for (const std::uint32_t i : in_.random_order) shuffled.push_back(timers_[i]);
    }
    const Stopwatch cancel_watch;
    if constexpr (System::kHandles) {
      for (auto& timer : shuffled) system_.cancel(timer);
    } else {
      for (const std::uint32_t i : in_.random_order) system_.cancel(timers_[i]);
    }
    if constexpr (requires(System system) { system.finish_cancels(); }) system_.finish_cancels();
    cancelling += cancel_watch.nanoseconds();
    move_on();
  }

 private:
  void schedule() {
    for (std::size_t i = 0; i < in_.size(); ++i) system_.schedule(timers_[i], now_ + in_.delays[i]);
  }

  void move_on() {
    std::size_t fired = 0;
    system_.advance(now_ += 65'536, [&](auto&, auto&) { ++fired; });
    require_all(fired, 0, "W2");
  }

  const Inputs& in_;
  std::unique_ptr<Field<System>> field_ = new_field<System>(in_.size());
  std::vector<typename System::Timer>& timers_ = field_->timers;
  System& system_ = field_->system;
  Tick now_ = 0;
};

template <class System>
Outcome schedule_and_cancel(const Inputs& in) {
  auto field = std::make_unique<ScheduleAndCancel<System>>(in);
  double scheduling = 0, cancelling = 0;
  Repetition repetition(in.size());
  for (;;) {
    field->pass(scheduling, cancelling);
    if (!repetition.again()) break;
    if constexpr (System::kHandles) field = std::make_unique<ScheduleAndCancel<System>>(in);
  }
  return {{scheduling / repetition.operations(), cancelling / repetition.operations()},
          repetition.passes()};
}

// W3: N timers, then tick by tick until all have fired; per timer, the scheduling not counted.
template <class System>
Outcome fire_all(const Inputs& in) {
  double time = 0;
  Repetition repetition(in.size());
  do {
    const auto field = new_field<System>(in.size());
    auto& timers = field->timers;
    auto& system = field->system;
    for (std::size_t i = 0; i < in.size(); ++i) system.schedule(timers[i], in.delays[i]);
    std::size_t fired = 0;
    const Stopwatch stepping;
    for (Tick now = 1; fired < in.size() && now <= Inputs::kLongest; ++now) {
      system.advance(now, [&](auto&, Payload& payload) {
        ++payload[0];
        ++fired;
      });
    }
    time += stepping.nanoseconds();
    require_all(fired, in.size(), "W3");
  } while (repetition.again());
  return {{time / repetition.operations()}, repetition.passes()};
}

// W3e: a tick at which nothing is due while N timers wait for a far one; per tick.
template <class System>
Outcome empty_tick(const Inputs& in) {
  constexpr Tick kFar = std::min<Tick>(4'000'000'000, System::kRange - 1);
  constexpr Tick kTicks = std::min<Tick>(10'000'000, kFar - kFar / 2);
  const auto field = new_field<System>(in.size());
  auto& timers = field->timers;
  auto& system = field->system;
  for (std::size_t i = 0; i < in.size(); ++i)
    system.schedule(timers[i], kFar - in.delays[i] % (kFar / 2));
  std::size_t fired = 0;
  Tick now = 0;
  const Stopwatch stepping;
  for (Tick stretch = 1000; now < kTicks && stepping.nanoseconds() < 5e7; stretch *= 2) {
    for (const Tick end = std::min(kTicks - 1, now + stretch); now < end;) {
      system.advance(++now, [&](auto&, auto&) { ++fired; });
    }
    if (now == kTicks - 1) break;
  }
  const double time = stepping.nanoseconds();
  require_all(fired, 0, "W3e");
  return {{time / static_cast<double>(now)}};
}

// W4: N timers of 30 000 ticks; at each of 60 000 ticks N/10 000 of them, at random, are re-armed,
// and those that fire start anew; per re-arm.
template <class System>
Outcome keepalive(const Inputs& in) {
  constexpr Tick kTimeout = 30'000, kTicks = 60'000;
  const std::size_t per_tick = std::max<std::size_t>(1, in.size() / 10'000);
  const auto field = new_field<System>(in.size());
  auto& timers = field->timers;
  auto& system = field->system;
  for (auto& timer : timers) system.schedule(timer, kTimeout);
  XorShift random;
  const Stopwatch stepping;
  for (Tick now = 1; now <= kTicks; ++now) {
    system.advance(now, [&](auto& timer, auto&) { system.schedule(timer, now + kTimeout); });
    for (std::size_t i = 0; i < per_tick; ++i)
      system.reschedule(timers[random.index(in.size())], now + kTimeout);
  }
  return {{stepping.nanoseconds() / static_cast<double>(per_tick * kTicks)}};
}

// W5: N timers over a wide range, from wake-up to wake-up until all have fired; per timer, with the
// scheduling.
template <class System>
Outcome wide_range(const Inputs& in) {
  double time = 0;
  Repetition repetition(in.size());
  do {
    const auto field = new_field<System>(in.size());
    auto& timers = field->timers;
    auto& system = field->system;
    std::size_t fired = 0;
    const auto fire = [&](auto&, Payload& payload) {
      ++payload[0];
      ++fired;
    };
    const Stopwatch stopwatch;
    for (std::size_t i = 0; i < in.size(); ++i) system.schedule(timers[i], in.wide_delays[i]);
    if constexpr (requires { system.run_to_end(fire); }) {
      system.run_to_end(fire);
    } else {
      while (const auto wakeup = system.next_wakeup()) system.advance(*wakeup, fire);
    }
    time += stopwatch.nanoseconds();
    require_all(fired, in.size(), "W5");
  } while (repetition.again());
  return {{time / repetition.operations()}, repetition.passes()};
}

// W6: bytes per pending timer beyond its payload, as malloc counts them. A handle that only the
// owner keeps is not counted.
template <class System>
Outcome memory(const Inputs& in) {
  const auto allocated = [] {
    const auto info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  const double before = allocated();
  const auto field = new_field<System>(in.size());
  auto& timers = field->timers;
  auto& system = field->system;
  for (std::size_t i = 0; i < in.size(); ++i) system.schedule(timers[i], in.delays[i]);
  const double per_timer = (allocated() - before) / static_cast<double>(in.size());
  return {{per_timer - static_cast<double>(sizeof(Payload)) -
           (System::kHandles ? sizeof(timers[0]) : 0)}};
}

// W7: N timers of 1 .. 60 000 ticks; at each of 20 000 ticks N/10 000 of them, at random, are
// cancelled and scheduled anew, and those that fire are scheduled anew; per cancel and schedule.
// The later cost of cancelled timers is included.
template <class System>
Outcome churn(const Inputs& in) {
  constexpr Tick kTicks = 20'000;
  const std::size_t per_tick = std::max<std::size_t>(1, in.size() / 10'000);
  const auto field = new_field<System>(in.size());
  auto& timers = field->timers;
  auto& system = field->system;
  for (std::size_t i = 0; i < in.size(); ++i) system.schedule(timers[i], in.delays[i]);
  XorShift random;
  const Stopwatch stepping;
  for (Tick now = 1; now <= kTicks; ++now) {
    system.advance(now, [&](auto& timer, auto&) { system.schedule(timer, now + random.delay()); });
    for (std::size_t i = 0; i < per_tick; ++i) {
      auto& timer = timers[random.index(in.size())];
      system.cancel(timer);
      system.schedule(timer, now + random.delay());
    }
  }
  return {{stepping.nanoseconds() / static_cast<double>(per_tick * kTicks)}};
}

}  // namespace carillon::bench
