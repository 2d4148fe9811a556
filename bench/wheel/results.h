// Results: the figures of all runs, by N, column and system. It prints them as a table or as JSON.
#pragma once

#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contestant.h"

namespace carillon::bench {

// A workload as a column of the table.
struct Column {
  const char* name;
  const char* unit;
  const char* meaning;
  Trial trial;
  std::size_t figure;  // the index in the trial's figures
};

inline constexpr Column kColumns[] = {
    {"W1", "ns", "schedule, delays of 1 to 60 000 ticks", kScheduleAndCancel, 0},
    {"W2", "ns", "cancel in random order", kScheduleAndCancel, 1},
    {"W3", "ns", "fire, tick by tick, per timer", kFire, 0},
    {"W3e", "ns", "a tick at which nothing is due", kEmptyTick, 0},
    {"W4", "ns", "keepalive: 30 000 ticks, re-armed at random, per re-arm", kKeepalive, 0},
    {"W5", "ns", "delays of 1 to 2.6e9 ticks, schedule and fire, jumping", kWideRange, 0},
    {"W6", "bytes", "per pending timer beyond its payload", kMemory, 0},
    {"W7", "ns", "cancel one at random and schedule it anew, as time passes", kChurn, 0},
};

class Results {
 public:
  void add(std::size_t n, const Column& column, const std::string& system, double figure) {
    runs_[{n, column.name, system}].push_back(figure);
  }

  // Returns the median of the runs; none if there was no run.
  std::optional<double> median(std::size_t n, const Column& column,
                               const std::string& system) const;

  // Prints a block for one N, at most 80 columns wide: ratios to the reference of each column or,
  // with `absolute`, the figures themselves.
  void print_table(std::FILE* out, std::size_t n, bool absolute) const;

  // Prints the meaning of the columns and marks.
  static void print_legend(std::FILE* out);

  // Prints an object {"machine": ..., "results": [...]}, one line per result.
  void print_json(std::FILE* out, const std::string& command) const;

 private:
  struct Key {
    std::size_t n;
    std::string column, system;
    auto operator<=>(const Key&) const = default;
  };

  std::map<Key, std::vector<double>> runs_;
};

// The system that the ratios of a column refer to: the linked-list wheel or, for W5, which that
// wheel cannot do, std::multimap.
const char* reference(const Column& column);

}  // namespace carillon::bench
