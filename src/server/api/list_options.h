// The options of the commands for many jobs: name=value, separated by spaces (option_values.h).
//
//   parse_list_options("state=ready,buried due-before=2030-01-01T09:00:00Z limit=10",
//                      ListOptionsOf::kList)
//
//   option         value                                                        commands
//   state          delayed, ready, reserved, buried or dead, or several of
//                  them: ready,buried                                           list cancel move
//                  delayed, buried or dead, or several of them                  retry
//   group          1 to 200 bytes, none of them a space or below                 all
//   key-prefix     1 to 200 bytes, none of them a space or below                all
//   due-after      a moment: milliseconds since 1970, or RFC 3339
//                  (server/text/timestamp.h)                                         all
//   due-before     a moment                                                     all
//   limit          1 to 1000                                                    list
//                  1 to 1000000                                                 all others
//   after          what the answer before calls "next"                          all
//   bodies         yes or no                                                    list
//   dry-run        yes or no                                                    all except list
//   to             the name of a tube                                           move
//   over           a duration (server/text/duration.h)                               spread
//
// (list: list-jobs, cancel: cancel-jobs, and so on.) Nothing is clamped. Thread safety: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "carillon/queue/due_counts.h"
#include "carillon/queue/job_listing.h"

namespace carillon::server::beanstalk {

enum class ListOptionsOf : std::uint8_t {
  kList = 1,
  kCancel = 2,
  kRetry = 4,
  kMove = 8,
  kSpread = 16
};

struct ListOptions {
  queue::JobFilter filter = {};
  std::uint64_t limit = 0;
  // Where the page begins.
  queue::JobCursor after = {};
  bool is_first = true;  // `after` was not given
  bool bodies = false;
  bool dry_run = false;
  std::string to = {};
  queue::Millis over = 0;
};

// The most jobs on one page, and how many a page has if the request does not say.
inline constexpr std::uint64_t kMostListed = 1'000;
inline constexpr std::uint64_t kUsuallyListed = 100;
inline constexpr std::uint64_t kMostChanged = 1'000'000;
inline constexpr std::uint64_t kUsuallyChanged = 10'000;

// Throws std::invalid_argument with one line that names the option, its value, and what is allowed.
ListOptions parse_list_options(std::string_view text, ListOptionsOf of);

// The options of list-groups: `limit`, 1 to 1000, and `after`. Throws as above.
struct GroupListOptions {
  std::size_t limit = kUsuallyListed;
  std::uint32_t after = 0;  // the page begins with the group of this number; 0: the first group
};
GroupListOptions parse_group_list_options(std::string_view text);

// The options of due-counts: `by`, minute, hour or day; and `spans`, 1 to 1000. Throws as above.
struct DueCountsOptions {
  queue::Millis width = 60'000;
  std::size_t spans = 60;
};
DueCountsOptions parse_due_counts_options(std::string_view text);

}  // namespace carillon::server::beanstalk
