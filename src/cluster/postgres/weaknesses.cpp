#include "cluster/postgres/weaknesses.h"

#include <array>
#include <string_view>

#include "carillon/queue/store.h"

namespace carillon::cluster::postgres {
namespace {

constexpr Statement kSettings = {
    "",
    "select current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),"
    " current_setting('fsync'), current_setting('full_page_writes')"};

struct Weakness {
  std::string_view setting;
  bool (*is_weak)(std::string_view value);
  std::string_view loss;
};

bool is_off(std::string_view value) {
  return value == "off";
}

// In the order of the columns of kSettings.
constexpr std::array kWeaknesses = {
    Weakness{"synchronous_standby_names", [](std::string_view value) { return value.empty(); },
             "no commit waits for a standby, so what was acknowledged last is lost with the "
             "server's disk, and by a fail-over"},
    Weakness{
        "synchronous_commit",
        [](std::string_view value) { return value != "on" && value != "remote_apply"; },
        "a commit does not wait until it is on the disk of a standby (or, if it is off, on the "
        "server's own), so what was acknowledged last is lost by a crash and a fail-over"},
    Weakness{"fsync", is_off,
             "nothing is forced to the disk, so a power loss can destroy the whole log"},
    Weakness{"full_page_writes", is_off,
             "a page that was half written in a power loss stays so, which can destroy the log"},
};

}  // namespace

const std::vector<std::string>& weak_settings() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Weakness& weakness : kWeaknesses) all.emplace_back(weakness.setting);
    return all;
  }();
  return names;
}

std::vector<std::string> weaknesses(Connection& connection, const std::set<std::string>& allowed,
                                    Deadline deadline) {
  const Reply reply = connection.run(kSettings, {}, deadline);
  if (!reply.done()) throw queue::LogUnavailable(reply.why);
  std::vector<std::string> lines;
  int column = 0;
  for (const Weakness& weakness : kWeaknesses) {
    const std::string value(reply.rows.bytes(0, column++));
    const std::string setting(weakness.setting);
    if (!weakness.is_weak(value) || allowed.contains(setting)) continue;
    std::string& line = lines.emplace_back(setting);
    line.append(" = '").append(value).append("': ").append(weakness.loss);
    line.append("; --allow-weak-cluster ").append(setting).append(" allows it");
  }
  return lines;
}

}  // namespace carillon::cluster::postgres
