// carillon_bench_timer: compares TimerService with other people's timers, in one run, in real time.
//
//   carillon_bench_timer                      # a million pending timers, about ten minutes
//   carillon_bench_timer --quick              # fewer timers, within two minutes
//   carillon_bench_timer --only T1,T4 --systems TimerService,Asio
//   carillon_bench_timer --out results.json   # print tables, and write all figures to a file
//   carillon_bench_timer --json               # print the figures as JSON
//   carillon_bench_timer --peer "java -cp ... carillon.bench.TimerTrials"
//                                             # bench/peers/run --timer passes these
//
// Each trial is made in a process of its own. The systems take turns, so that other work on the
// machine disturbs all of them alike. Each figure is the median of its runs. CPU is that of all
// threads of the process.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "timer/child.h"
#include "timer/contestant.h"
#include "timer/results.h"

namespace carillon::bench {
namespace {

constexpr const char* kUsage =
    "usage: carillon_bench_timer [options]\n"
    "  --quick           fewer timers and shorter trials, 3 runs\n"
    "  --tiny            a few thousand timers, 1 run: whether everything works\n"
    "  --runs COUNT      of each system (default 5); medians count\n"
    "  --only LIST       workloads: T1 (T1x1, T1x2) T2 T3 T4\n"
    "  --systems LIST    those whose names contain one of these words\n"
    "  --peer COMMAND    a program that has more systems (bench/peers/run --timer); can be given\n"
    "                    several times\n"
    "  --out FILE        write all figures as JSON\n"
    "  --json            print them as JSON, and no table\n"
    "\n"
    "  T1  a million timers are pending, 30 to 60 s away; each producer has 1000 more on the way,\n"
    "      cancels its oldest and schedules another, over and over: pairs per second of wall\n"
    "      time, and CPU time of the process per pair\n"
    "  T2  a million timers become due within 100 ms: how many fire per second, and CPU time per\n"
    "      timer\n"
    "  T3  100 000 timers become due over 5 s: lateness, how many are early, CPU time and\n"
    "      wake-ups meanwhile\n"
    "  T4  a million timers, an hour away: CPU time and wake-ups per second\n";

std::vector<Workload> full() {
  return {
      {"T1x1", {.trial = Trial::kPairs, .producers = 1, .timers = 1'000'000, .pairs = 3'000'000}},
      {"T1x2", {.trial = Trial::kPairs, .producers = 2, .timers = 1'000'000, .pairs = 3'000'000}},
      {"T2", {.trial = Trial::kFire, .timers = 1'000'000, .lead_ms = 5000, .span_ms = 100}},
      {"T3", {.trial = Trial::kLate, .timers = 100'000, .lead_ms = 400, .span_ms = 5000}},
      {"T4", {.trial = Trial::kIdle, .timers = 1'000'000, .span_ms = 3000}}};
}

std::vector<Workload> quick() {
  auto workloads = full();
  workloads[0].plan.pairs = workloads[1].plan.pairs = 400'000;
  workloads[2].plan = {.trial = Trial::kFire, .timers = 200'000, .lead_ms = 1000, .span_ms = 20};
  workloads[3].plan = {.trial = Trial::kLate, .timers = 20'000, .lead_ms = 200, .span_ms = 1000};
  workloads[4].plan.span_ms = 1000;
  return workloads;
}

std::vector<Workload> tiny() {
  auto workloads = full();
  for (Workload& workload : workloads) {
    workload.plan.timers = workload.plan.pairs = 3000;
    workload.plan.lead_ms = 200;
    workload.plan.span_ms = 100;
  }
  return workloads;
}

struct Options {
  std::vector<Workload> workloads = full();
  std::size_t runs = 5;
  std::vector<std::string> systems;
  bool json = false;
  std::string out;
  std::string command = "carillon_bench_timer";
};

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, separator);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

void enter_peer(const std::string& command) {
  static int rank = 500;
  const auto peer = std::make_shared<Peer>(split(command, ' '));
  for (const std::string& system : peer->systems()) {
    // The peer measures its own process.
    enter(Contestant{system, rank++,
                     [peer, system](const Plan& plan) { return peer->measure(system, plan); }});
  }
}

void keep_only(std::vector<Workload>& workloads, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::none_of(workloads.begin(), workloads.end(),
                     [&](const auto& each) { return each.name.starts_with(name); }))
      throw std::invalid_argument("--only: there is no workload '" + name + "'");
  }
  std::erase_if(workloads, [&](const Workload& workload) {
    return std::none_of(names.begin(), names.end(),
                        [&](const std::string& name) { return workload.name.starts_with(name); });
  });
}

std::size_t count(std::string_view flag, const std::string& text) {
  if (text.empty() || text.size() > 4 ||
      text.find_first_not_of("0123456789") != std::string::npos || text == "0")
    throw std::invalid_argument(std::string(flag) + ": '" + text +
                                "' is not a number within 1 and 9999");
  return std::stoul(text);
}

Options parse(int argc, char** argv) {
  Options options;
  std::vector<std::string> only;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    options.command += std::string(" ") + argv[i];
    if (flag == "--quick" || flag == "--tiny") {
      options.workloads = flag == "--quick" ? quick() : tiny();
      options.runs = flag == "--quick" ? 3 : 1;
      continue;
    }
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == argc)
      throw std::invalid_argument(std::string(flag) + ": unknown, or its value is missing");
    const std::string value = argv[++i];
    options.command += ' ' + value;
    if (flag == "--runs") {
      options.runs = count(flag, value);
    } else if (flag == "--only") {
      only = split(value, ',');
    } else if (flag == "--systems") {
      options.systems = split(value, ',');
    } else if (flag == "--peer") {
      enter_peer(value);
    } else if (flag == "--out") {
      options.out = value;
    } else {
      throw std::invalid_argument(std::string(flag) + ": unknown");
    }
  }
  if (!only.empty()) keep_only(options.workloads, only);
  return options;
}

bool wanted(const Options& options, const Contestant& contestant, const Plan& plan) {
  if (!contestant.takes_part(plan.trial)) return false;
  return options.systems.empty() ||
         std::any_of(options.systems.begin(), options.systems.end(), [&](const std::string& word) {
           return contestant.name.find(word) != std::string::npos;
         });
}

Figures measure(const Contestant& contestant, const Plan& plan) {
  // A peer runs in a process of its own anyway.
  if (contestant.rank >= 500) return contestant.measure(plan);
  return in_child([&] { return contestant.measure(plan); });
}

void measure(const Options& options, const Workload& workload, Results& results) {
  for (std::size_t run = 0; run < options.runs; ++run) {
    for (const Contestant& contestant : roster<Contestant>()) {
      if (!wanted(options, contestant, workload.plan)) continue;
      if (isatty(STDERR_FILENO) != 0)
        std::fprintf(stderr, "\r\033[K%s  run %zu of %zu  %s", workload.name.c_str(), run + 1,
                     options.runs, contestant.name.c_str());
      try {
        results.add(workload, contestant.name, measure(contestant, workload.plan));
      } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "%s, %s: %s\n", workload.name.c_str(), contestant.name.c_str(),
                     error.what());
      }
    }
  }
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K");
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

void run(const Options& options) {
  const File out(options.out.empty() ? nullptr : std::fopen(options.out.c_str(), "we"),
                 std::fclose);
  if (!options.out.empty() && out == nullptr)
    throw std::runtime_error(options.out + ": cannot be written");
  Results results;
  for (const Workload& workload : options.workloads) {
    measure(options, workload, results);
    if (!options.json) results.print_table(stdout, workload);
  }
  if (options.json) results.print_json(stdout, options.command, options.workloads);
  if (out != nullptr) results.print_json(out.get(), options.command, options.workloads);
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  try {
    if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
      std::fputs(carillon::bench::kUsage, stdout);
      return 0;
    }
    carillon::bench::run(carillon::bench::parse(argc, argv));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "carillon_bench_timer: %s\n%s", error.what(), carillon::bench::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon_bench_timer: %s\n", error.what());
    return 1;
  }
  return 0;
}
