// The YAML with which the session answers `stats`, `stats-job`, `stats-tube` and the `list-…`
// commands: beanstalkd's fields in beanstalkd's order, and Carillon's own after them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine.h"
#include "server/service.h"

namespace carillon::server::beanstalk {

// The words of states and deaths: "delayed", "attempts".
std::string_view name_of(queue::JobState state);
std::string_view name_of(queue::Death death);
std::string_view name_of(queue::AtExpiry at_expiry);

std::string server_stats_yaml(Service& service);
std::string tube_stats_yaml(const queue::TubeStats& tube);
std::string job_stats_yaml(const queue::JobStats& job);
// A list is its head and then, for each item, the item's head, the item, and a line's end.
inline constexpr std::string_view kListHead = "---\n";
inline constexpr std::string_view kItemHead = "- ";
std::string list_yaml(const std::vector<std::string>& items);

}  // namespace carillon::server::beanstalk
