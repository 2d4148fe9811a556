// Contestant: one system that is measured: a name, and a function per workload. The systems
// register themselves.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "roster.h"
#include "workloads.h"

namespace carillon::bench {

// A workload, or two, in one run. The first gives two figures (W1, W2), the others one.
enum Trial : std::size_t {
  kScheduleAndCancel,
  kFire,
  kEmptyTick,
  kKeepalive,
  kWideRange,
  kMemory,
  kChurn,
  kTrials
};

struct Contestant {
  std::string name;
  int rank = 0;             // orders the tables
  bool linear = false;      // its operations read all N timers: not measured with many
  bool huge_pages = false;  // its timers and slots lie in pages of 2 MiB
  std::array<Outcome (*)(const Inputs&), kTrials> trials{};  // null: it cannot do that workload
};

// Adds a system to the contestants, with the workloads that it can do. W5 needs timers of a wide
// range, and next_wakeup() or run_to_end().
template <class System>
struct Registration {
  static constexpr bool kWide = System::kRange > static_cast<Tick>(Inputs::kWidest);

  explicit Registration(Contestant contestant) {
    auto& trials = contestant.trials;
    trials[kScheduleAndCancel] = schedule_and_cancel<System>;
    trials[kFire] = fire_all<System>;
    trials[kEmptyTick] = empty_tick<System>;
    trials[kKeepalive] = keepalive<System>;
    trials[kChurn] = churn<System>;
    if constexpr (kWide && (requires(System system) { system.next_wakeup(); } || System::kSleeps))
      trials[kWideRange] = wide_range<System>;
    if (!contestant.huge_pages) trials[kMemory] = memory<System>;
    enter(std::move(contestant));
  }
};

}  // namespace carillon::bench
