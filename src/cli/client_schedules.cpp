// The commands for schedules (client.h).

#include <fmt/format.h>

#include <utility>

#include "cli/client.h"

namespace carillon::cli {

void Client::set_schedule(std::string_view name, std::string_view options, std::string_view body) {
  const std::string command = fmt::format("set-schedule {} {} {}", name, body.size(), options);
  stream_.send(command + "\r\n");
  stream_.send(body);
  const std::string reply = ask("");
  constexpr std::string_view kRefused = "BAD_OPTION ";
  if (reply == "SCHEDULED") return;
  if (reply.starts_with(kRefused)) throw Failure(reply.substr(kRefused.size()));
  if (reply == "BAD_FORMAT") throw Failure("the options are too long: a line has 2048 bytes");
  refuse_put(command, reply, body.size());
}

bool Client::delete_schedule(std::string_view name) {
  return ask_whether(fmt::format("delete-schedule {}", name), "DELETED");
}

bool Client::pause_schedule(std::string_view name) {
  return ask_whether(fmt::format("pause-schedule {}", name), "PAUSED");
}

bool Client::resume_schedule(std::string_view name) {
  return ask_whether(fmt::format("resume-schedule {}", name), "RESUMED");
}

std::optional<std::uint64_t> Client::trigger_schedule(std::string_view name) {
  const std::string command = fmt::format("trigger-schedule {}", name);
  const std::string reply = ask(command);
  if (reply == "NOT_FOUND") return std::nullopt;
  if (!reply.starts_with("INSERTED ")) refuse_put(command, reply, 0);
  return number_after(command, reply, "INSERTED");
}

std::optional<StatsFields> Client::stats_schedule(std::string_view name) {
  return ask_stats(fmt::format("stats-schedule {}", name));
}

std::optional<std::string> Client::show_schedule(std::string_view name) {
  const std::string command = fmt::format("show-schedule {}", name);
  const std::string reply = ask(command);
  if (reply == "NOT_FOUND") return std::nullopt;
  std::string line = read_data(number_after(command, reply, "OK"));
  if (line.ends_with('\n')) line.pop_back();
  return line;
}

std::vector<std::string> Client::schedules() {
  std::vector<std::string> names;
  for (std::size_t before = SIZE_MAX; names.size() != before;) {
    before = names.size();
    const std::string command = names.empty() ? "list-schedules" : "list-schedules " + names.back();
    for (std::string& name : read_names(command, ask(command))) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace carillon::cli
