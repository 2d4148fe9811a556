// Reads a cron expression: from text to CronFields.
#pragma once

#include <string_view>

#include "timer/cron/cron_fields.h"

namespace carillon::detail {

// Throws CronError. The syntax is in carillon/timer/cron_schedule.h.
CronFields parse_cron(std::string_view expression);

}  // namespace carillon::detail
