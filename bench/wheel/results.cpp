// Prints the medians of the runs.
#include "results.h"

#include <algorithm>
#include <cmath>

#include "machine.h"

namespace carillon::bench {
namespace {

constexpr int kNameWidth = 24;
constexpr int kCellWidth = 7;

// Three significant digits, at most six characters.
std::string brief(double value) {
  if (value >= 1e5) return std::to_string(std::llround(value / 1000)) + "k";
  char text[32];
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// Right-aligned; the dash is three bytes and one character.
void print_cell(std::FILE* out, const std::string& text) {
  const int width = text == "–" ? kCellWidth + 2 : kCellWidth;
  std::fprintf(out, "%*s", width, text.c_str());
}

void print_row(std::FILE* out, const std::string& name, const std::vector<std::string>& cells) {
  std::fprintf(out, "%-*s", kNameWidth, name.c_str());
  for (const auto& cell : cells) print_cell(out, cell);
  std::fprintf(out, "\n");
}

std::string grouped(std::size_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, " ");
  return digits;
}

// REQUIRES: there is one of that name.
const Column& column_named(const std::string& name) {
  return *std::find_if(std::begin(kColumns), std::end(kColumns),
                       [&](const Column& each) { return name == each.name; });
}

}  // namespace

const char* reference(const Column& column) {
  return column.trial == kWideRange ? "std::multimap" : "list wheel 256/64x4";
}

std::optional<double> Results::median(std::size_t n, const Column& column,
                                      const std::string& system) const {
  const auto found = runs_.find({n, column.name, system});
  if (found == runs_.end()) return std::nullopt;
  auto values = found->second;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void Results::print_table(std::FILE* out, std::size_t n, bool absolute) const {
  std::vector<std::string> names, references;
  for (const Column& column : kColumns) {
    names.emplace_back(column.name);
    const auto value = median(n, column, reference(column));
    references.push_back(value ? brief(*value) : "–");
  }
  print_row(out, "N = " + grouped(n), names);
  if (!absolute) print_row(out, "1.00 is, in ns", references);
  for (const Contestant& contestant : roster<Contestant>()) {
    std::vector<std::string> cells;
    bool any = false;
    for (const Column& column : kColumns) {
      const auto value = median(n, column, contestant.name);
      const auto base = median(n, column, reference(column));
      any = any || value;
      const bool ratio = !absolute && column.trial != kMemory;
      cells.push_back(!value || (ratio && !base) ? "–" : brief(ratio ? *value / *base : *value));
    }
    if (any) print_row(out, contestant.name, cells);
  }
  std::fprintf(out, "\n");
  std::fflush(out);
}

void Results::print_legend(std::FILE* out) {
  for (const Column& column : kColumns)
    std::fprintf(out, "%-4s%-6s %s\n", column.name, column.unit, column.meaning);
  std::fprintf(out,
               "Ratios to the linked-list wheel, W5 to std::multimap: below 1 is faster. W6 is "
               "always in bytes.\n"
               "kHuge: slots in pages of 2 MiB; huge: timers too. –: not possible, or too long "
               "(--patience).\n");
}

void Results::print_json(std::FILE* out, const std::string& command) const {
  std::fprintf(out, "{\n \"machine\": %s,\n", machine().c_str());
  std::fprintf(out, " \"command\": %s,\n \"results\": [", quoted(command).c_str());
  const char* separator = "\n";
  for (const auto& [key, runs] : runs_) {
    const Column& column = column_named(key.column);
    std::fprintf(out,
                 "%s  {\"n\": %zu, \"workload\": \"%s\", \"system\": %s, \"unit\": \"%s\", "
                 "\"median\": %.3f, \"min\": %.3f, "
                 "\"max\": %.3f, \"runs\": %zu}",
                 separator, key.n, key.column.c_str(), quoted(key.system).c_str(), column.unit,
                 *median(key.n, column, key.system), *std::min_element(runs.begin(), runs.end()),
                 *std::max_element(runs.begin(), runs.end()), runs.size());
    separator = ",\n";
  }
  std::fprintf(out, "\n ]\n}\n");
  std::fflush(out);
}

}  // namespace carillon::bench
