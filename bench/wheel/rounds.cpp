// Runs the contestants in turns.
#include "rounds.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include "huge_pages.h"
#include "stopwatch.h"

namespace carillon::bench {
namespace {

constexpr const char* kTrialNames[kTrials] = {"W1 W2", "W3", "W3e", "W4", "W5", "W6", "W7"};

// The system's clock: the steady one may be virtual here (virtual_time.h).
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool on_a_terminal() {
  return isatty(STDERR_FILENO) != 0;
}

void show_progress(std::size_t n, Trial trial, std::size_t run, std::size_t runs,
                   const Contestant& contestant) {
  if (on_a_terminal())
    std::fprintf(stderr, "\r\033[KN = %zu  %s  run %zu of %zu  %s", n, kTrialNames[trial], run + 1,
                 runs, contestant.name.c_str());
}

void clear_progress() {
  if (on_a_terminal()) std::fprintf(stderr, "\r\033[K");
}

void show_end_of(std::size_t n, Trial trial, double seconds) {
  if (!on_a_terminal())
    std::fprintf(stderr, "N = %zu  %-5s  %.1f s\n", n, kTrialNames[trial], seconds);
}

}  // namespace

void Rounds::measure(std::size_t n) {
  const Inputs in(n);
  for (std::size_t number = 0; number < kTrials; ++number) {
    const auto trial = static_cast<Trial>(number);
    if (!plan_.wants_trial(trial)) continue;
    const double start = seconds_now();
    std::map<std::string, double> used;  // seconds, by system
    // Bytes do not vary. An empty tick does not depend on N, and to schedule ten million timers for
    // it takes long.
    const bool once = trial == kMemory || (trial == kEmptyTick && n > 1'000'000);
    const std::size_t runs = once ? 1 : plan_.runs;
    for (std::size_t round = 0; round < runs; ++round) {
      for (const Contestant& contestant : roster<Contestant>()) {
        if (contestant.trials[trial] == nullptr || !plan_.wants_system(contestant)) continue;
        const auto so_far = used.find(contestant.name);
        if (round == 0) {
          if (!affordable(contestant, trial, n)) continue;
        } else if (so_far == used.end() || so_far->second * static_cast<double>(round + 1) >
                                               plan_.budget * static_cast<double>(round)) {
          continue;
        }
        show_progress(n, trial, round, runs, contestant);
        used[contestant.name] += run(contestant, trial, in);
      }
    }
    clear_progress();
    show_end_of(n, trial, seconds_now() - start);
  }
}

// Judges by the last N, which was smaller. With N, memory gets slower for all systems; a linear
// system takes the square of the growth. W3e and W6 take time for scheduling only. The systems that
// the ratios refer to are never left out.
bool Rounds::affordable(const Contestant& contestant, Trial trial, std::size_t n) const {
  for (const Column& column : kColumns) {
    if (column.trial == trial && contestant.name == reference(column)) return true;
  }
  auto last = passes_.find({contestant.name, kScheduleAndCancel});
  if (last == passes_.end() || (trial != kEmptyTick && trial != kMemory))
    last = passes_.find({contestant.name, trial});
  if (last == passes_.end()) return !contestant.linear || n <= 10'000;
  const double growth = static_cast<double>(n) / static_cast<double>(last->second.n);
  return last->second.seconds * std::pow(growth, contestant.linear ? 2.0 : 1.3) <= plan_.patience;
}

double Rounds::run(const Contestant& contestant, Trial trial, const Inputs& in) {
  std::optional<HugePages> pages;
  if (contestant.huge_pages) pages.emplace();
  const Stopwatch watch;
  const Outcome outcome = contestant.trials[trial](in);
  const double seconds = watch.nanoseconds() / 1e9;
  passes_[{contestant.name, trial}] = {in.size(), seconds / outcome.passes};
  for (const Column& column : kColumns) {
    if (column.trial == trial)
      results_.add(in.size(), column, contestant.name, outcome.figures[column.figure]);
  }
  return seconds;
}

}  // namespace carillon::bench
