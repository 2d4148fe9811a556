// Results: the figures of all runs, by workload and system, printed as tables in Markdown or as
// JSON.
#pragma once

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "timer/plan.h"

namespace carillon::bench {

// A trial with its numbers. Each workload is printed as one table.
struct Workload {
  std::string name;  // such as T3; T1x2 is T1 with two producers
  Plan plan;
};

class Results {
 public:
  void add(const Workload& workload, const std::string& system, const Figures& figures);

  void print_table(std::FILE* out, const Workload& workload) const;

  // Prints an object {"machine": ..., "command": ..., "results": [...]}, one line per figure.
  void print_json(std::FILE* out, const std::string& command,
                  const std::vector<Workload>& workloads) const;

 private:
  std::vector<double> runs(const std::string& workload, const std::string& system,
                           const std::string& figure) const;

  std::map<std::string, std::map<std::string, std::vector<Figures>>> runs_;
};

}  // namespace carillon::bench
