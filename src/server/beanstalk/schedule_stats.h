// How the session shows a schedule: `stats-schedule` in YAML, one field a line, in the order of
// docs/protocol.md; and `show-schedule` as a line of JSON (option_line.h).
#pragma once

#include <string>

#include "carillon/queue/schedule.h"

namespace carillon::server::beanstalk {

// Moments are in the schedule's zone.
std::string schedule_yaml(const queue::ScheduleView& view);

// The options with which set-schedule makes it, with its name and body.
std::string schedule_line(const queue::ScheduleRecord& record);

}  // namespace carillon::server::beanstalk
