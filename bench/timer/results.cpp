#include "timer/results.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "machine.h"
#include "timer/contestant.h"

namespace carillon::bench {
namespace {

struct Column {
  const char* figure;
  const char* unit;
  const char* heading;
  double scale = 1;  // the table shows the figure times this
};

const std::vector<Column>& columns(Trial trial) {
  static const std::vector<Column> pairs = {{"rate", "1/s", "million pairs/s", 1e-6},
                                            {"cpu", "ns", "CPU ns per pair"}};
  static const std::vector<Column> fire = {{"rate", "1/s", "million fired/s", 1e-6},
                                           {"cpu", "ns", "CPU ns per timer"}};
  static const std::vector<Column> late = {
      {"early", "timers", "early"},      {"min", "us", "min, ms", 1e-3},
      {"p50", "us", "p50, ms", 1e-3},    {"p99", "us", "p99, ms", 1e-3},
      {"max", "us", "max, ms", 1e-3},    {"cpu_ms", "ms", "CPU ms"},
      {"sleeps", "wake-ups", "wake-ups"}};
  static const std::vector<Column> idle = {{"cpu_ms", "ms/s", "CPU ms per s"},
                                           {"sleeps", "1/s", "wake-ups per s"}};
  switch (trial) {
    case Trial::kPairs:
      return pairs;
    case Trial::kFire:
      return fire;
    case Trial::kLate:
      return late;
    case Trial::kIdle:
      break;
  }
  return idle;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string brief(double value) {
  char text[32];
  const double size = std::fabs(value);
  const int decimals = size >= 99.95 || value == std::round(value) ? 0
                       : size >= 9.995                             ? 1
                       : size >= 0.0995                            ? 2
                                                                   : 3;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// Returns `text` aligned to the right of a cell.
std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string describe(const Workload& workload) {
  const Plan& plan = workload.plan;
  const std::string timers = std::to_string(plan.timers);
  switch (plan.trial) {
    case Trial::kPairs:
      return "schedule + cancel, " + std::to_string(plan.producers) + " producer" +
             (plan.producers == 1 ? "" : "s") + ", " + timers + " pending";
    case Trial::kFire:
      return timers + " due within " + std::to_string(plan.span_ms) + " ms";
    case Trial::kLate:
      return timers + " due over " + brief(plan.span_ms / 1e3) + " s";
    case Trial::kIdle:
      break;
  }
  return "idle, " + timers + " far";
}

}  // namespace

void Results::add(const Workload& workload, const std::string& system, const Figures& figures) {
  runs_[workload.name][system].push_back(figures);
}

std::vector<double> Results::runs(const std::string& workload, const std::string& system,
                                  const std::string& figure) const {
  std::vector<double> values;
  const auto of_workload = runs_.find(workload);
  if (of_workload == runs_.end()) return values;
  const auto of_system = of_workload->second.find(system);
  if (of_system == of_workload->second.end()) return values;
  for (const Figures& run : of_system->second) {
    if (const auto found = run.find(figure); found != run.end()) values.push_back(found->second);
  }
  return values;
}

void Results::print_table(std::FILE* out, const Workload& workload) const {
  const auto& all = columns(workload.plan.trial);
  const std::string title = workload.name + ": " + describe(workload);
  std::string heading = "| " + title + " |";
  std::string rule = "|" + std::string(title.size() + 2, '-') + "|";
  for (const Column& column : all) {
    heading += ' ' + std::string(column.heading) + " |";
    rule += std::string(std::strlen(column.heading) + 1, '-') + ":|";
  }
  std::fprintf(out, "%s\n%s\n", heading.c_str(), rule.c_str());
  for (const Contestant& contestant : roster<Contestant>()) {
    std::string cells;
    bool any = false;
    for (const Column& column : all) {
      const auto values = runs(workload.name, contestant.name, column.figure);
      any = any || !values.empty();
      const std::string text = values.empty() ? "-" : brief(median(values) * column.scale);
      cells += ' ' + padded(text, std::strlen(column.heading)) + " |";
    }
    if (any)
      std::fprintf(out, "| %-*s |%s\n", static_cast<int>(title.size()), contestant.name.c_str(),
                   cells.c_str());
  }
  std::fprintf(out, "\n");
  std::fflush(out);
}

void Results::print_json(std::FILE* out, const std::string& command,
                         const std::vector<Workload>& workloads) const {
  std::fprintf(out, "{\n \"machine\": %s,\n \"command\": %s,\n \"results\": [", machine().c_str(),
               quoted(command).c_str());
  const char* separator = "\n";
  for (const Workload& workload : workloads) {
    for (const Contestant& contestant : roster<Contestant>()) {
      for (const Column& column : columns(workload.plan.trial)) {
        const auto values = runs(workload.name, contestant.name, column.figure);
        if (values.empty()) continue;
        std::fprintf(out,
                     "%s  {\"n\": %zu, \"workload\": \"%s\", \"figure\": \"%s\", \"system\": %s, "
                     "\"unit\": \"%s\", \"median\": %.3f, \"min\": %.3f, \"max\": %.3f, "
                     "\"runs\": %zu}",
                     separator, workload.plan.timers, workload.name.c_str(), column.figure,
                     quoted(contestant.name).c_str(), column.unit, median(values),
                     *std::min_element(values.begin(), values.end()),
                     *std::max_element(values.begin(), values.end()), values.size());
        separator = ",\n";
      }
    }
  }
  std::fprintf(out, "\n ]\n}\n");
  std::fflush(out);
}

}  // namespace carillon::bench
