// Parses and prints durations; all arithmetic is exact.

#include "server/text/duration.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>

namespace carillon::server {
namespace {

constexpr std::uint64_t kMaxMs =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

struct Unit {
  std::string_view name;
  std::uint64_t ms;
};

// "ms" comes before "m", because the first match is taken.
constexpr std::array<Unit, 5> kUnits{
    {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};

// This text names no limit to use, because each option has a lower limit of its own.
constexpr std::string_view kTooLong = "too long, more than 292 million years";

[[noreturn]] void refuse_duration(std::string_view text, std::string_view why) {
  throw std::invalid_argument(fmt::format("\"{}\": {}", text, why));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Removes the digits at the front of `rest` and returns them.
std::string_view take_digits(std::string_view& rest) {
  std::size_t count = 0;
  while (count < rest.size() && is_digit(rest[count])) ++count;
  const std::string_view digits = rest.substr(0, count);
  rest.remove_prefix(count);
  return digits;
}

std::optional<Unit> take_unit(std::string_view& rest) {
  for (const Unit& unit : kUnits) {
    if (!rest.starts_with(unit.name)) continue;
    rest.remove_prefix(unit.name.size());
    return unit;
  }
  return std::nullopt;
}

// Returns digits * unit, or nothing if that is more than kMaxMs.
std::optional<std::uint64_t> whole_part(std::string_view digits, std::uint64_t unit) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (kMaxMs - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  if (value > kMaxMs / unit) return std::nullopt;
  return value * unit;
}

// Returns 0.digits * unit, or nothing if that is not a whole number of milliseconds.
std::optional<std::uint64_t> fraction_part(std::string_view digits, std::uint64_t unit) {
  while (digits.ends_with('0')) digits.remove_suffix(1);
  // The last digit is not 0. So n digits give a whole number only if 2^n or 5^n divides the unit. A
  // day has the highest such power, 2^10. With at most 10 digits, nothing below overflows.
  if (digits.size() > 10) return std::nullopt;
  std::uint64_t numerator = 0;
  std::uint64_t denominator = 1;
  for (const char c : digits) {
    numerator = numerator * 10 + static_cast<std::uint64_t>(c - '0');
    denominator *= 10;
  }
  if (numerator * unit % denominator != 0) return std::nullopt;
  return numerator * unit / denominator;
}

}  // namespace

std::chrono::milliseconds parse_duration(std::string_view text) {
  constexpr std::string_view kNotADuration = "not a duration; use e.g. 250ms, 3s, 2h, 40d";
  if (text == "0") return std::chrono::milliseconds(0);

  std::string_view rest = text;
  std::uint64_t total = 0;
  std::uint64_t previous = std::numeric_limits<std::uint64_t>::max();
  do {
    const std::string_view digits = take_digits(rest);
    if (digits.empty()) refuse_duration(text, kNotADuration);
    std::string_view fraction;
    if (rest.starts_with('.')) {
      rest.remove_prefix(1);
      fraction = take_digits(rest);
      if (fraction.empty()) refuse_duration(text, kNotADuration);
    }
    if (rest.empty()) {
      refuse_duration(text,
                      fmt::format("a number without a unit; write {0}ms, {0}s, {0}m, {0}h or {0}d",
                                  text.substr(text.size() - digits.size() -
                                              (fraction.empty() ? 0 : fraction.size() + 1))));
    }
    const auto unit = take_unit(rest);
    if (!unit) refuse_duration(text, kNotADuration);
    if (unit->ms >= previous)
      refuse_duration(text, "write each unit once, the larger one first: 1h30m");
    previous = unit->ms;

    const auto whole = whole_part(digits, unit->ms);
    if (!whole) refuse_duration(text, kTooLong);
    const auto part = fraction_part(fraction, unit->ms);
    if (!part)
      refuse_duration(text, "not a whole number of milliseconds, the finest that there is");
    if (*whole > kMaxMs - *part || total > kMaxMs - *whole - *part) refuse_duration(text, kTooLong);
    total += *whole + *part;
  } while (!rest.empty());
  return std::chrono::milliseconds(static_cast<std::int64_t>(total));
}

std::string short_duration(std::chrono::milliseconds duration) {
  using std::chrono::days;
  using std::chrono::floor;
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;

  if (duration < seconds(0)) duration = seconds(0);
  if (duration < minutes(1)) {
    // Cut, not rounded: 59.999s must not read 60.00s.
    const auto hundredths = duration.count() / 10;
    return fmt::format("{}.{:02}s", hundredths / 100, hundredths % 100);
  }
  if (duration < hours(1)) {
    const auto whole = floor<minutes>(duration);
    return fmt::format("{}m{:02}s", whole.count(), floor<seconds>(duration - whole).count());
  }
  if (duration < days(1)) {
    const auto whole = floor<hours>(duration);
    return fmt::format("{}h{:02}m", whole.count(), floor<minutes>(duration - whole).count());
  }
  const auto whole = floor<days>(duration);
  return fmt::format("{}d{:02}h", whole.count(), floor<hours>(duration - whole).count());
}

std::string shown_duration(std::uint64_t ms) {
  return ms % 1'000 == 0 ? fmt::format("{}s", ms / 1'000) : fmt::format("{}ms", ms);
}

}  // namespace carillon::server
