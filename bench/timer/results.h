// Results: the figures of all runs, by round and system, and what is printed of them: tables in
// Markdown, and JSON.
#pragma once

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "timer/plan.h"

namespace carillon::bench {

// A trial with its numbers, which is a table.
struct Workload {
  std::string name;  // T1 with one producer is T1x1
  Plan plan;
};

class Results {
 public:
  void add(const Workload& workload, const std::string& system, const Figures& figures);

  void print_table(std::FILE* out, const Workload& workload) const;

  // An object {"machine": ..., "results": [...]}, one line per figure.
  void print_json(std::FILE* out, const std::string& command,
                  const std::vector<Workload>& workloads) const;

 private:
  std::vector<double> runs(const std::string& workload, const std::string& system,
                           const std::string& figure) const;

  std::map<std::string, std::map<std::string, std::vector<Figures>>> runs_;
};

}  // namespace carillon::bench
