// A page of a list of a tube's groups: the reply of list-groups. Each group is a line of JSON
// (option_line.h); the last line says where the next page begins.
//
//   const auto page = group_page(engine, now, "api", {.limit = 100});
//   // {"tube":"api","group":"acme","ready":3,"reserved":0,"delayed":1,"buried":0,"weight":3}
//   // {"next":null}
//
// Thread safety: that of the engine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/engine.h"
#include "server/api/list_options.h"

namespace carillon::server::beanstalk {

// A page ends when it has this many bytes, and is never longer than kLongestGroupPage.
inline constexpr std::size_t kGroupPageBytes = 128 << 10;
inline constexpr std::size_t kLongestGroupPage = 2 * kGroupPageBytes;

// Returns none if there is no such tube.
std::optional<std::string> group_page(queue::Engine& engine, queue::Now now, std::string_view tube,
                                      const GroupListOptions& options);

}  // namespace carillon::server::beanstalk
