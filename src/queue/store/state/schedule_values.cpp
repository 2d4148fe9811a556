// The fields of a schedule, and the messages for those that are not as they should be.

#include "queue/store/state/schedule_values.h"

#include "carillon/queue/store.h"
#include "queue/store/state/value_fields.h"

namespace carillon::queue {

namespace {

// Calls `field` with the tag of each field and a reference to it.
template <typename Record, typename Field>
void each_field_of_schedule(Record& record, Field&& field) {
  auto& schedule = record.schedule;
  field(1, schedule.tube);
  field(2, schedule.priority);
  field(3, schedule.ttr);
  field(4, schedule.body);
  field(5, schedule.cron);
  field(6, schedule.zone);
  field(7, schedule.run_after_gap);
  field(8, schedule.every);
  field(9, schedule.start);
  field(10, schedule.catch_up);
  field(11, schedule.catch_up_window);
  field(12, schedule.overlap);
  field(13, schedule.spread);
  field(14, record.paused);
  field(15, record.decided);
  field(16, record.spans);
  field(17, record.waiting);
  field(18, record.last_job);
  field(19, record.last_occurrence);
  field(20, record.fired);
  field(21, record.skipped);
  field(22, record.created);
  field(23, schedule.group);
  field(24, schedule.retry.max_attempts);
  field(25, schedule.retry.backoff);
  field(26, schedule.retry.backoff_max);
  field(27, schedule.retry.jitter);
  field(28, schedule.retry.lost_fails);
  field(29, schedule.attributes);
  field(30, schedule.expires_in);
  field(31, schedule.at_expiry);
  field(32, schedule.retry.counts_empty);
  field(33, record.since);
  field(34, record.last_tube);
}

}  // namespace

void append_schedule_value(std::string& bytes, const ScheduleRecord& record) {
  each_field_of_schedule(record, begin_value(bytes));
  bytes.append(*record.newer);
}

ScheduleRecord read_schedule_value(std::string_view name, std::string_view bytes) {
  const StoredValue value("the record of the schedule", name, bytes);
  ScheduleRecord record{.name = std::string(name), .schedule = {}};
  record.schedule.ttr = 0;
  record.schedule.catch_up = {};
  record.schedule.zone.clear();
  record.schedule.run_after_gap = false;
  record.newer =
      detail::Rare(value.read([&record](auto&& field) { each_field_of_schedule(record, field); }));
  // A field that is 0 takes no byte: the schedule starts with the year 1970.
  if (record.schedule.every != 0 && !record.schedule.start) record.schedule.start = 0;
  return record;
}

}  // namespace carillon::queue
