// The options of set-schedule: name=value, in any order (option_values.h).
//
//   const auto [schedule, paused] = parse_schedule_options("cron=\"30 8 * * *\"", "mail");
//   schedule.cron == "30 8 * * *"; schedule.tube == "mail"; schedule.priority == 65'536;
//
//   option     value
//   cron       a cron expression (docs/timers.md), in double quotes
//   zone       the name of a time zone, as Europe/Berlin; UTC                     with cron alone
//   gap        skip or after: a time of day that the zone's clocks skip; after    with cron alone
//   every      a duration of 1s to 3652d
//   start      a moment: the first occurrence, and those after it count from it  with every alone
//   catch-up   none, last, or all:DURATION; last
//   overlap    allow, skip or queue; allow
//   tube       where the jobs are put; `tube`
//   paused     yes: it is paused from now on; else it stays as it is
//
// and those of its jobs, as of put-job (job_options.h): pri, ttr, group, max-attempts, backoff,
// jitter, lost, attributes, at-expiry; spread and expires-in up to 3652d.
//
// Thread safety: pure.
#pragma once

#include <string_view>

#include "carillon/queue/schedule.h"

namespace carillon::server::beanstalk {

struct ScheduleOptions {
  queue::Schedule schedule;
  bool paused = false;
};

// Throws std::invalid_argument with one line that names the option, its value, and what is allowed.
// The engine checks the rest. `tube`: where jobs are put if no option says it.
ScheduleOptions parse_schedule_options(std::string_view text, std::string_view tube);

}  // namespace carillon::server::beanstalk
