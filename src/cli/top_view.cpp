// The picture of `carillon top` (top_view.h).
#include "cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "server/text/json_value.h"
#include "server/text/timestamp.h"
#include "server/text/visible_text.h"

namespace carillon::cli {
namespace {

constexpr std::string_view kBold = "1";
constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kQuiet = "2";

// The columns that a tube's numbers take behind its name.
constexpr std::size_t kNumbers = 57;
constexpr std::size_t kLeastName = 12;
constexpr std::uint64_t kLate = 1'000;  // ms: shown in red

struct Column {
  std::string_view name;  // for --sort
  std::string_view head;
  std::size_t width;
  double (*value)(const TopTube&);
};

constexpr std::array<Column, 6> kColumns{{
    {"delayed", "DELAYED", 11,
     [](const TopTube& t) { return static_cast<double>(t.tube.jobs.delayed); }},
    {"ready", "READY", 10, [](const TopTube& t) { return static_cast<double>(t.tube.jobs.ready); }},
    {"reserved", "RESERVED", 9,
     [](const TopTube& t) { return static_cast<double>(t.tube.jobs.reserved); }},
    {"buried", "BURIED", 9,
     [](const TopTube& t) { return static_cast<double>(t.tube.jobs.buried); }},
    {"puts", "PUT/s", 9, [](const TopTube& t) { return t.put_rate.value_or(-1); }},
    {"deletes", "DELETE/s", 9, [](const TopTube& t) { return t.delete_rate.value_or(-1); }},
}};

// A line that is cut at a number of columns. What is shown is ASCII: so a byte is a column. What a
// terminal would obey is escaped, beside the line's own colours.
class Line {
 public:
  explicit Line(const TopLook& look) : look_(look) {}

  Line& add(std::string_view what, std::string_view colour = {}) {
    std::string text = server::visible(what);
    text.resize(std::min(text.size(), look_.columns - std::min(look_.columns, width_)));
    width_ += text.size();
    const bool is_plain = colour.empty() || !look_.colours || text.empty();
    text_ += is_plain ? text : fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
    return *this;
  }
  std::string take() { return std::move(text_); }
  std::size_t width() const { return width_; }

 private:
  const TopLook& look_;
  std::string text_;
  std::size_t width_ = 0;
};

std::string count(std::uint64_t n) {
  constexpr std::uint64_t kMost = 99'999'999;
  return n <= kMost ? fmt::format("{}", n) : fmt::format("{}M", n / 1'000'000);
}

std::string rate(std::optional<double> value) {
  if (!value) return "-";
  return *value < 9.95 && *value > 0 ? fmt::format("{:.1f}", *value)
                                     : count(static_cast<std::uint64_t>(std::llround(*value)));
}

std::string span(std::uint64_t seconds) {
  const std::uint64_t minutes = seconds / 60;
  if (minutes == 0) return fmt::format("{} s", seconds);
  if (minutes < 60) return fmt::format("{} min", minutes);
  const std::uint64_t hours = minutes / 60;
  if (hours < 48) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d", hours / 24);
}

std::string late(std::optional<std::uint64_t> ms) {
  if (!ms) return "-";
  return *ms < 1'000 ? fmt::format("<= {} ms", *ms) : fmt::format("<= {} s", *ms / 1'000);
}

// "14:25:00" of "2026-11-24T14:25:00.000Z".
std::string time_of_day(std::uint64_t utc_ms) {
  return server::format_timestamp(utc_ms).substr(11, 8);
}

std::string server_line(const TopSnapshot& shot, const TopLook& look) {
  const std::string time = time_of_day(shot.at) + " UTC";
  Line line(look);
  const std::string what = fmt::format(
      "carillon top - {} on {}, up {}{}", shot.stats.version,
      shot.stats.host.empty() ? shot.server : fmt::format("{} ({})", shot.stats.host, shot.server),
      span(shot.stats.uptime_ms / 1'000), shot.stats.draining ? ", draining" : "");
  if (what.size() + 2 + time.size() > look.columns) return line.add(what, kBold).take();
  line.add(what, kBold);
  return line.add(std::string(look.columns - what.size() - time.size(), ' ')).add(time).take();
}

std::string jobs_line(const TopSnapshot& shot, const TopLook& look) {
  Line line(look);
  line.add("Jobs    ").add(count(shot.stats.jobs.delayed), kBold).add(" delayed   ");
  line.add(count(shot.stats.jobs.ready), kBold).add(" ready   ");
  line.add(count(shot.stats.jobs.reserved), kBold).add(" reserved   ");
  line.add(count(shot.stats.jobs.buried), shot.stats.jobs.buried > 0 ? kRed : kBold).add(" buried");
  return line.take();
}

std::string rates_line(const TopSnapshot& shot, const TopLook& look) {
  Line line(look);
  line.add("Rates   ").add(rate(shot.put_rate), kBold).add(" put/s   ");
  line.add(rate(shot.fired_rate), kBold).add(" fired/s   ");
  line.add(rate(shot.delete_rate), kBold).add(" deleted/s   ");
  line.add(fmt::format("{} connection{}, {} wait{}", count(shot.stats.connections),
                       shot.stats.connections == 1 ? "" : "s", count(shot.stats.waiting),
                       shot.stats.waiting == 1 ? "s" : ""));
  return line.take();
}

std::string lateness_line(const TopSnapshot& shot, const TopLook& look) {
  const auto colour = [](std::optional<std::uint64_t> ms) {
    return ms && *ms > kLate ? kRed : kBold;
  };
  Line line(look);
  if (!shot.stats.lateness_ms.p50)
    return line.add("Late    no delayed job has gone out in the last 10 s", kQuiet).take();
  line.add("Late    half ")
      .add(late(shot.stats.lateness_ms.p50), colour(shot.stats.lateness_ms.p50));
  line.add("   99 % ").add(late(shot.stats.lateness_ms.p99), colour(shot.stats.lateness_ms.p99));
  line.add("   all ").add(late(shot.stats.lateness_ms.max), colour(shot.stats.lateness_ms.max));
  return line.add("   in the last 10 s", kQuiet).take();
}

// Shows the storms that fit.
std::string storm_line(const TopSnapshot& shot, const TopLook& look) {
  Line line(look);
  if (!look.trouble.empty()) return line.add(look.trouble, kRed).take();
  if (shot.storms.empty()) return line.add("Storms  none is coming within the hour", kQuiet).take();
  line.add("Storms  ");
  for (const TopStorm& storm : shot.storms) {
    const bool is_first = &storm == &shot.storms.front();
    const std::string text = fmt::format("{}{}: {}{} jobs at {}", is_first ? "" : "   ", storm.tube,
                                         storm.estimated ? "~" : "", count(storm.jobs),
                                         time_of_day(storm.from).substr(0, 5));
    if (!is_first && line.width() + text.size() > look.columns) break;
    line.add(text, kYellow);
  }
  return line.take();
}

std::size_t name_width(const TopLook& look) {
  return std::max(kLeastName, look.columns - std::min(look.columns, kNumbers));
}

std::string head_line(const TopLook& look) {
  Line line(look);
  const auto colour = [&](std::size_t column) {
    return static_cast<std::size_t>(look.order) == column ? kGreen : kBold;
  };
  line.add(fmt::format("{:<{}}", "TUBE", name_width(look)), colour(kColumns.size()));
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    line.add(fmt::format("{:>{}}", kColumns[i].head, kColumns[i].width), colour(i));
  return line.take();
}

std::string tube_line(const TopTube& tube, const TopLook& look) {
  const std::size_t width = name_width(look);
  const std::string_view mark = tube.tube.paused ? " (paused)" : "";
  std::string name = tube.tube.name;
  if (name.size() + mark.size() >= width) {
    name.resize(width - 2 - std::min(width - 2, mark.size()));
    name += '~';
  }
  Line line(look);
  line.add(name).add(mark, kYellow);
  line.add(std::string(width - std::min(width, line.width()), ' '));
  const std::string numbers[] = {
      count(tube.tube.jobs.delayed), count(tube.tube.jobs.ready), count(tube.tube.jobs.reserved),
      count(tube.tube.jobs.buried),  rate(tube.put_rate),         rate(tube.delete_rate)};
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const bool is_bad = i == 3 && tube.tube.jobs.buried > 0;
    line.add(fmt::format("{:>{}}", numbers[i], kColumns[i].width),
             is_bad ? kRed : std::string_view());
  }
  return line.take();
}

std::vector<TopTube> sorted(std::vector<TopTube> tubes, TopOrder order) {
  std::sort(tubes.begin(), tubes.end(), [order](const TopTube& a, const TopTube& b) {
    const auto column = static_cast<std::size_t>(order);
    if (column < kColumns.size()) {
      const double of_a = kColumns[column].value(a);
      const double of_b = kColumns[column].value(b);
      if (of_a != of_b) return of_a > of_b;
    }
    return a.tube.name < b.tube.name;
  });
  return tubes;
}

boost::json::object json_of(const queue::JobCounts& jobs) {
  return {{"delayed", jobs.delayed},
          {"ready", jobs.ready},
          {"reserved", jobs.reserved},
          {"buried", jobs.buried}};
}

boost::json::value json_of(const std::optional<double>& number) {
  return number ? boost::json::value(*number) : boost::json::value(nullptr);
}

boost::json::value in_ms(const std::optional<std::uint64_t>& ms) {
  return ms ? boost::json::value(*ms) : boost::json::value(nullptr);
}

}  // namespace

TopOrder parse_top_order(std::string_view text) {
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    if (kColumns[i].name == text) return static_cast<TopOrder>(i);
  if (text == "name") return TopOrder::kName;
  throw std::invalid_argument(
      fmt::format("\"{}\": write delayed, ready, reserved, buried, puts, deletes or name", text));
}

TopOrder next_order(TopOrder order) {
  return order == TopOrder::kName ? TopOrder::kDelayed
                                  : static_cast<TopOrder>(static_cast<int>(order) + 1);
}

std::vector<std::string> top_lines(const TopSnapshot& shot, const TopLook& look) {
  std::vector<std::string> lines = {server_line(shot, look), jobs_line(shot, look),
                                    rates_line(shot, look),  lateness_line(shot, look),
                                    storm_line(shot, look),  "",
                                    head_line(look)};
  const std::vector<TopTube> tubes = sorted(shot.tubes, look.order);
  const std::size_t room =
      look.rows == 0 ? tubes.size() + 1 : look.rows - std::min(look.rows, lines.size());
  const bool fits = tubes.size() == shot.all_tubes && tubes.size() <= room;
  const std::size_t shown =
      fits ? tubes.size() : std::min(tubes.size(), room - std::min<std::size_t>(room, 1));
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(tube_line(tubes[i], look));
  if (shown < shot.all_tubes && room > 0) {
    Line line(look);
    lines.push_back(
        line.add(fmt::format("... {} of {} tubes", shown, shot.all_tubes), kQuiet).take());
  }
  if (look.rows > 0 && lines.size() > look.rows) lines.resize(look.rows);
  return lines;
}

std::string top_json(const TopSnapshot& shot, TopOrder order) {
  boost::json::array storms;
  for (const TopStorm& storm : shot.storms) {
    storms.push_back({{"tube", storm.tube},
                      {"from", server::format_timestamp(storm.from)},
                      {"jobs", storm.jobs},
                      {"estimated", storm.estimated}});
  }
  boost::json::array tubes;
  for (const TopTube& tube : sorted(shot.tubes, order)) {
    tubes.push_back({{"name", tube.tube.name},
                     {"jobs", json_of(tube.tube.jobs)},
                     {"waiting", tube.tube.waiting},
                     {"put_rate", json_of(tube.put_rate)},
                     {"delete_rate", json_of(tube.delete_rate)},
                     {"paused", tube.tube.paused}});
  }
  const boost::json::object all{{"at", server::format_timestamp(shot.at)},
                                {"server", shot.server},
                                {"version", shot.stats.version},
                                {"host", shot.stats.host},
                                {"uptime_ms", shot.stats.uptime_ms},
                                {"draining", shot.stats.draining},
                                {"jobs", json_of(shot.stats.jobs)},
                                {"connections", shot.stats.connections},
                                {"waiting", shot.stats.waiting},
                                {"rates",
                                 {{"put", json_of(shot.put_rate)},
                                  {"fired", json_of(shot.fired_rate)},
                                  {"acked", json_of(shot.delete_rate)}}},
                                {"lateness_ms",
                                 {{"p50", in_ms(shot.stats.lateness_ms.p50)},
                                  {"p99", in_ms(shot.stats.lateness_ms.p99)},
                                  {"max", in_ms(shot.stats.lateness_ms.max)}}},
                                {"storms", std::move(storms)},
                                {"tubes", std::move(tubes)},
                                {"tubes_total", shot.all_tubes}};
  return server::json_text(all) + "\n";
}

}  // namespace carillon::cli
