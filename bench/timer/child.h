// Trials in processes of their own: each starts with fresh memory, and what getrusage says is of
// one system alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "timer/plan.h"

namespace carillon::bench {

// What `measure` finds in a child process, which ends then. Throws std::runtime_error if it throws,
// dies, or takes longer than two minutes. REQUIRES: the calling process has one thread.
Figures in_child(const std::function<Figures()>& measure);

// A program in another language that makes trials (bench/peers).
//   PROGRAM --systems                                     prints the names of its systems, one a line
//   PROGRAM SYSTEM TRIAL PRODUCERS TIMERS PAIRS LEAD SPAN   prints lines of a figure's name and its value; nothing if
//                                                         the system does not do this
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
