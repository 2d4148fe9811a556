// Rounds: runs all workloads on all systems. Systems alternate, so that other work of the machine
// disturbs all of them alike.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "contestant.h"
#include "results.h"

namespace carillon::bench {

struct Plan {
  std::size_t runs = 5;  // for each system and workload; fewer for those that take long
  // Seconds of CPU time. A run that would take longer, judged by the last N, is left out.
  double patience = 12;
  // Seconds of CPU time for the runs of a system on one workload. After the first run, a run that
  // would exceed it is left out.
  double budget = 2;
  std::function<bool(Trial)> wants_trial;
  std::function<bool(const Contestant&)> wants_system;
};

// REQUIRES: measure() is called with growing N.
class Rounds {
 public:
  Rounds(Plan plan, Results& results) : plan_(std::move(plan)), results_(results) {}

  // All workloads with N timers. Progress goes to stderr.
  void measure(std::size_t n);

 private:
  // One pass of a workload in the last run of a system.
  struct Pass {
    std::size_t n;
    double seconds;
  };
  using Cell = std::pair<std::string, Trial>;

  bool affordable(const Contestant& contestant, Trial trial, std::size_t n) const;
  double run(const Contestant& contestant, Trial trial, const Inputs& in);

  Plan plan_;
  Results& results_;
  std::map<Cell, Pass> passes_;
};

}  // namespace carillon::bench
