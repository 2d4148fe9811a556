// Exposition (exposition.h).
#include "server/text/exposition.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>

namespace carillon::server::metrics {
namespace {

std::string_view name_of(Exposition::Kind kind) {
  switch (kind) {
    case Exposition::Kind::kCounter:
      return "counter";
    case Exposition::Kind::kGauge:
      return "gauge";
    case Exposition::Kind::kHistogram:
      return "histogram";
  }
  return "";
}

void append_escaped(std::string& text, std::string_view value) {
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
}

}  // namespace

void Exposition::family(std::string_view name, Kind kind, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, name_of(kind));
}

void Exposition::sample(Labels labels, std::uint64_t value) {
  line("", labels, fmt::format_int(value).c_str());
}

void Exposition::sample(Labels labels, double value) {
  line("", labels, fmt::format("{}", value));
}

void Exposition::sample(const base::Histogram& histogram) {
  std::array<std::uint64_t, base::Histogram::kBounds.size() + 1> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = histogram.count_of(i);
  buckets(base::Histogram::kBounds, counts, histogram.sum());
}

void Exposition::sample(const queue::Lateness& lateness) {
  constexpr double kSecond = 1'000;
  std::array<double, queue::Lateness::kBounds.size()> bounds{};
  for (std::size_t i = 0; i < bounds.size(); ++i)
    bounds[i] = static_cast<double>(queue::Lateness::kBounds[i]) / kSecond;
  buckets(bounds, lateness.jobs, static_cast<double>(lateness.total) / kSecond);
}

void Exposition::buckets(std::span<const double> bounds, std::span<const std::uint64_t> counts,
                         double sum) {
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    so_far += counts[i];
    line("_bucket", {{"le", fmt::format("{}", bounds[i])}}, fmt::format_int(so_far).c_str());
  }
  const std::string all = fmt::format_int(so_far + counts.back()).str();
  line("_bucket", {{"le", "+Inf"}}, all);
  line("_sum", {}, fmt::format("{}", sum));
  line("_count", {}, all);
}

void Exposition::line(std::string_view suffix, Labels labels, std::string_view value) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [label, of] : labels) {
    text_ += before;
    text_ += label;
    text_ += "=\"";
    append_escaped(text_, of);
    text_ += '"';
    before = ',';
  }
  if (labels.size() > 0) text_ += '}';
  text_ += ' ';
  text_ += value;
  text_ += '\n';
}

}  // namespace carillon::server::metrics
