// Metrics as text that Prometheus and others read (its format 0.0.4).
//
//   Exposition text;
//   text.family("carillon_jobs", Exposition::Kind::kGauge, "Jobs in the queue.");
//   text.sample({{"tube", "mail"}, {"state", "ready"}}, 42);
//   text.take();
//   // # HELP carillon_jobs Jobs in the queue.
//   // # TYPE carillon_jobs gauge
//   // carillon_jobs{tube="mail",state="ready"} 42
//
// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/histogram.h"
#include "carillon/queue/engine_stats.h"

namespace carillon::server::metrics {

class Exposition {
 public:
  enum class Kind : std::uint8_t { kCounter, kGauge, kHistogram };
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // The value of Content-Type.
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // Begins a family; its samples follow. `name` ends in `_total` if it is a counter.
  void family(std::string_view name, Kind kind, std::string_view help);
  // Label values may have any bytes of UTF-8.
  void sample(Labels labels, std::uint64_t value);
  void sample(Labels labels, double value);
  void sample(const base::Histogram& histogram);
  // In seconds.
  void sample(const queue::Lateness& lateness);

  // Returns the whole text. REQUIRES: nothing is added after this.
  std::string take() { return std::move(text_); }

 private:
  // Each bucket's bound in seconds, and what was counted in it; one more has the rest.
  void buckets(std::span<const double> bounds, std::span<const std::uint64_t> counts, double sum);
  void line(std::string_view suffix, Labels labels, std::string_view value);

  std::string name_;
  std::string text_;
};

}  // namespace carillon::server::metrics
