// Contestant: one measured system, as a name and a function that makes a trial. The systems
// register themselves; programs in other languages are added by the command line (child.h).
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "roster.h"
#include "timer/trials.h"

namespace carillon::bench {

struct Contestant {
  std::string name;
  int rank = 0;                                 // the tables are in the order of ranks
  std::function<Figures(const Plan&)> measure;  // called in a process of its own
  std::function<bool(Trial)> takes_part = [](Trial) { return true; };
};

template <class System>
struct Registration {
  Registration(std::string name, int rank) {
    Contestant contestant{std::move(name), rank, nullptr};
    contestant.measure = [](const Plan& plan) {
      switch (plan.trial) {
        case Trial::kPairs:
          return make_pairs<System>(plan);
        case Trial::kFire:
        case Trial::kLate:
          return fire<System>(plan);
        case Trial::kIdle:
          break;
      }
      return idle<System>(plan);
    };
    contestant.takes_part = System::takes_part;
    enter(std::move(contestant));
  }
};

}  // namespace carillon::bench
