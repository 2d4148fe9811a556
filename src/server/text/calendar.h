// When cron expressions occur: the queue's Calendar by the library of cron expressions and time
// zones (carillon/timer/cron_schedule.h, which has the dialect).
//
//   queue::EngineOptions options{.calendar = cron_calendar()};
//
// Thread safety: pure.
#pragma once

#include <string>

#include "carillon/queue/schedule.h"

namespace carillon::server {

// What it returns throws std::invalid_argument with one line that names the wrong field.
queue::Calendar cron_calendar();

// Returns a moment as the zone's clocks show it, with their offset from UTC (RFC 3339):
// 2030-07-01T08:30:00+02:00. By UTC if there is no such zone. REQUIRES: `utc` <= queue::kLastDue.
std::string format_in_zone(queue::UtcMs utc, const std::string& zone);

}  // namespace carillon::server
