// How schedules are written as values (record_values.h: how other records are): a version byte
// (format_version.h) and tagged fields (tagged_fields.h).
//
//    1 tube (bytes)   2 priority       3 ttr              4 body (bytes)   5 cron (bytes)
//    6 zone (bytes)   7 run_after_gap  8 every            9 start         10 catch_up
//   11 window        12 overlap       13 spread          14 paused        15 decided
//   16 spans (bytes) 17 waiting       18 last_job        19 last_occurrence
//   20 fired         21 skipped       22 created         23 group (bytes)
//   24 max_attempts  25 backoff       26 backoff_max     27 jitter       28 lost_fails
//   29 attributes (bytes)             30 expires_in      31 at_expiry
//
// spans := (varint(first) varint(last - first))*. The key is the name. Fields that this version
// does not know are kept, and written again with the record.
//
// Reading throws StoreDamage, which names the schedule, if a value is not as written above.
#pragma once

#include <string>
#include <string_view>

#include "carillon/queue/schedule.h"

namespace carillon::queue {

void append_schedule_value(std::string& bytes, const ScheduleRecord& record);
ScheduleRecord read_schedule_value(std::string_view name, std::string_view value);

}  // namespace carillon::queue
