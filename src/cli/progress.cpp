// Texts and a line about progress (progress.h).

#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "cli/output.h"
#include "server/text/duration.h"

namespace carillon::cli {

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1'024) return counted(bytes, "byte");
  double size = static_cast<double>(bytes) / 1'024;
  std::size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  for (; size >= 1'023.95 && unit + 1 < kUnits.size(); ++unit) size /= 1'024;
  return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string progress_text(std::uint64_t done, std::uint64_t total,
                          std::chrono::milliseconds elapsed) {
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  std::string text =
      fmt::format("{:.0f} %, {} of {}", 100 * share, size_text(done), size_text(total));
  if (elapsed < std::chrono::milliseconds(500) || done == 0) return text;
  const double seconds = static_cast<double>(elapsed.count()) / 1e3;
  const double speed = static_cast<double>(done) / seconds;
  const std::chrono::milliseconds left(
      static_cast<std::int64_t>(static_cast<double>(total - done) / speed * 1e3));
  const std::string left_text = left < std::chrono::minutes(1)
                                    ? fmt::format("{}s", left.count() / 1'000)
                                    : server::short_duration(left);
  return text +
         fmt::format(", {}/s, {} left", size_text(static_cast<std::uint64_t>(speed)), left_text);
}

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

void ProgressLine::show(std::uint64_t done, std::uint64_t total) {
  show(what_ + progress_text(done, total, time_since(began_)));
}

void ProgressLine::begin(std::string what) {
  what_ = std::move(what);
  began_ = std::chrono::steady_clock::now();
}

std::function<bool(std::uint64_t, std::uint64_t)> ProgressLine::until(const StopSignals& signals) {
  return [this, &signals](std::uint64_t done, std::uint64_t total) {
    show(done, total);
    return !signals.came();
  };
}

void ProgressLine::clear() {
  if (shown_) write("\r\033[K");
  shown_.reset();
}

}  // namespace carillon::cli
