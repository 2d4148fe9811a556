// Parses and prints RFC 3339 timestamps.

#include "server/text/timestamp.h"

#include <date/date.h>
#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

namespace carillon::server {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Reads a timestamp from left to right. Each step throws std::invalid_argument if the text is not
// what it expects.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  char next() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool take_one_of(std::string_view chars) {
    if (rest_.empty() || chars.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect_one_of(std::string_view chars) {
    if (!take_one_of(chars)) refuse(kShape);
  }

  // Reads exactly `count` digits.
  unsigned number(std::size_t count) {
    unsigned value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value * 10 + digit();
    return value;
  }

  // Reads "." and digits, or nothing. Returns the fraction rounded up to a millisecond.
  milliseconds fraction() {
    if (!take_one_of(".")) return milliseconds(0);
    unsigned value = 0;
    bool finer = false;
    std::size_t count = 0;
    for (; next() >= '0' && next() <= '9'; ++count) {
      const unsigned one = digit();
      if (count < 3) value = value * 10 + one;
      if (count >= 3 && one != 0) finer = true;
    }
    if (count == 0) refuse(kShape);
    for (; count < 3; ++count) value *= 10;
    return milliseconds(value + (finer ? 1 : 0));
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw std::invalid_argument(fmt::format("\"{}\": {}", text_, why));
  }

  static constexpr std::string_view kShape =
      "not an RFC 3339 time; use e.g. 2030-01-01T09:00:00Z or 2030-01-01T09:00:00.25+02:00";

 private:
  unsigned digit() {
    const char c = next();
    if (c < '0' || c > '9') refuse(kShape);
    rest_.remove_prefix(1);
    return static_cast<unsigned>(c - '0');
  }

  std::string_view text_;
  std::string_view rest_;
};

date::sys_days read_date(Reader& reader) {
  const auto year = static_cast<int>(reader.number(4));
  reader.expect_one_of("-");
  const unsigned month = reader.number(2);
  reader.expect_one_of("-");
  const unsigned day = reader.number(2);
  const date::year_month_day date{date::year(year), date::month(month), date::day(day)};
  if (!date.ok()) reader.refuse(fmt::format("there is no day {:04}-{:02}-{:02}", year, month, day));
  return date::sys_days(date);
}

struct TimeOfDay {
  seconds whole;
  milliseconds fraction;
  bool leap;  // second 60
};

TimeOfDay read_time_of_day(Reader& reader) {
  const unsigned hour = reader.number(2);
  reader.expect_one_of(":");
  const unsigned minute = reader.number(2);
  reader.expect_one_of(":");
  const unsigned second = reader.number(2);
  if (hour > 23 || minute > 59 || second > 60) {
    reader.refuse(fmt::format("there is no time {:02}:{:02}:{:02}; the last of a day is 23:59:59",
                              hour, minute, second));
  }
  return {hours(hour) + minutes(minute) + seconds(second), reader.fraction(), second == 60};
}

minutes read_offset(Reader& reader) {
  if (reader.take_one_of("Zz")) return minutes(0);
  if (reader.at_end()) reader.refuse("lacks its offset from UTC; append Z for UTC, or e.g. +02:00");
  const bool west = reader.next() == '-';
  reader.expect_one_of("+-");
  const unsigned hour = reader.number(2);
  reader.expect_one_of(":");
  const unsigned minute = reader.number(2);
  if (hour > 23 || minute > 59) reader.refuse("the offset from UTC is at most 23:59");
  const minutes offset = hours(hour) + minutes(minute);
  return west ? -offset : offset;
}

// The end of the year 9999, the last millisecond that format_timestamp() can print.
constexpr milliseconds kLast{253'402'300'799'999};

bool begins_a_month(date::sys_seconds time) {
  const date::sys_days day = date::floor<date::days>(time);
  return time == day && date::year_month_day(day).day() == date::day(1);
}

}  // namespace

std::uint64_t parse_timestamp(std::string_view text) {
  Reader reader(text);
  const date::sys_days day = read_date(reader);
  if (reader.at_end()) reader.refuse("a day without a time; use e.g. 2030-01-01T09:00:00Z");
  reader.expect_one_of("Tt ");
  const TimeOfDay time = read_time_of_day(reader);
  const minutes offset = read_offset(reader);
  if (!reader.at_end()) reader.refuse(Reader::kShape);

  const date::sys_seconds second = day + time.whole - offset;
  if (time.leap && !begins_a_month(second)) {
    reader.refuse("second 60 is a leap second, which ends the last day of a month in UTC");
  }
  const milliseconds since_epoch = second.time_since_epoch() + time.fraction;
  if (since_epoch < milliseconds(0) || since_epoch > kLast)
    reader.refuse("a time is from 1970-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z");
  return static_cast<std::uint64_t>(since_epoch.count());
}

std::string format_timestamp(std::uint64_t utc_ms) {
  const date::sys_time<milliseconds> time{milliseconds(utc_ms)};
  return date::format("%FT%TZ", time);
}

}  // namespace carillon::server
