// Trials in processes of their own: each trial starts with fresh memory, and getrusage() counts one
// system alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "timer/plan.h"

namespace carillon::bench {

// Runs `measure` in a child process, and returns what it returns. Throws std::runtime_error if
// `measure` throws, or if the child dies or takes longer than two minutes. REQUIRES: the calling
// process has one thread.
Figures in_child(const std::function<Figures()>& measure);

// A program in another language that makes trials (bench/peers).
//
//   PROGRAM --systems
//     prints the names of its systems, one per line
//   PROGRAM SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN
//     makes one trial and prints its figures: one per line, the name and the value. Prints nothing
//     if the system does not take part in this trial. TRIAL is one of kTrialNames (plan.h), LEAD
//     and SPAN are in milliseconds.
class Peer {
 public:
  explicit Peer(std::vector<std::string> command) : command_(std::move(command)) {}

  std::vector<std::string> systems() const;
  Figures measure(const std::string& system, const Plan& plan) const;

 private:
  std::string output(const std::vector<std::string>& arguments) const;

  std::vector<std::string> command_;
};

}  // namespace carillon::bench
