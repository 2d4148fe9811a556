#include "timer/cron/time_zone.h"

#include <date/tz.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "carillon/require.h"
#include "timer/cron/posix_rule.h"

namespace carillon::detail {
namespace {

using std::chrono::sys_seconds;

EvenTime even_time(const date::sys_info& info) noexcept {
  return {std::max(sys_seconds(info.begin.time_since_epoch()), kFirstTime),
          std::min(sys_seconds(info.end.time_since_epoch()), kEndOfTime), info.offset};
}

// Reads the last line of a zone's file: the rule that holds after the last change in the file's
// list. On many systems the lists go up to 2037; on some they have only changes of the past.
std::optional<PosixRule> rule_after_the_list(const std::string& zone) {
  std::ifstream file("/usr/share/zoneinfo/" + zone, std::ios::binary | std::ios::ate);
  constexpr std::streamoff kEnough = 128;
  const std::streamoff size = file.tellg();
  if (size <= 0) return std::nullopt;
  file.seekg(std::max<std::streamoff>(size - kEnough, 0));
  std::string end(static_cast<std::size_t>(std::min(size, kEnough)), '\0');
  if (!file.read(end.data(), static_cast<std::streamsize>(end.size())) || end.back() != '\n')
    return std::nullopt;
  end.pop_back();
  const std::size_t line = end.rfind('\n');
  return line == std::string::npos ? std::nullopt
                                   : PosixRule::parse(std::string_view(end).substr(line + 1));
}

const date::time_zone& look_up(const std::string& name) {
  try {
    return *date::locate_zone(name);
  } catch (const std::exception& error) {
    throw std::invalid_argument(
        "carillon: there is no time zone \"" + name +
        "\" in the tz database of this machine; names are like Europe/Berlin and UTC (" +
        error.what() + ")");
  }
}

}  // namespace

struct TimeZone::Rules {
  const date::time_zone* listed;  // null for UTC, which needs no database
  std::optional<PosixRule> afterwards;
};

TimeZone::TimeZone(std::string_view name) : name_(name) {
  if (name == "UTC") {
    rules_ = std::make_unique<Rules>(Rules{nullptr, std::nullopt});
  } else {
    const date::time_zone& zone = look_up(name_);
    rules_ = std::make_unique<Rules>(Rules{&zone, rule_after_the_list(name_)});
  }
}

TimeZone::~TimeZone() = default;

EvenTime TimeZone::at(sys_seconds time) const {
  CARILLON_REQUIRE(kFirstTime <= time && time <= kEndOfTime, time, name_);
  if (rules_->listed == nullptr) return {kFirstTime, kEndOfTime, std::chrono::seconds(0)};
  const EvenTime listed = even_time(rules_->listed->get_info(time));
  if (listed.end < kEndOfTime || !rules_->afterwards.has_value()) return listed;
  EvenTime afterwards = rules_->afterwards->at(time);
  afterwards.begin = std::max(afterwards.begin, listed.begin);
  return afterwards;
}

}  // namespace carillon::detail
