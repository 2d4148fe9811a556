// The YAML with which the session answers `stats-schedule`: one field a line, in the order of
// docs/protocol.md.
#pragma once

#include <string>

#include "carillon/queue/schedule.h"

namespace carillon::server::beanstalk {

// Moments are in the schedule's zone.
std::string schedule_yaml(const queue::ScheduleView& view);

}  // namespace carillon::server::beanstalk
