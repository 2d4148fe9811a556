// The log after crashes, and with damaged files: what a crash may lose is left out, whole; what
// must not be missing is refused.

#include <gtest/gtest.h>

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
  append(*log, 100);
  log->sync();
  for (int n = 0; n < 30; ++n) append(*log, 300);
  log->sync();
  log.reset();
  const fs::path file = files().at(0);
  const std::string bytes = contents(file);
  const std::size_t second = 2 * kBlock;
  for (std::size_t kept = second; kept < second + 9'000; kept += 512) {
    std::string cut = bytes;
    std::fill(cut.begin() + static_cast<std::ptrdiff_t>(kept), cut.end(), '\0');
    put(file, cut);
    open();
    expect_found(1, 1);
  }
}

TEST_F(LocalLogTest, WhatACrashLeftBehindTheEndIsNeverTakenForARecord) {
  auto log = open(0, LogWrites::kBuffered);
  append(*log, 100);
  log->sync();
  for (int n = 0; n < 3; ++n) {  // three records that may reach the disk in any order
    append(*log, 100);
    log->write();
  }
  log.reset();
  const fs::path file = files().at(0);
  std::string bytes = contents(file);
  std::fill_n(bytes.begin() + 2 * kBlock, kBlock, '\0');  // the first of them did not
  put(file, bytes);
  log = open();
  expect_found(1, 1);
  for (LogNumber number = 2; number <= 6; ++number) {
    append(*log, 100);
    log->sync();
    auto again = open();
    expect_found(1, number);
    log = std::move(again);
  }
}

TEST_F(LocalLogTest, AHeaderThatWasCutShortIsAnEmptySegment) {
  auto log = open();
  append(*log, kSegment / 2);
  log->sync();
  append(*log, kSegment * 3 / 4);
  log->sync();
  log.reset();
  ASSERT_EQ(files().size(), 2U);
  LogSegment::make(files().at(1), kIdentity, kSegment / kBlock, LogWrites::kDurable);  // not begun
  log = open();
  expect_found(1, 1);
  EXPECT_EQ(append(*log, 100), 2U);
}

// --- Damage.

TEST_F(LocalLogTest, ADurableChangeThatIsMissingIsRefused) {
  auto log = open();
  for (int n = 0; n < 3; ++n) {
    append(*log, 100);
    log->sync();
  }
  log.reset();
  const fs::path file = files().at(0);
  std::string bytes = contents(file);
  bytes[2 * kBlock + 50] ^= 1;  // the record of change 2; that of change 3 says it was durable
  put(file, bytes);
  EXPECT_NE(complaint().find("change 2, which was durable, is missing"), std::string::npos)
      << complaint();
  EXPECT_EQ(complaint(2), "") << "it is not needed any more";
  expect_found(3, 3);
}

// The exception: no later record says that the last one was durable.
TEST_F(LocalLogTest, DamageToWhatWasSyncedLastPassesForACrash) {
  auto log = open();
  for (int n = 0; n < 3; ++n) {
    append(*log, 100);
    log->sync();
  }
  log.reset();
  std::string bytes = contents(files().at(0));
  bytes[3 * kBlock + 50] ^= 1;
  put(files().at(0), bytes);
  open();
  expect_found(1, 2);
}

TEST_F(LocalLogTest, AHeaderThatIsDamagedIsRefusedAndTheFileStays) {
  auto log = open();
  append(*log, 100);
  log->sync();
  log.reset();
  const std::string bytes = contents(files().at(0));
  for (std::size_t at = 0; at < 56; ++at) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    put(files().at(0), damaged);
    ASSERT_NE(complaint(), "") << at;
    ASSERT_EQ(files().size(), 1U);
  }
}

TEST_F(LocalLogTest, ChangesBeforeAnEmptySegmentMustBeThere) {
  auto log = open();
  append(*log, kSegment * 3 / 4);
  log->sync();
  append(*log, kSegment * 3 / 4);
  log->sync();
  log.reset();
  std::string bytes = contents(files().at(1));
  std::fill(bytes.begin() + kBlock, bytes.end(), '\0');  // its header says: change 1 was durable
  put(files().at(1), bytes);
  fs::remove(files().at(0));
  EXPECT_NE(complaint().find("change 1, which was durable, is missing"), std::string::npos)
      << complaint();
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
  auto log = open();
  for (int n = 0; n < 3; ++n) {
    append(*log, kSegment * 3 / 4);
    log->sync();
  }
  log.reset();
  ASSERT_EQ(files().size(), 3U);
  fs::remove(files().at(1));
  EXPECT_NE(complaint().find("change 2, which was durable, is missing"), std::string::npos)
      << complaint();
}

// A segment gets its name when it has all its bytes.
TEST_F(LocalLogTest, ASegmentThatIsCutShortIsRefusedAndStays) {
  auto log = open();
  for (int n = 0; n < 3; ++n) {
    append(*log, 100);
    log->sync();
  }
  log.reset();
  const std::string bytes = contents(files().at(0));
  for (const std::size_t size : {0UL, 1UL, 55UL, 56UL, kBlock, 2 * kBlock + 7, kSegment - 1}) {
    put(files().at(0), bytes.substr(0, size));
    EXPECT_NE(complaint().find("has been cut short"), std::string::npos) << size << complaint();
    ASSERT_EQ(files().size(), 1U);
  }
}

TEST_F(LocalLogTest, ASegmentWithoutItsHeaderIsRefusedAndStays) {
  auto log = open();
  append(*log, 100);
  log->sync();
  log.reset();
  std::string bytes = contents(files().at(0));
  std::fill_n(bytes.begin(), kBlock, '\0');
  put(files().at(0), bytes);
  EXPECT_NE(complaint().find("is damaged: its header is broken"), std::string::npos) << complaint();
  ASSERT_EQ(files().size(), 1U);
}

TEST_F(LocalLogTest, ASegmentWhoseMakingWasInterruptedIsRemoved) {
  put(directory_.path() / "log-1.new", std::string(kBlock, '\0'));
  EXPECT_EQ(complaint(), "");
  EXPECT_TRUE(files().empty());
}

TEST_F(LocalLogTest, ALogThatIsBehindItsStateIsRefused) {
  auto log = open();
  for (int n = 0; n < 3; ++n) append(*log, 100);
  log->sync();
  log.reset();
  EXPECT_EQ(complaint(3), "");
  EXPECT_NE(complaint(4).find("it ends at change 3, and the state has change 4"), std::string::npos)
      << complaint(4);
  for (const fs::path& file : files()) fs::remove(file);
  EXPECT_NE(complaint(3).find("it ends at change 0"), std::string::npos) << complaint(3);
}

TEST_F(LocalLogTest, TheLogOfAnotherDirectoryIsRefused) {
  {
    LocalLog other(directory_.path().string(), kIdentity + 1, {.segment_bytes = kSegment});
    append(other, 100);
    other.sync();
  }
  EXPECT_NE(complaint().find("does not belong to this data directory"), std::string::npos)
      << complaint();
}

TEST_F(LocalLogTest, BytesOfAClientThatLookLikeARecordAreNone) {
  auto log = open();
  append(*log, 100);
  log->sync();
  const std::string record = contents(files().at(0)).substr(kBlock, kBlock);
  const std::string body = std::string(kBlock - sizeof(LogRecordHead) - 4, '.') + record;
  log->append(body, [](LogNumber) {});
  log->sync();
  log.reset();
  std::string bytes = contents(files().at(0));
  bytes[2 * kBlock + 50] ^= 1;  // so that reading looks for records within it
  put(files().at(0), bytes);
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
    for (const fs::path& file : files()) fs::remove(file);
    const LogWrites writes = round % 2 == 0 ? LogWrites::kDurable : LogWrites::kBuffered;
    LocalLog log(directory_.path().string(), kIdentity,
                 {.segment_bytes = 16 << 20, .writes = writes});
    log.read(0, [](LogNumber, std::string_view) {});
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
