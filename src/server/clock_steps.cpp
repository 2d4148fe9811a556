// ClockSteps (clock_steps.h).
#include "server/clock_steps.h"

#include <spdlog/spdlog.h>

#include <cstdlib>

namespace carillon::server {
namespace {

constexpr std::int64_t kLoggedMs = 1'000;

}  // namespace

void ClockSteps::observe(const queue::Engine& engine) {
  const std::int64_t step = engine.clock_moved() - logged_;
  if (std::abs(step) < kLoggedMs) return;
  logged_ += step;
  const double seconds = static_cast<double>(std::abs(step)) / 1e3;
  if (step > 0) {
    return spdlog::warn(
        "the wall clock was set forward by {:g} s: jobs that are due by the new time are ready; a "
        "delay still lasts as long as was asked for",
        seconds);
  }
  spdlog::warn(
      "the wall clock was set back by {:g} s: jobs that are due later by the new time wait for it; "
      "a delay still lasts as long as was asked for",
      seconds);
}

}  // namespace carillon::server
