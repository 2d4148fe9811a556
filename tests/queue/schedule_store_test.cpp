// How schedules are written as values, and read again.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/store/state/schedule_values.h"
#include "queue/store/state/tagged_fields.h"

namespace carillon::queue {
namespace {

ScheduleRecord full_record() {
  ScheduleRecord record{.name = "nightly", .schedule = {}};
  record.schedule = {.tube = "reports",
                     .priority = 7,
                     .ttr = 90'000,
                     .body = std::string("a\0b", 3),
                     .group = "acme",
                     .retry = {.max_attempts = 3,
                               .backoff = 1'000,
                               .backoff_max = 60'000,
                               .jitter = 10,
                               .lost_fails = true},
                     .attributes = R"({"n":1})",
                     .expires_in = 5'000,
                     .at_expiry = AtExpiry::kDead,
                     .cron = "30 2 * * *",
                     .zone = "Europe/Berlin",
                     .run_after_gap = true,
                     .every = 0,
                     .start = 5,
                     .catch_up = CatchUp::kAll,
                     .catch_up_window = 3'600'000,
                     .overlap = Overlap::kQueue,
                     .spread = 60'000};
  record.paused = true;
  record.decided = 1'700'000'000'000;
  record.spans = {{1, 1}, {5, 1'700'000'000'000}};
  record.waiting = 9;
  record.last_job = 10;
  record.last_occurrence = 11;
  record.fired = 12;
  record.skipped = 13;
  record.created = 14;
  return record;
}

std::string value_of(const ScheduleRecord& record) {
  std::string value;
  append_schedule_value(value, record);
  return value;
}

std::string schedule_complaint(const std::string& value) {
  try {
    read_schedule_value("nightly", value);
  } catch (const StoreDamage& error) {
    return error.what();
  }
  return "none";
}

TEST(ScheduleValues, AreReadAsTheyWereWritten) {
  EXPECT_EQ(read_schedule_value("nightly", value_of(full_record())), full_record());
  ScheduleRecord plain{.name = "p", .schedule = {}};
  EXPECT_EQ(read_schedule_value("p", value_of(plain)), plain);
  plain.schedule.catch_up = CatchUp::kNone;
  plain.schedule.ttr = 0;
  plain.schedule.run_after_gap = false;  // it takes no byte
  EXPECT_EQ(read_schedule_value("p", value_of(plain)), plain);
}

TEST(ScheduleValues, AStartWithTheYear1970IsNotAMissingOne) {
  const ScheduleRecord record{.name = "p", .schedule = {.every = 3'600'000, .start = 0}};
  EXPECT_EQ(read_schedule_value("p", value_of(record)), record);
}

TEST(ScheduleValues, FieldsOfANewerVersionAreKept) {
  std::string newer;
  append_number(newer, 90, 5);
  append_bytes(newer, 91, "later");
  const ScheduleRecord read = read_schedule_value("nightly", value_of(full_record()) + newer);
  EXPECT_EQ(*read.newer, newer);
  EXPECT_TRUE(value_of(read).ends_with(newer));
}

TEST(ScheduleValues, WhatIsBrokenIsRefusedByItsName) {
  EXPECT_EQ(schedule_complaint(""),
            "the record of the schedule under the key 6e696768746c79 is damaged: it is empty");
  EXPECT_NE(schedule_complaint("\x09").find("has version 9"), std::string::npos);
  const std::string value = value_of(full_record());
  EXPECT_NE(schedule_complaint(value.substr(0, value.size() - 1)).find("is broken"),
            std::string::npos);
  std::string overlap(1, '\1');
  append_number(overlap, 12, 3);  // there are 0, 1 and 2
  EXPECT_NE(schedule_complaint(overlap).find("a field 12 that is no such number"),
            std::string::npos);
  std::string spans(1, '\1');
  append_bytes(spans, 16, "\x01\x80");
  EXPECT_NE(schedule_complaint(spans).find("spans that are cut short"), std::string::npos);
}

}  // namespace
}  // namespace carillon::queue
