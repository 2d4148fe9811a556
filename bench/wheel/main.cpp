// carillon_bench_wheel: Carillon's wheels beside other people's timers, in one run, on a virtual
// clock.
//
//   carillon_bench_wheel                               # 10^4 to 10^7 timers, some ten minutes
//   carillon_bench_wheel --quick                       # 10^4 and 10^6, within a minute
//   carillon_bench_wheel --n 1000000 --only W3,W4 --systems Hierarchical,list
//   carillon_bench_wheel --out results.json            # the table; all figures go to the file
//   carillon_bench_wheel --json                        # all figures on stdout, no table
//
// The runs of the systems alternate. Each figure is the median of its runs. Time is the CPU time of
// the thread.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "inputs.h"
#include "results.h"
#include "rounds.h"

namespace carillon::bench {
namespace {

constexpr const char* kUsage =
    "usage: carillon_bench_wheel [options]\n"
    "  --quick             10^4 and 10^6 timers, 3 runs: within a minute\n"
    "  --n LIST            numbers of timers (default 10000,100000,1000000,10000000)\n"
    "  --runs COUNT        of each system, at most (default 5); medians count\n"
    "  --only LIST         workloads: W1 W2 W3 W3e W4 W5 W6 W7\n"
    "  --systems LIST      those whose names contain one of these words\n"
    "  --patience SECONDS  leave out what would take a system longer for one run (default 12)\n"
    "  --absolute          a table of ns, not of ratios\n"
    "  --out FILE          write all figures as JSON\n"
    "  --json              print them as JSON, and no table\n"
    "  --inputs FILE       write the delays and orders of the one N that --n says, and measure "
    "nothing (bench/peers)\n";

struct Options {
  std::vector<std::size_t> sizes{10'000, 100'000, 1'000'000, 10'000'000};
  std::vector<std::string> only, systems;
  Plan plan;
  bool absolute = false;
  bool json = false;
  std::string out, inputs;
  std::string command;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

double number(std::string_view flag, const std::string& text) {
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end == 0 || end != text.size() || !(value > 0))
    throw std::invalid_argument(std::string(flag) + ": '" + text + "' is not a number above 0");
  return value;
}

std::size_t count(std::string_view flag, const std::string& text) {
  const double value = number(flag, text);
  if (value < 1 || value > 4e9)
    throw std::invalid_argument(std::string(flag) + ": '" + text + "' is not within 1 and 4e9");
  return static_cast<std::size_t>(value);
}

void require_columns(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (std::none_of(std::begin(kColumns), std::end(kColumns),
                     [&](const Column& each) { return name == each.name; }))
      throw std::invalid_argument("--only: there is no workload '" + name + "'");
  }
}

Options parse(int argc, char** argv) {
  Options options;
  options.command = "carillon_bench_wheel";
  for (int i = 1; i < argc; ++i) options.command += std::string(" ") + argv[i];
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--quick") {
      options.sizes = {10'000, 1'000'000};
      options.plan.runs = 3;
      options.plan.patience = 1.5;
      options.plan.budget = 0.4;
      continue;
    }
    if (flag == "--absolute") {
      options.absolute = true;
      continue;
    }
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == argc)
      throw std::invalid_argument(std::string(flag) + ": unknown, or its value is missing");
    const std::string value = argv[++i];
    if (flag == "--n") {
      options.sizes.clear();
      for (const auto& size : split(value)) options.sizes.push_back(count(flag, size));
      std::sort(options.sizes.begin(), options.sizes.end());
    } else if (flag == "--runs") {
      options.plan.runs = count(flag, value);
    } else if (flag == "--only") {
      require_columns(options.only = split(value));
    } else if (flag == "--systems") {
      options.systems = split(value);
    } else if (flag == "--patience") {
      options.plan.patience = number(flag, value);
    } else if (flag == "--out") {
      options.out = value;
    } else if (flag == "--inputs") {
      options.inputs = value;
    } else {
      throw std::invalid_argument(std::string(flag) + ": unknown");
    }
  }
  if (!options.inputs.empty() && options.sizes.size() != 1)
    throw std::invalid_argument("--inputs: needs --n with one number");
  options.plan.wants_trial = [only = options.only](Trial trial) {
    return std::any_of(std::begin(kColumns), std::end(kColumns), [&](const Column& column) {
      return column.trial == trial &&
             (only.empty() || std::find(only.begin(), only.end(), column.name) != only.end());
    });
  };
  options.plan.wants_system = [words = options.systems](const Contestant& contestant) {
    return words.empty() || std::any_of(words.begin(), words.end(), [&](const std::string& word) {
             return contestant.name.find(word) != std::string::npos;
           });
  };
  return options;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open(const std::string& name) {
  File file(std::fopen(name.c_str(), "w"), std::fclose);
  if (file == nullptr) throw std::runtime_error(name + ": cannot be written");
  return file;
}

void run(const Options& options) {
  const File out = options.out.empty() ? File(nullptr, std::fclose) : open(options.out);
  Results results;
  Rounds rounds(options.plan, results);
  for (const std::size_t n : options.sizes) {
    rounds.measure(n);
    if (!options.json) results.print_table(stdout, n, options.absolute);
  }
  if (!options.json) Results::print_legend(stdout);
  if (options.json) results.print_json(stdout, options.command);
  if (out != nullptr) results.print_json(out.get(), options.command);
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  using namespace carillon::bench;  // NOLINT(google-build-using-namespace)
  try {
    if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    const Options options = parse(argc, argv);
    if (options.inputs.empty()) {
      run(options);
    } else {
      Inputs(options.sizes.front()).write(options.inputs);
    }
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "carillon_bench_wheel: %s\n%s", error.what(), kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_bench_wheel: %s\n", error.what());
    return 1;
  }
  return 0;
}
