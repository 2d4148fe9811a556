// Changes and records as bytes: what was written is read, what a newer version has added is kept,
// and what is broken is refused by name.

#include "queue/store/log/change_codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "queue/seed.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/record_values.h"
#include "queue/store/state/tagged_fields.h"
#include "queue/store_media.h"

namespace carillon::queue {
namespace {

using namespace std::string_view_literals;

JobRecord full_job() {
  return {.id = 7,
          .tube = 3,
          .priority = 1'024,
          .due = 1'700'000'000'000,
          .burial = 0,
          .ttr = 60'000,
          .delay = 5'000,
          .created = 1'699'999'995'000,
          .body_bytes = 5,
          .history = {.reserves = 1, .timeouts = 2, .releases = 3, .buries = 4, .kicks = 5}};
}

std::string value_of(const JobRecord& job) {
  std::string value;
  append_job_value(value, job);
  return value;
}

JobRecord read(const JobRecord& key_of, std::string_view value) {
  return read_job_value(view(index_key_of(key_of)), value);
}

template <typename Action>
std::string complaint(Action&& action) {
  try {
    action();
  } catch (const StoreError& error) {
    return error.what();
  }
  return "";
}

TEST(RecordValues, AJobIsReadAsItWasWritten) {
  const JobRecord job = full_job();
  EXPECT_EQ(read(job, value_of(job)), job);
  const JobRecord away = buried(job, 12);
  EXPECT_EQ(read(away, value_of(away)), away);
}

TEST(RecordValues, APolicyOfZerosIsNotAMissingPolicy) {
  JobRecord job = full_job();
  job.extras = detail::Rare(JobExtras{.key = {}, .retry = {.counts_empty = true}});
  EXPECT_EQ(read(job, value_of(job)), job);
}

TEST(RecordValues, AnOrdinaryJobTakesLessThan32Bytes) {
  JobRecord job = full_job();
  job.history = {};
  EXPECT_LT(value_of(job).size(), 32U);
}

TEST(RecordValues, ATokenIsReadAsItWasWritten) {
  const KeyRecord token{.tube = kTokens,
                        .key = "t",
                        .until = 5,
                        .batch = detail::Rare(BatchAnswer{
                            .fingerprint = std::string("\0 any bytes"sv),
                            .puts = {{.result = 0, .first = 7, .jobs = 2}},
                            .job = detail::Rare(JobAsPut{full_job(), "mail", "acme"})})};
  std::string value;
  append_key_value(value, token);
  EXPECT_EQ(read_key_value(kTokens, "t", value), token);
}

TEST(RecordValues, FieldsOfANewerVersionAreKept) {
  const JobRecord job = full_job();
  std::string value = value_of(job);
  std::string newer;
  append_bytes(newer, 120, "the caller's key");
  append_number(newer, 121, 5);
  const JobRecord read_back = read(job, value + newer);
  EXPECT_EQ(read_back.extras->newer, newer);
  JobRecord moved = read_back;
  moved.due += 1;
  EXPECT_TRUE(value_of(moved).ends_with(newer));

  TubeRecord tube{.number = 4, .name = "mail", .scheduled = 2, .buried = 1};
  value.clear();
  append_tube_value(value, tube);
  tube.newer = NewerFields(newer);
  EXPECT_EQ(read_tube_value(4, value + newer), tube);
}

TEST(RecordValues, WhatIsBrokenIsRefusedByItsKey) {
  const JobRecord job = full_job();
  const std::string value = value_of(job);
  EXPECT_NE(complaint([&] { read(job, ""); }).find("is empty"), std::string::npos);
  EXPECT_NE(complaint([&] { read(job, "\x09"); }).find("has version 9"), std::string::npos);
  EXPECT_NE(complaint([&] { read(job, value.substr(0, value.size() - 1)); }).find("is broken"),
            std::string::npos);
  JobRecord other = job;
  other.due += 1;
  EXPECT_NE(complaint([&] { read(other, value); }).find("belongs under the key"),
            std::string::npos);
  std::string large(1, '\1');
  append_number(large, 1, std::uint64_t{1} << 32);  // a priority has 32 bits
  EXPECT_NE(complaint([&] { read(job, large); }).find("is no such number"), std::string::npos);
}

// Text of a change: one line for each entry, "+family key=value" or "-family key".
std::string entries(std::string_view bytes) {
  std::string text;
  for_each_entry(bytes, [&text](const Entry& entry) {
    text += (entry.value ? "+" : "-") + std::to_string(entry.family) + " " + hex(entry.key);
    if (entry.value) text += "=" + std::string(*entry.value);
    text += "\n";
  });
  return text;
}

std::string encoded(const Changes& changes) {
  std::string bytes;
  encode_changes(changes, bytes);
  return bytes;
}

TEST(ChangeCodec, APutAMoveAndADeletionAreTheirEntries) {
  const JobRecord job = full_job();
  JobRecord moved = job;
  moved.due += 10'000;
  JobRecord changed = moved;
  changed.priority = 1;
  const std::string id = hex(view(job_key(job.id)));
  const std::string key = hex(view(index_key_of(job)));
  const std::string moved_key = hex(view(index_key_of(moved)));
  const auto pointer = [](const JobRecord& to) {
    return std::string(view(encode_pointer(index_key_of(to))));
  };
  EXPECT_EQ(entries(encoded({.jobs = {{{}, job, "hello"}}, .tubes = {}, .watermarks = {}})),
            "+3 " + id + "=hello\n+1 " + id + "=" + pointer(job) + "\n+2 " + key + "=" +
                value_of(job) + "\n");
  EXPECT_EQ(entries(encoded({.jobs = {{job, moved, {}}}, .tubes = {}, .watermarks = {}})),
            "-2 " + key + "\n+1 " + id + "=" + pointer(moved) + "\n+2 " + moved_key + "=" +
                value_of(moved) + "\n");
  EXPECT_EQ(entries(encoded({.jobs = {{moved, changed, {}}}, .tubes = {}, .watermarks = {}})),
            "+2 " + moved_key + "=" + value_of(changed) + "\n");
  EXPECT_EQ(entries(encoded({.jobs = {{moved, {}, {}}}, .tubes = {}, .watermarks = {}})),
            "-2 " + moved_key + "\n-1 " + id + "\n-3 " + id + "\n");
}

TEST(ChangeCodec, ATubeWithoutJobsIsErased) {
  TubeRecord tube{.number = 3, .name = "mail", .scheduled = 1, .buried = 0};
  std::string value;
  append_tube_value(value, tube);
  EXPECT_EQ(entries(encoded({.jobs = {}, .tubes = {tube}, .watermarks = {}})),
            "+0 7400000003=" + value + "\n");
  tube.scheduled = 0;
  EXPECT_EQ(entries(encoded({.jobs = {}, .tubes = {tube}, .watermarks = {}})), "-0 7400000003\n");
}

TEST(ChangeCodec, AnEmptyBodyIsABody) {
  const std::string id = hex(view(job_key(7)));
  const Changes changes{.jobs = {{{}, full_job(), ""}}, .tubes = {}, .watermarks = {}};
  EXPECT_TRUE(entries(encoded(changes)).starts_with("+3 " + id + "=\n"));
}

TEST(ChangeCodec, BytesThatAreNoChangesAreRefused) {
  EXPECT_NE(complaint([] { entries(""); }).find("is empty"), std::string::npos);
  EXPECT_NE(complaint([] { entries("\x07"); }).find("version"), std::string::npos);
  const Changes changes{
      .jobs = {}, .tubes = {{.number = 3, .name = "mail", .scheduled = 1}}, .watermarks = {}};
  const std::string bytes = encoded(changes);
  for (std::size_t size = 2; size < bytes.size(); ++size)
    EXPECT_NE(complaint([&] { entries(std::string_view(bytes).substr(0, size)); }), "") << size;
  std::string unknown = bytes;
  append_bytes(unknown, 2 * kFamilies + 1, "of a newer version");
  EXPECT_NE(complaint([&] { entries(unknown); }).find("not known"), std::string::npos);
}

TEST(ChangeCodec, RandomBytesAreReadOrRefused) {
  std::mt19937_64 random(seed_or(std::random_device{}()));
  const std::string whole = encoded({.jobs = {{full_job(), full_job(), {}}},
                                     .tubes = {{.number = 3, .name = "mail"}},
                                     .watermarks = Watermarks{}});
  for (int n = 0; n < 20'000; ++n) {
    std::string bytes = whole;
    for (int damage = 0; damage < 3; ++damage)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    complaint([&] { entries(bytes); });
  }
}

}  // namespace
}  // namespace carillon::queue
