// How a store keeps schedules: the bytes of a record, and directories of versions without them.

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/store/state/schedule_values.h"
#include "queue/store/state/tagged_fields.h"
#include "queue/temporary_directory.h"

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

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
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
  plain.schedule.run_after_gap = false;  // the default of older versions, which takes no byte
  EXPECT_EQ(read_schedule_value("p", value_of(plain)), plain);
}

TEST(ScheduleValues, AStartWithTheYear1970IsNoneThatIsMissing) {
  const ScheduleRecord record{.name = "p", .schedule = {.every = 3'600'000, .start = 0}};
  EXPECT_EQ(read_schedule_value("p", value_of(record)), record);
}

TEST(ScheduleValues, ARecordOfAVersionWithoutGroupsIsRead) {
  const std::string value = from_hex(
      "0203077265706f72747304070690bf0509036100620b0a33302032202a202a202a0d0d4575726f70652f"
      "4265726c696e0e01120514021680dddb0118021ae0d4031c011e80d095ffbc312109010005fbcf95ffbc"
      "312209240a260b280c2a0d2c0e");
  ScheduleRecord expected = full_record();
  expected.schedule.group.clear();
  expected.schedule.retry = {};
  expected.schedule.attributes.clear();
  expected.schedule.expires_in = 0;
  expected.schedule.at_expiry = AtExpiry::kDrop;
  EXPECT_EQ(read_schedule_value("nightly", value), expected);
  EXPECT_EQ(value_of(expected), value);
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
  std::string overlap(1, '\2');
  append_number(overlap, 12, 3);  // there are 0, 1 and 2
  EXPECT_NE(schedule_complaint(overlap).find("a field 12 that is no such number"),
            std::string::npos);
  std::string spans(1, '\2');
  append_bytes(spans, 16, "\x01\x80");
  EXPECT_NE(schedule_complaint(spans).find("spans that are cut short"), std::string::npos);
}

TEST(ScheduleStore, ADirectoryOfAVersionWithoutSchedulesOpens) {
  const TemporaryDirectory directory;
  const std::string path = directory / "data";
  const auto recovered = [&path] { return DiskStore(path, {}).recover().schedules; };
  ASSERT_EQ(recovered().size(), 0u);

  const rocksdb::DBOptions options;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : {"default", "jobs", "index", "bodies", "keys", "schedules"})
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, path, families, &handles, &opened).ok());
  const std::unique_ptr<rocksdb::DB> database(opened);
  ASSERT_TRUE(database->DropColumnFamily(handles.back()).ok());
  for (rocksdb::ColumnFamilyHandle* family : handles)
    ASSERT_TRUE(database->DestroyColumnFamilyHandle(family).ok());
  ASSERT_TRUE(database->Close().ok());

  {
    DiskStore store(path, {});
    EXPECT_EQ(store.recover().schedules.size(), 0u);
    Changes changes;
    changes.schedules.push_back({"nightly", full_record()});
    store.append(changes);
    store.sync();
  }
  EXPECT_EQ(recovered(), std::vector{full_record()});
}

}  // namespace
}  // namespace carillon::queue
