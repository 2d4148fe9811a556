// The log in files: what was synced is read again, whatever else the files have been through.
// local_log_damage_test.cpp has crashes and damage.

#include "queue/store/log/local_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "carillon/queue/store.h"
#include "queue/local_log_fixture.h"
#include "queue/seed.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

TEST_F(LocalLogTest, ANewLogIsEmptyAndHasASmallFile) {
  const auto log = open();
  EXPECT_EQ(log->last(), 0U);
  EXPECT_EQ(log->sync(), 0U);
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(fs::file_size(directory_ / "jobs-1.data"), kBlock);
}

TEST_F(LocalLogTest, WhatWasSyncedIsReadAgainInOrder) {
  auto log = open();
  for (int n = 0; n < 3; ++n) append(*log, 100);
  EXPECT_EQ(log->sync(), 3U);
  for (int n = 0; n < 2; ++n) append(*log, 5'000);
  EXPECT_EQ(log->sync(), 5U);
  log.reset();
  log = open();
  expect_found(1, 5);
  EXPECT_EQ(append(*log, 10), 6U) << "numbers go on";
}

TEST_F(LocalLogTest, WhatWasNotSyncedIsNotThere) {
  auto log = open();
  append_durable(*log, 100);
  append(*log, 100);
  log.reset();
  open();
  expect_found(1, 1);
}

TEST_F(LocalLogTest, ReadingBeginsBehindTheNumberGiven) {
  auto log = open();
  for (int n = 0; n < 3; ++n) append(*log, 100);
  log->sync();
  append_durable(*log, 100);
  log.reset();
  log = open(2);  // in the middle of a window
  expect_found(3, 4);
  log = open(4);
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(append(*log, 10), 5U);
}

TEST_F(LocalLogTest, AChangeMayBeEmpty) {
  auto log = open();
  log->append("", [](LogNumber) {});
  log->sync();
  open();
  ASSERT_EQ(found_.size(), 1U);
  EXPECT_EQ(found_[0].second, "");
}

TEST_F(LocalLogTest, AChangeMayBeLargerThanASegment) {
  auto log = open();
  append(*log, 100);
  append(*log, 10 * kSegment + 1);
  EXPECT_EQ(log->sync(), 2U);
  append_durable(*log, 100);
  open();
  expect_found(1, 3);
}

TEST_F(LocalLogTest, ASegmentWhoseChangesWereTrimmedIsUsedAgain) {
  auto log = open();
  std::size_t most = 0;
  for (int n = 0; n < 500; ++n) {
    append_durable(*log, 2 * kBlock);
    if (n % 20 == 19) log->trim({.number = log->last()});
    most = std::max(most, files().size());
  }
  EXPECT_LE(most, 7U) << "500 records of 3 blocks each, of which 20 are needed at a time";
  open(log->last() - 1);
  expect_found(500, 500);
}

TEST_F(LocalLogTest, GivesBackTheSegmentsThatAreFree) {
  auto log = open();
  append_durable(*log, 2 * kBlock, 100);
  log->trim({.number = log->last()});
  EXPECT_GT(files().size(), 10U);
  log->give_back();
  EXPECT_LE(files().size(), 3U) << "the one that is open, and one or two free ones";
  append_durable(*log, 2 * kBlock);
  open(100);
  expect_found(101, 101);
}

// A change that was appended counts on a free segment in which it has room.
TEST_F(LocalLogTest, ASegmentThatAnAppendNeedsIsNotGivenBack) {
  auto log = open();
  for (LogNumber number = 1; number <= 200; ++number) {
    append(*log, 2 * kBlock);
    log->give_back();
    log->sync();
    log->give_back();
    if (number % 20 == 0) log->trim({.number = number});
  }
  open(180);
  expect_found(181, 200);
}

TEST_F(LocalLogTest, ASegmentOfItsOwnSizeIsDeletedWhenItWasTrimmed) {
  auto log = open();
  append_durable(*log, 10 * kSegment);
  append_durable(*log, kSegment / 2);
  EXPECT_EQ(files().size(), 2U);
  log->trim({.number = log->last()});
  for (const fs::path& file : files()) {
    // The log's thread makes the next segment, and renames it then.
    if (file.extension() == ".new") continue;
    EXPECT_EQ(fs::file_size(file), kSegment);
  }
}

TEST_F(LocalLogTest, AChangeThatCannotBeAppliedIsNotAppended) {
  auto log = open();
  append(*log, 100);
  const auto fail = [](LogNumber number) {
    EXPECT_EQ(number, 2U);
    throw StoreError("no");
  };
  EXPECT_THROW(log->append("lost", fail), StoreError);
  EXPECT_EQ(log->last(), 1U);
  append_durable(*log, 100);
  open();
  expect_found(1, 2);
}

TEST_F(LocalLogTest, AFullLogRefusesWithoutHavingChanged) {
  auto log = open();
  LogNumber last = 0;
  try {
    while (true) {
      last = append(*log, kSegment / 2);
      log->sync();
    }
  } catch (const StoreError& error) {
    EXPECT_NE(std::string(error.what()).find("is full"), std::string::npos) << error.what();
  }
  EXPECT_EQ(log->last(), last);
  EXPECT_EQ(log->sync(), last) << "it is refused, not broken";
  log->trim({.number = last});
  EXPECT_EQ(append(*log, kSegment / 2), last + 1);
  EXPECT_EQ(log->sync(), last + 1);
}

TEST_F(LocalLogTest, ALogThatWasReadGoesOnInANewSegment) {
  for (LogNumber life = 1; life <= 40; ++life) {
    auto log = open();
    if (life > 1) expect_found(1, life - 1);
    append_durable(*log, 100);
  }
}

// --- Whole histories.

// A plain model: a map from numbers to changes, of which a crash keeps those that were durable, and
// perhaps more of them, from the front.
TEST_F(LocalLogTest, RandomHistoriesWithCrashesKeepWhatWasDurable) {
  std::mt19937_64 random(seed_or(std::random_device{}()));
  for (int history = 0; history < 8; ++history) {
    remove_all_files();
    const LogWrites writes = history % 2 == 0 ? LogWrites::kDurable : LogWrites::kBuffered;
    LogNumber trimmed = 0;
    LogNumber durable = 0;
    std::map<LogNumber, std::size_t> sizes;
    for (int life = 0; life < 4; ++life) {
      auto log = open(trimmed, writes);
      ASSERT_GE(log->last(), durable);
      ASSERT_EQ(found_.size(), log->last() - trimmed);
      for (const auto& [number, change] : found_) ASSERT_EQ(change, text(number, sizes[number]));
      for (int step = 0; step < 150; ++step) {
        switch (random() % 8) {
          case 0:
            durable = log->sync();
            ASSERT_EQ(durable, log->last());
            break;
          case 1:
            log->write();
            if (writes == LogWrites::kDurable) durable = log->last();
            break;
          case 2:
            if (random() % 4 != 0) break;
            trimmed = durable;
            log->trim({.number = trimmed});
            if (random() % 2 == 0) log->give_back();
            break;
          default: {
            const std::size_t size =
                random() % 50 == 0 ? random() % (2 * kSegment) : 20 + random() % 600;
            const LogNumber number = append(*log, size);
            sizes[number] = text(number, size).size();
          }
        }
      }
    }
  }
}

TEST_F(LocalLogTest, OneThreadAppendsWhileAnotherSyncs) {
  constexpr LogNumber kChanges = 5'000;
  auto log = open();
  std::atomic<LogNumber> durable = 0;
  std::thread syncing([&] {
    while (durable < kChanges) durable = log->sync();
  });
  for (LogNumber n = 0; n < kChanges; ++n) {
    append(*log, 20 + n % 700);
    if (n % 500 == 0) log->trim({.number = durable});
  }
  syncing.join();
  const LogNumber last = log->last();
  log.reset();
  open(kChanges - 10);
  expect_found(kChanges - 9, last);
}

}  // namespace
}  // namespace carillon::queue
