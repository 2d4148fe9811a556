// The log in files: what was synced is read again, whatever else the files have been through; what
// a crash may lose is left out, whole; what must not be missing is refused.

#include "queue/store/local_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/file_bytes.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kIdentity = 0x0123'4567'89ab'cdef;
constexpr std::size_t kBlock = LogSegment::kBlock;
constexpr std::size_t kSegment = 16 * kBlock;

std::string text(LogNumber number, std::size_t size) {
  std::string text = "change " + std::to_string(number) + " ";
  text.resize(std::max(size, text.size()), static_cast<char>('a' + number % 26));
  return text;
}

class LocalLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalLog> open(LogNumber after = 0, LogWrites writes = LogWrites::kDurable) {
    const LocalLogOptions options{
        .segment_bytes = kSegment, .most_bytes = 64 * kSegment, .writes = writes};
    auto log = std::make_unique<LocalLog>(directory_.path().string(), kIdentity, after, options);
    found_.clear();
    log->read(after, [this](LogNumber number, std::string_view change) {
      found_.emplace_back(number, change);
    });
    return log;
  }

  std::string complaint(LogNumber after = 0) {
    try {
      open(after);
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  }

  static LogNumber append(LocalLog& log, std::size_t size) {
    const std::string change = text(log.last() + 1, size);
    return log.append(change, [](LogNumber) {});
  }

  // Each change that was found is as append() made it, and they have the numbers first to last.
  void expect_found(LogNumber first, LogNumber last) {
    ASSERT_EQ(found_.size(), last - first + 1);
    for (const auto& [number, change] : found_) {
      ASSERT_EQ(number, first++);
      ASSERT_EQ(change, text(number, change.size()));
    }
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(directory_.path())) files.push_back(entry);
    std::sort(files.begin(), files.end());
    return files;
  }

  static void put(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  TemporaryDirectory directory_;
  std::vector<std::pair<LogNumber, std::string>> found_;
};

TEST_F(LocalLogTest, ANewLogIsEmptyAndHasNoFile) {
  const auto log = open();
  EXPECT_EQ(log->last(), 0U);
  EXPECT_EQ(log->sync(), 0U);
  EXPECT_TRUE(files().empty());
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
  append(*log, 100);
  log->sync();
  append(*log, 100);
  log.reset();
  open();
  expect_found(1, 1);
}

TEST_F(LocalLogTest, ReadingBeginsBehindTheNumberGiven) {
  auto log = open();
  for (int n = 0; n < 3; ++n) append(*log, 100);
  log->sync();
  append(*log, 100);
  log->sync();
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
  append(*log, 100);
  log->sync();
  open();
  expect_found(1, 3);
}

TEST_F(LocalLogTest, ASegmentWhoseChangesWereTrimmedIsUsedAgain) {
  auto log = open();
  std::size_t most = 0;
  for (int n = 0; n < 500; ++n) {
    append(*log, 2 * kBlock);
    log->sync();
    if (n % 20 == 19) log->trim(log->last());
    most = std::max(most, files().size());
  }
  EXPECT_LE(most, 7U) << "500 records of 3 blocks each, of which 20 are needed at a time";
  open(log->last() - 1);
  expect_found(500, 500);
}

TEST_F(LocalLogTest, ASegmentOfItsOwnSizeIsDeletedWhenItWasTrimmed) {
  auto log = open();
  append(*log, 10 * kSegment);
  log->sync();
  append(*log, kSegment / 2);
  log->sync();
  EXPECT_EQ(files().size(), 2U);
  log->trim(log->last());
  EXPECT_EQ(files().size(), 1U);
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
  append(*log, 100);
  log->sync();
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
  log->trim(last);
  EXPECT_EQ(append(*log, kSegment / 2), last + 1);
  EXPECT_EQ(log->sync(), last + 1);
}

TEST_F(LocalLogTest, ALogThatWasReadGoesOnInANewSegment) {
  for (LogNumber life = 1; life <= 40; ++life) {
    auto log = open();
    if (life > 1) expect_found(1, life - 1);
    append(*log, 100);
    log->sync();
  }
}

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
  EXPECT_GT(log->left_out(), 0U);
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
  put(files().at(1), std::string(kSegment, '\0'));  // it was made, and not begun
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
    LocalLog other(directory_.path().string(), kIdentity + 1, 0, {.segment_bytes = kSegment});
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

// --- Whole histories.

// A plain model: a map from numbers to changes, of which a crash keeps those that were durable, and
// perhaps more of them, from the front.
TEST_F(LocalLogTest, RandomHistoriesWithCrashesKeepWhatWasDurable) {
  std::mt19937_64 random(seed_or(std::random_device{}()));
  for (int history = 0; history < 8; ++history) {
    for (const fs::path& file : files()) fs::remove(file);
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
            log->trim(trimmed);
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
    if (n % 500 == 0) log->trim(durable);
  }
  syncing.join();
  const LogNumber last = log->last();
  log.reset();
  open(kChanges - 10);
  expect_found(kChanges - 9, last);
}

}  // namespace
}  // namespace carillon::queue
