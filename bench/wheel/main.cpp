// carillon_bench_wheel: the default wheel beside a classic linked-list wheel and std::multimap, in one run, on a virtual clock.
//
//   carillon_bench_wheel [--n 10000,1000000] [--runs 7] [--only W3] [--json]
//
// The runs of the systems alternate, so that what else the machine does meets all of them alike; each figure is the median of the
// runs. The ratio is the default wheel's figure over the other's: below 1 it wins.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "systems.h"
#include "workloads.h"

namespace carillon::bench {
namespace {

struct Options {
  std::vector<std::size_t> sizes{10'000, 1'000'000};
  std::size_t runs = 7;
  std::string only;
  bool json = false;
};

struct Row {
  std::string workload;
  std::string unit;
  std::size_t timers;
  std::string other;
  double ours, theirs;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// One run of a pair of systems: their figures, workload by workload.
using Runs = std::vector<double>;

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  std::vector<Row> run() {
    for (const std::size_t n : options_.sizes) {
      const Inputs in(n);
      against<ListSystem>(n, in);
      against_multimap(n, in);
    }
    return rows_;
  }

 private:
  bool wanted(std::string_view workload) const { return workload.substr(0, options_.only.size()) == options_.only; }

  template <class Ours, class Theirs>
  void alternate(const char* workload, const char* unit, std::size_t n, const char* other, Ours&& ours,
                 Theirs&& theirs) {
    if (!wanted(workload)) return;
    Runs our_runs, their_runs;
    for (std::size_t run = 0; run < options_.runs; ++run) {
      our_runs.push_back(ours());
      their_runs.push_back(theirs());
    }
    add(workload, unit, n, other, our_runs, their_runs);
  }

  void add(const char* workload, const char* unit, std::size_t n, const char* other, const Runs& ours,
           const Runs& theirs) {
    rows_.push_back({workload, unit, n, other, median(ours), median(theirs)});
    if (!options_.json) print(rows_.back());
  }

  template <class Other>
  void against(std::size_t n, const Inputs& in) {
    std::vector<CarillonSystem::Timer> ours(n);
    std::vector<typename Other::Timer> theirs(n);
    if (wanted("W1") || wanted("W2")) {
      const auto our_system = std::make_unique<CarillonSystem>();
      const auto their_system = std::make_unique<Other>();
      our_system->wheel.reserve(n);
      Tick our_now = 0, their_now = 0;
      schedule_and_cancel(*our_system, ours, in, our_now);
      Runs ours1, ours2, theirs1, theirs2;
      for (std::size_t run = 0; run < options_.runs; ++run) {
        const auto mine = schedule_and_cancel(*our_system, ours, in, our_now);
        const auto other = schedule_and_cancel(*their_system, theirs, in, their_now);
        ours1.push_back(mine.schedule), ours2.push_back(mine.cancel);
        theirs1.push_back(other.schedule), theirs2.push_back(other.cancel);
      }
      add("W1 schedule", "ns", n, Other::kName, ours1, theirs1);
      add("W2 cancel at random", "ns", n, Other::kName, ours2, theirs2);
    }
    alternate(
        "W3 fire", "ns", n, Other::kName, [&] { return fire_all<CarillonSystem>(ours, in); },
        [&] { return fire_all<Other>(theirs, in); });
    alternate(
        "W3e empty tick", "ns", n, Other::kName, [&] { return empty_ticks<CarillonSystem>(ours); },
        [&] { return empty_ticks<Other>(theirs); });
    alternate(
        "W4 keepalive", "ns", n, Other::kName, [&] { return keepalive<CarillonSystem>(ours); },
        [&] { return keepalive<Other>(theirs); });
    alternate(
        "W6 memory", "bytes", n, Other::kName, [&] { return bytes_per_timer<CarillonSystem>(ours, in); },
        [&] { return bytes_per_timer<Other>(theirs, in); });
  }

  void against_multimap(std::size_t n, const Inputs& in) {
    std::vector<CarillonSystem::Timer> ours(n);
    std::vector<MultimapSystem::Timer> theirs(n);
    alternate(
        "W5 wide range", "ns", n, MultimapSystem::kName, [&] { return wide_range<CarillonSystem>(ours, in); },
        [&] { return wide_range<MultimapSystem>(theirs, in); });
  }

  static void print(const Row& row) {
    std::printf("%-20s %9zu  %8.2f %-5s  %-14s %8.2f %-5s  ratio %.2f\n", row.workload.c_str(), row.timers, row.ours,
                row.unit.c_str(), row.other.c_str(), row.theirs, row.unit.c_str(), row.ours / row.theirs);
    std::fflush(stdout);
  }

  Options options_;
  std::vector<Row> rows_;
};

void print_json(const std::vector<Row>& rows) {
  std::printf("[\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::printf(
        "  {\"workload\": \"%s\", \"timers\": %zu, \"unit\": \"%s\", \"%s\": %.3f, \"%s\": %.3f, \"ratio\": %.3f}%s\n",
        row.workload.c_str(), row.timers, row.unit.c_str(), CarillonSystem::kName, row.ours, row.other.c_str(),
        row.theirs, row.ours / row.theirs, i + 1 < rows.size() ? "," : "");
  }
  std::printf("]\n");
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == argc)
      throw std::invalid_argument(std::string(flag) + ": unknown, or its value is missing; see the top of main.cpp");
    const std::string value = argv[++i];
    if (flag == "--n") {
      options.sizes.clear();
      std::istringstream list(value);
      for (std::string size; std::getline(list, size, ',');) options.sizes.push_back(std::stoull(size));
    } else if (flag == "--runs") {
      options.runs = std::stoull(value);
    } else if (flag == "--only") {
      options.only = value;
    } else {
      throw std::invalid_argument(std::string(flag) + ": unknown flag");
    }
  }
  return options;
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  try {
    const auto options = carillon::bench::parse(argc, argv);
    const auto rows = carillon::bench::Bench(options).run();
    if (options.json) carillon::bench::print_json(rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_bench_wheel: %s\n", error.what());
    return 1;
  }
  return 0;
}
