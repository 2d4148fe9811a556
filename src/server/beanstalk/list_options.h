// The options of list-jobs: name=value, separated by spaces (option_values.h).
//
//   parse_list_options("state=ready,buried due-before=2030-01-01T09:00:00Z limit=10")
//
//   option         value
//   state          delayed, ready, reserved, buried or dead, or several of them: ready,buried
//   key-prefix     1 to 200 bytes, none of them a space or below
//   due-after      a moment: milliseconds since 1970, or RFC 3339 (server/timestamp.h)
//   due-before     a moment
//   limit          1 to 1000
//   after          what the page before calls "next"
//   bodies         yes or no
//
// Nothing is clamped. Thread safety: pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "carillon/queue/job_listing.h"

namespace carillon::server::beanstalk {

struct ListOptions {
  queue::JobFilter filter = {};
  std::size_t limit = 100;
  // Where the page begins.
  queue::JobCursor after = {};
  bool is_first = true;  // `after` was not given
  bool bodies = false;
};

// The most jobs of one page.
inline constexpr std::size_t kMostListed = 1'000;

// Throws std::invalid_argument with one line that names the option, its value, and what is allowed.
ListOptions parse_list_options(std::string_view text);

}  // namespace carillon::server::beanstalk
