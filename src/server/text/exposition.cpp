// Exposition (exposition.h).
#include "server/text/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

namespace carillon::server::metrics {
namespace {

constexpr std::string_view kTotal = "_total";

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

// Returns what stands between the separators, without spaces around it.
std::vector<std::string> parts_of(std::string_view text, const char* separator) {
  std::vector<std::string> parts;
  boost::algorithm::split(parts, text, boost::algorithm::is_any_of(separator));
  for (std::string& part : parts) boost::algorithm::trim(part);
  return parts;
}

// Returns the quality that a header Accept gives to a media type that it names (RFC 9110, 12.5.1),
// from 0 to 1; 0 if it does not name it.
double quality_of(std::string_view type, std::string_view accept) {
  double best = 0;
  for (const std::string& range : parts_of(accept, ",")) {
    double quality = 1;
    bool is_type = false;
    for (const std::string& text : parts_of(range, ";")) {
      is_type = is_type || boost::algorithm::iequals(text, type);
      if (boost::algorithm::istarts_with(text, "q="))
        std::from_chars(text.data() + 2, text.data() + text.size(), quality);
    }
    if (is_type) best = std::max(best, quality);
  }
  return best;
}

}  // namespace

Exposition::Format Exposition::wanted_by(std::string_view accept) {
  const double open = quality_of("application/openmetrics-text", accept);
  const bool is_wanted = open > 0 && open >= quality_of("text/plain", accept);
  return is_wanted ? Format::kOpenMetrics : Format::kPrometheus;
}

std::string_view Exposition::content_type(Format format) {
  return format == Format::kPrometheus
             ? "text/plain; version=0.0.4; charset=utf-8"
             : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

// OpenMetrics names the family of a counter without its `_total`.
void Exposition::family(std::string_view name, Kind kind, std::string_view help) {
  name_ = name;
  std::string_view shown = name;
  if (format_ == Format::kOpenMetrics && kind == Kind::kCounter) shown.remove_suffix(kTotal.size());
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", shown, help, name_of(kind));
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
  const bool is_open = format_ == Format::kOpenMetrics;  // its numbers of buckets have a fraction
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    so_far += counts[i];
    const std::string le = is_open ? fmt::format("{:#}", bounds[i]) : fmt::format("{}", bounds[i]);
    line("_bucket", {{"le", le}}, fmt::format_int(so_far).c_str());
  }
  const std::string all = fmt::format_int(so_far + counts.back()).str();
  line("_bucket", {{"le", "+Inf"}}, all);
  line("_sum", {}, fmt::format("{}", sum));
  line("_count", {}, all);
}

std::string Exposition::take() {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
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
