// A line on a terminal that is written over and over (progress_line.h).

#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace carillon::cli {
namespace {

void write(const std::string& text) {
  fmt::print(stderr, "{}", text), std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine() : on_terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPeriod{200};
  if (!on_terminal_ || (shown_ && Clock::now() - *shown_ < kPeriod)) return;
  write("\r\033[K" + text);
  shown_ = Clock::now();
}

void ProgressLine::clear() {
  if (shown_) write("\r\033[K");
  shown_.reset();
}

}  // namespace carillon::cli
