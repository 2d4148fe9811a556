// The log after crashes, and with damaged files: what a crash may lose is left out, whole; what
// must not be missing is refused.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/broken_log.h"
#include "queue/file_bytes.h"
#include "queue/local_log_fixture.h"
#include "queue/seed.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

// --- Crashes.

TEST_F(LocalLogTest, ARecordThatWasCutShortIsLeftOutWhole) {
  auto log = open();
  append_durable(*log, 100);
  for (int n = 0; n < 30; ++n) append(*log, 300);
  log->sync();
  log.reset();
  const fs::path file = files().at(0);
  const std::string bytes = contents(file);
  const std::size_t second = 2 * kBlock;
  for (std::size_t kept = second; kept < second + 9'000; kept += 512) {
    std::string cut = bytes;
    std::fill(cut.begin() + static_cast<std::ptrdiff_t>(kept), cut.end(), '\0');
    write(file, cut);
    open();
    expect_found(1, 1);
  }
}

TEST_F(LocalLogTest, WhatACrashLeftBehindTheEndIsNeverTakenForARecord) {
  auto log = open(0, LogWrites::kBuffered);
  append_durable(*log, 100);
  for (int n = 0; n < 3; ++n) {  // three records that may reach the disk in any order
    append(*log, 100);
    log->write();
  }
  log.reset();
  blank(files().at(0), 2 * kBlock, kBlock);  // the first of them did not
  log = open();
  expect_found(1, 1);
  for (LogNumber number = 2; number <= 6; ++number) {
    append_durable(*log, 100);
    auto again = open();
    expect_found(1, number);
    log = std::move(again);
  }
}

TEST_F(LocalLogTest, AHeaderThatWasCutShortIsAnEmptySegment) {
  auto log = open();
  append_durable(*log, kSegment / 2);
  const std::string newest = contents(directory_ / NewestFile::kName);
  append_durable(*log, kSegment * 3 / 4);
  log.reset();
  ASSERT_EQ(files().size(), 2U);
  const fs::path last = files().at(1);
  fs::remove(last);
  write(directory_ / NewestFile::kName, newest);
  LogSegment::make(held_, last.filename(), kIdentity, kSegment / kBlock, LogWrites::kDurable);
  log = open();  // it was not begun
  expect_found(1, 1);
  EXPECT_EQ(append(*log, 100), 2U);
}

TEST_F(LocalLogTest, WhatWasCutShortIsTold) {
  auto log = open();
  append_durable(*log, 100);
  append_durable(*log, 3 * kBlock);
  log.reset();
  blank(files().at(0), 3 * kBlock, 512);
  open();
  expect_found(1, 1);
  ASSERT_EQ(dropped_.size(), 1U);
  EXPECT_NE(dropped_[0].find("jobs-2.data: the record of change 2 was cut short by a crash"),
            std::string::npos)
      << dropped_[0];
  log = open();
  append_durable(*log, 100);
  log = open();
  expect_found(1, 2);
  EXPECT_TRUE(dropped_.empty()) << "the log has gone on in a new segment: " << dropped_[0];
}

// Three records may reach the disk in any order, and the first one has not.
TEST_F(LocalLogTest, ACrashOfTheMachineMayLeaveAGapAndACrashOfTheProcessMayNot) {
  constexpr std::uint64_t kBoot = 77;
  auto log = open({}, LogWrites::kBuffered, kBoot);
  append_durable(*log, 100);
  for (int n = 0; n < 3; ++n) {
    append(*log, 100);
    log->write();
  }
  log.reset();
  blank(files().at(0), 2 * kBlock, kBlock);
  expect_complaint("change 2, which was durable, is missing", 0, kBoot);
  EXPECT_EQ(complaint(0, kBoot + 1), "");
  expect_found(1, 1);
  ASSERT_EQ(dropped_.size(), 1U);
  EXPECT_NE(dropped_[0].find("so were left out 2 records behind it"), std::string::npos)
      << dropped_[0];
}

// --- Damage.

TEST_F(LocalLogTest, ADurableChangeThatIsMissingIsRefused) {
  append_durable(*open(), 100, 3);
  // The record of change 2; that of change 3 says it was durable.
  flip(files().at(0), 2 * kBlock + 50);
  expect_complaint("change 2, which was durable, is missing");
  EXPECT_EQ(complaint(2), "") << "it is not needed any more";
  expect_found(3, 3);
}

// A record that was cut short lacks a sector. One that has them all, and is not as it was written,
// may have been acknowledged.
TEST_F(LocalLogTest, EachBitOfTheLastRecordThatHasChangedIsRefusedOrHarmless) {
  for (const LogWrites writes : {LogWrites::kDurable, LogWrites::kBuffered}) {
    remove_all_files();
    auto log = open(0, writes);
    append_durable(*log, 100);
    append(*log, 1'200);  // in three sectors
    log->sync();
    log.reset();
    const std::string bytes = contents(files().at(0));
    int refused = 0;
    for (std::size_t at = 2 * kBlock; at < 3 * kBlock; at += 7) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      write(files().at(0), damaged);
      if (const std::string why = complaint(); !why.empty()) {
        ++refused;
        ASSERT_NE(why.find("was written whole and is not as it was written"), std::string::npos);
      } else {
        expect_found(1, 2);
      }
      ASSERT_EQ(contents(files().at(0)), damaged) << "a start changes nothing";
    }
    EXPECT_GE(refused, (40 + 4 + 1'200) / 7);
  }
}

TEST_F(LocalLogTest, AStartWritesNothingToAnyFile) {
  append_durable(*open(), kSegment / 2, 5);
  std::vector<fs::file_time_type> times;
  for (const fs::path& file : files()) times.push_back(fs::last_write_time(file));
  open();
  expect_found(1, 5);
  for (std::size_t n = 0; n < times.size(); ++n)
    EXPECT_EQ(fs::last_write_time(files().at(n)), times[n]) << files().at(n);
}

TEST_F(LocalLogTest, ARecordThatDoesNotContinueTheOneBeforeIsRefused) {
  auto log = open();
  append_durable(*log, 100, 3);
  const LogPosition three{.number = 3, .mark = *log->mark()};
  log.reset();
  EXPECT_EQ(complaint(three, 0), "");
  const LogPosition other{.number = 3, .mark = mark_of(*chain_of(three.mark) + 1)};
  for (const LogPosition& position : {other, LogPosition{.number = 2, .mark = three.mark}})
    EXPECT_NE(complaint(position, 0).find("is of another history"), std::string::npos);
}

// --- Files that were put there, or taken away.

TEST_F(LocalLogTest, TwoFilesOfOneSerialNumberAreRefused) {
  append_durable(*open(), 100);
  fs::copy_file(files().at(0), directory_ / "jobs-9.data");
  expect_complaint("two files with the serial number 2");
}

// A directory and its copy each go on. A file of the one has the next serial number of the other.
TEST_F(LocalLogTest, ASegmentOfACopyIsRefused) {
  append_durable(*open(), 100);
  const TemporaryDirectory elsewhere;
  const std::string copy = elsewhere / "copy";
  fs::copy(directory_.path(), copy);
  {
    const base::Directory held(copy);
    LocalLog other(held, kIdentity, {.segment_bytes = kSegment});
    other.read({}, [](LogNumber, std::string_view) {});
    for (int n = 0; n < 2; ++n) {
      append(other, kSegment / 2 + 100);
      other.sync();
    }
  }
  append_durable(*open(), kSegment / 2 + 100);
  fs::copy_file(copy + "/jobs-4.data", directory_ / "jobs-4.data");
  expect_complaint("jobs-4.data with 4: one of the two is of another time, or of a copy");
  // Also if newest.data was copied, too.
  const auto replace = fs::copy_options::overwrite_existing;
  fs::copy_file(copy + "/newest.data", directory_ / "newest.data", replace);
  expect_complaint("jobs-4.data does not follow jobs-3.data: it is of a copy");
}

TEST_F(LocalLogTest, ASecondLogIsNotMadeBesideOneWithChanges) {
  open();
  LocalLog::make(held_, kIdentity + 1, {});  // the first start died before the state was made
  LocalLog::make(held_, kIdentity, {});
  auto log = open();
  append_durable(*log, 100);
  EXPECT_THROW(LocalLog::make(held_, kIdentity, {}), StoreError);
}

TEST_F(LocalLogTest, AHeaderThatIsDamagedIsRefusedAndTheFileStays) {
  append_durable(*open(), 100);
  for (std::size_t at = 0; at < 80; ++at) {
    flip(files().at(0), at);
    ASSERT_NE(complaint(), "") << at;
    ASSERT_EQ(files().size(), 1U);
    flip(files().at(0), at);
  }
  blank(files().at(0), 0, kBlock);
  expect_complaint("is damaged: its header is broken");
  ASSERT_EQ(files().size(), 1U);
}

TEST_F(LocalLogTest, ChangesBeforeAnEmptySegmentMustBeThere) {
  auto log = open();
  append_durable(*log, kSegment * 3 / 4);
  append_durable(*log, kSegment * 3 / 4);
  log.reset();
  blank(files().at(1), kBlock, kSegment - kBlock);  // its header says: change 1 was durable
  fs::remove(files().at(0));
  expect_complaint("change 1, which was durable, is missing");
}

TEST_F(LocalLogTest, AWindowOfManyChangesIsWrittenInPiecesThatFitASegment) {
  auto log = open();
  for (int n = 0; n < 100; ++n) append(*log, kBlock);
  log->sync();
  for (const fs::path& file : files()) EXPECT_EQ(fs::file_size(file), kSegment);
  open();
  expect_found(1, 100);
}

TEST_F(LocalLogTest, ASegmentThatIsMissingIsRefused) {
  append_durable(*open(), kSegment * 3 / 4, 3);
  ASSERT_EQ(files().size(), 3U);
  fs::remove(files().at(1));
  expect_complaint("change 2, which was durable, is missing");
}

// A segment gets its name when it has all its bytes.
TEST_F(LocalLogTest, ASegmentThatIsCutShortIsRefusedAndStays) {
  append_durable(*open(), 100, 3);
  const std::string bytes = contents(files().at(0));
  for (const std::size_t size : {0UL, 1UL, 79UL, 80UL, kBlock + 1, 2 * kBlock + 7, kSegment - 1}) {
    write(files().at(0), bytes.substr(0, size));
    EXPECT_NE(complaint().find("has been cut short"), std::string::npos) << size << complaint();
    ASSERT_EQ(files().size(), 1U);
  }
}

TEST_F(LocalLogTest, APipeInThePlaceOfASegmentIsRefusedAndNotWaitedFor) {
  open()->sync();
  ASSERT_EQ(::mkfifo((directory_ / LogSegment::name_of(99)).c_str(), 0600), 0);
  expect_complaint("cannot be read");
}

TEST_F(LocalLogTest, ASegmentWhoseMakingWasInterruptedIsRemoved) {
  open();
  write(directory_.path() / "jobs-2.data.new", std::string(2 * kBlock, '\0'));
  EXPECT_EQ(complaint(), "");
  EXPECT_TRUE(files().empty());
}

TEST_F(LocalLogTest, ALogThatIsBehindItsStateIsRefused) {
  auto log = open();
  for (int n = 0; n < 3; ++n) append(*log, 100);
  log->sync();
  log.reset();
  EXPECT_EQ(complaint(3), "");
  expect_complaint("it ends at change 3, and the state has change 4", 4);
}

TEST_F(LocalLogTest, TheLogOfAnotherDirectoryIsRefused) {
  LocalLog::make(held_, kIdentity + 1, {});
  expect_complaint("does not belong to this data directory");
}

TEST_F(LocalLogTest, BytesOfAClientThatLookLikeARecordAreNotOne) {
  auto log = open();
  append_durable(*log, 100);
  const std::string record = contents(files().at(0)).substr(kBlock, kBlock);
  const std::string body = std::string(kBlock - sizeof(LogRecordHead) - 4, '.') + record;
  log->append(body, [](LogNumber) {});
  log->sync();
  log.reset();
  blank(files().at(0), 2 * kBlock, 512);  // so that reading searches for records behind it
  open();
  expect_found(1, 1);
}

// --- A file that fails, while two threads write.

// Both threads write windows, and the file fails for a moment only. What comes after the failed
// write would be written well, but behind a hole.
TEST_F(LocalLogTest, AfterAFailedWriteNoThreadWritesBehindTheHole) {
  std::mt19937_64 random(seed_or(std::random_device{}()));
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    remove_all_files();
    const LogWrites writes = round % 2 == 0 ? LogWrites::kDurable : LogWrites::kBuffered;
    LocalLog::make(held_, kIdentity, {});
    LocalLog log(held_, kIdentity, {.segment_bytes = 16 << 20, .writes = writes});
    log.read({}, [](LogNumber, std::string_view) {});
    append(log, 100);
    std::atomic<LogNumber> durable = log.sync();
    std::atomic<bool> stop = false;
    std::atomic<int> failed = 0;
    const auto until_it_fails = [&](bool appends) {
      try {
        while (!stop) {
          if (appends) append(log, 200);
          const LogNumber now = log.sync();
          for (LogNumber seen = durable; seen < now && !durable.compare_exchange_weak(seen, now);) {
          }
        }
      } catch (const StoreError&) {
        ++failed;
      }
    };
    std::thread appending(until_it_fails, true);
    std::thread syncing(until_it_fails, false);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5'000));
    {
      const BrokenLog broken;
      while (log.failure().empty()) std::this_thread::yield();
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (failed < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    stop = true;
    appending.join();
    syncing.join();
    EXPECT_EQ(failed, 2);
    EXPECT_THROW(log.sync(), StoreError);
    EXPECT_THROW(log.write(), StoreError);
    EXPECT_THROW(append(log, 100), StoreError);
    const auto again = open(0, writes);
    EXPECT_GE(again->last(), durable);
    EXPECT_LE(again->last(), log.last());
    expect_found(1, again->last());
  }
}

}  // namespace
}  // namespace carillon::queue
