#include "timer/cron/cron_parser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "carillon/timer/cron_schedule.h"

namespace carillon::detail {
namespace {

// The name of a field, and the values that it may have.
struct FieldKind {
  enum Specials { kNone, kDays, kWeekdays };

  std::string_view name;
  unsigned least;
  unsigned most;
  std::string_view names;  // three letters each; the first one means the number `first_name`
  unsigned first_name;
  Specials specials;
  std::string_view allowed;
};

constexpr FieldKind kSecond{"second", 0, 59, "", 0, FieldKind::kNone, "0 to 59"};
constexpr FieldKind kMinute{"minute", 0, 59, "", 0, FieldKind::kNone, "0 to 59"};
constexpr FieldKind kHour{"hour", 0, 23, "", 0, FieldKind::kNone, "0 to 23"};
constexpr FieldKind kDay{
    "day of month", 1, 31, "", 0, FieldKind::kDays, "1 to 31, L, L-3, 15W, LW and ?"};
constexpr FieldKind kMonth{"month",
                           1,
                           12,
                           "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC",
                           1,
                           FieldKind::kNone,
                           "1 to 12 and JAN to DEC"};
constexpr FieldKind kWeekday{"day of week",
                             0,
                             7,
                             "SUNMONTUEWEDTHUFRISAT",
                             0,
                             FieldKind::kWeekdays,
                             "0 to 7 (0 and 7 are Sunday), SUN to SAT, FRIL, MON#2 and ?"};

constexpr std::array<const FieldKind*, 6> kFields{&kSecond, &kMinute, &kHour,
                                                  &kDay,    &kMonth,  &kWeekday};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMacros{{
    {"@YEARLY", "0 0 1 1 *"},
    {"@ANNUALLY", "0 0 1 1 *"},
    {"@MONTHLY", "0 0 1 * *"},
    {"@WEEKLY", "0 0 * * 0"},
    {"@DAILY", "0 0 * * *"},
    {"@MIDNIGHT", "0 0 * * *"},
    {"@HOURLY", "0 * * * *"},
}};

bool is_space(char c) noexcept {
  return c == ' ' || c == '\t';
}
bool is_letter(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

// A word of the expression, and the column at which it begins.
struct Word {
  std::string text;  // in capitals
  std::size_t column;
};

[[noreturn]] void fail(std::string_view expression, std::size_t column, const std::string& what) {
  throw CronError("carillon: cron expression \"" + std::string(expression) + "\", column " +
                      std::to_string(column) + ": " + what,
                  column);
}

// Reads one field, item by item.
class FieldReader {
 public:
  FieldReader(std::string_view expression, const FieldKind& kind, const Word& field,
              CronFields& into)
      : expression_(expression), kind_(kind), field_(field), into_(into) {}

  // Returns the field's numbers. Items that are not numbers, like L, go to the CronFields. Sets
  // `any` to true if the field begins with * or ?.
  NumberSet read(bool& any) {
    any = field_.text.front() == '*' || field_.text.front() == '?';
    for (;;) {
      item_ = at_;
      item_end_ = std::min(field_.text.find(',', at_), field_.text.size());
      if (item_ == item_end_) fail_at(item_, "nothing stands between, before or after a comma");
      read_item();
      if (at_ != item_end_) wrong();
      if (at_ == field_.text.size()) return numbers_;
      ++at_;
      if (at_ == field_.text.size()) fail_at(at_ - 1, "nothing stands behind the comma");
    }
  }

 private:
  void read_item() {
    if (take('*')) return add(kind_.least, last_number(), read_step());
    if (peek() == '?') {
      if (kind_.specials == FieldKind::kNone)
        fail_item("is for the day of month and the day of week alone");
      ++at_;
      return add(kind_.least, last_number(), 1);
    }
    if (kind_.specials == FieldKind::kDays && take('L')) return read_last_day();
    if (kind_.specials == FieldKind::kWeekdays && peek() == 'L')
      fail_item("needs a day in front: FRIL or 5L is the month's last Friday");
    const unsigned first = read_value();
    if (kind_.specials == FieldKind::kDays && take('W')) {
      into_.nearest_to |= NumberSet{1} << first;
      return;
    }
    if (kind_.specials == FieldKind::kWeekdays && take('L')) {
      into_.last_weekdays |= NumberSet{1} << first % 7;
      return;
    }
    if (kind_.specials == FieldKind::kWeekdays && take('#')) {
      const unsigned n = read_number();
      if (n < 1 || n > 5) fail_item("names a week that is not 1 to 5");
      into_.weekdays_of_week[n] |= NumberSet{1} << first % 7;
      return;
    }
    if (take('-')) {
      const unsigned last = read_value();
      return add(first, last, read_step());
    }
    const bool open = peek() == '/';
    add(first, open ? last_number() : first, read_step());
  }

  void read_last_day() {
    if (take('W')) {
      into_.last_working_day = true;
      return;
    }
    const unsigned before = take('-') ? read_number() : 0;
    if (before > 30) fail_item("is more than 30 days before the last");
    into_.days_before_last |= NumberSet{1} << before;
  }

  // Returns the step behind a `/`; 1 if there is no `/`.
  unsigned read_step() {
    if (!take('/')) return 1;
    const unsigned step = read_number();
    const unsigned most = last_number() - kind_.least + 1;
    if (step < 1 || step > most) fail_item("has a step that is not 1 to " + std::to_string(most));
    return step;
  }

  // A number within the field's range, or a name.
  unsigned read_value() {
    if (is_letter(peek())) return read_name();
    const std::size_t begin = at_;
    const unsigned number = read_number();
    if (number < kind_.least || number > kind_.most) {
      fail_item("is out of range: " + field_.text.substr(begin, at_ - begin) + " is not " +
                std::to_string(kind_.least) + " to " + std::to_string(kind_.most));
    }
    return number;
  }

  unsigned read_name() {
    const std::string_view name = std::string_view(field_.text).substr(at_, 3);
    for (std::size_t i = 0; i < kind_.names.size(); i += 3) {
      if (kind_.names.substr(i, 3) != name) continue;
      at_ += 3;
      return kind_.first_name + static_cast<unsigned>(i / 3);
    }
    wrong();
  }

  unsigned read_number() {
    unsigned number = 0;
    const char* const begin = field_.text.data() + at_;
    const auto [end, error] = std::from_chars(begin, field_.text.data() + item_end_, number);
    if (end == begin) wrong();
    at_ += static_cast<std::size_t>(end - begin);
    return error == std::errc() ? number : 1'000'000;  // too large for any field
  }

  // The highest number of the field; for the day of the week 6, because 7 is 0 again.
  unsigned last_number() const noexcept {
    return kind_.specials == FieldKind::kWeekdays ? 6 : kind_.most;
  }

  // Adds the numbers from `first` to `last`; the range wraps if `last` is less.
  void add(unsigned first, unsigned last, unsigned step) {
    const unsigned count = last_number() - kind_.least + 1;
    if (last < first) last += count;
    for (unsigned number = first; number <= last; number += step) {
      numbers_ |= NumberSet{1} << (kind_.least + (number - kind_.least) % count);
    }
  }

  char peek() const noexcept { return at_ < item_end_ ? field_.text[at_] : '\0'; }
  bool take(char c) noexcept {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void wrong() {
    fail_item(
        "is not understood; allowed are " + std::string(kind_.allowed) +
        (kind_.specials == FieldKind::kNone ? ", and of these" : ", and of numbers and names") +
        " ranges 1-5, lists 1,5, steps 1-5/2 and */2, and *");
  }
  [[noreturn]] void fail_item(const std::string& what) {
    const std::string_view item = expression_.substr(field_.column - 1 + item_, item_end_ - item_);
    fail_at(item_, std::string(kind_.name) + " \"" + std::string(item) + "\" " + what);
  }
  [[noreturn]] void fail_at(std::size_t index, const std::string& what) {
    fail(expression_, field_.column + index, what);
  }

  const std::string_view expression_;
  const FieldKind& kind_;
  const Word& field_;
  CronFields& into_;
  NumberSet numbers_ = 0;
  std::size_t at_ = 0;
  std::size_t item_ = 0;
  std::size_t item_end_ = 0;
};

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_space);
    const auto length = static_cast<std::size_t>(end - text.begin()) - at;
    words.push_back({upper(text.substr(at, length)), at + 1});
    at += length;
  }
  return words;
}

std::string_view macro(std::string_view expression, const Word& word) {
  for (const auto& [name, meaning] : kMacros) {
    if (word.text == name) return meaning;
  }
  fail(expression, word.column,
       word.text +
           " is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly" +
           (word.text == "@EVERY" ? "; a period is for schedule_every()" : ""));
}

}  // namespace

CronFields parse_cron(std::string_view expression) {
  std::vector<Word> words = words_of(expression);
  if (words.size() == 1 && words[0].text.front() == '@')
    words = words_of(macro(expression, words[0]));
  if (!words.empty() && words[0].text == "@EVERY") macro(expression, words[0]);
  if (words.size() != 5 && words.size() != 6) {
    fail(expression, words.size() > 6 ? words[6].column : expression.size() + 1,
         "there are " + std::to_string(words.size()) +
             " fields; there must be 5 (minute, hour, day of month, month, day of week) or 6 (with "
             "the second in front), or @daily and its like");
  }
  CronFields fields;
  const std::array<NumberSet*, 6> numbers{&fields.seconds, &fields.minutes, &fields.hours,
                                          &fields.days,    &fields.months,  &fields.weekdays};
  std::array<bool, 6> any{};
  const std::size_t skipped = kFields.size() - words.size();
  for (std::size_t i = skipped; i < kFields.size(); ++i) {
    *numbers[i] = FieldReader(expression, *kFields[i], words[i - skipped], fields).read(any[i]);
  }
  fields.any_day = any[3];
  fields.any_weekday = any[5];
  fields.every_hour = fields.hours == (NumberSet{1} << 24) - 1;
  if (!fields.first_at_or_after(std::chrono::local_days(std::chrono::year(2000) / 1 / 1))) {
    fail(expression, words[3 - skipped].column,
         "no year has such a day (day of month \"" + words[3 - skipped].text + "\", month \"" +
             words[4 - skipped].text + "\", day of week \"" + words[5 - skipped].text + "\")");
  }
  return fields;
}

}  // namespace carillon::detail
