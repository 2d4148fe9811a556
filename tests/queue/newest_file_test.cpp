// The newest segment of a log: a start notices if it is gone, or of a copy of the directory, and a
// crash at any moment leaves a log that starts.

#include "queue/store/log/newest_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/file_bytes.h"
#include "queue/local_log_fixture.h"
#include "queue/seed.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;

Files files_of(const fs::path& directory) {
  Files files;
  for (const auto& file : fs::directory_iterator(directory))
    files[file.path().filename()] = contents(file.path());
  return files;
}

class NewestFileTest : public LocalLogTest {
 protected:
  fs::path newest() const { return directory_ / NewestFile::kName; }

  // Each change fills most of a segment.
  static void append_segments(LocalLog& log, int count) {
    append_durable(log, kSegment * 3 / 4, count);
  }

  // Returns why a start is refused, and expects that it changes nothing and names the way out.
  std::string refused() {
    const Files before = files_of(directory_.path());
    std::string why = complaint();
    EXPECT_NE(why, "") << "it was not refused";
    EXPECT_TRUE(files_of(directory_.path()) == before) << why;
    EXPECT_NE(why.find("; carillon check --data " + directory_.path().string() +
                       " --salvage NEW saves what is whole"),
              std::string::npos)
        << why;
    return why;
  }
  void expect_refused(const std::string& what) {
    const std::string why = refused();
    EXPECT_NE(why.find(what), std::string::npos) << why;
  }

  // The log is copied, and both append as much behind that.
  void append_beside_copy(const fs::path& copy) {
    append_segments(*open(), 1);
    fs::copy(directory_.path(), copy);
    append_segments(*open(), 1);
    const base::Directory held(copy.string());
    LocalLog other(held, kIdentity, {.segment_bytes = kSegment});
    other.read({}, [](LogNumber, std::string_view) {});
    append_segments(other, 1);
  }

  void make_unused_segment() {
    LogSegment::make(held_, LogSegment::name_of(99), kIdentity, kSegment / kBlock,
                     LogWrites::kDurable);
  }
};

TEST_F(NewestFileTest, AMissingNewestSegmentIsNoticed) {
  append_segments(*open(), 2);
  make_unused_segment();
  const std::string bytes = contents(files().at(1));
  fs::remove(files().at(1));
  expect_refused("the log's newest file is gone: " + newest().string() +
                 " says that it is jobs-3.data with the serial number 3, and the last one there "
                 "is jobs-2.data with 2");
  write(directory_ / "jobs-3.data", bytes);
  open();
  expect_found(1, 2);
}

// A log without any change has a segment, too.
TEST_F(NewestFileTest, AMissingFirstSegmentIsNoticed) {
  open();
  make_unused_segment();
  fs::remove(directory_ / "jobs-1.data");
  expect_complaint("is gone: there is no file jobs-N.data");
}

TEST_F(NewestFileTest, TheNewestSegmentOfACopyThatHasTakenAsManyChangesIsRefused) {
  const TemporaryDirectory elsewhere;
  const fs::path copy = elsewhere / "copy";
  append_beside_copy(copy);
  const std::string ours = contents(directory_ / "jobs-3.data");
  const std::string others = contents(copy / "jobs-3.data");
  write(directory_ / "jobs-3.data", others);
  expect_refused("the log's newest file " + (directory_ / "jobs-3.data") +
                 " is of a copy of this directory, or of another time: it has the serial number 3");
  write(directory_ / "jobs-3.data", ours);
  EXPECT_EQ(complaint(), "");
  write(copy / "jobs-3.data", ours);
  const base::Directory held(copy.string());
  LocalLog other(held, kIdentity, {.segment_bytes = kSegment});
  EXPECT_THROW(other.read({}, [](LogNumber, std::string_view) {}), StoreError);
  write(copy / "jobs-3.data", others);
  LocalLog again(held, kIdentity, {.segment_bytes = kSegment});
  again.read({}, [](LogNumber, std::string_view) {});
  EXPECT_EQ(again.last(), 2U) << "a copy serves";
}

// All of them: what the names have in common does not fit newest.data.
TEST_F(NewestFileTest, AllSegmentsOfACopyAreRefused) {
  const TemporaryDirectory elsewhere;
  const fs::path copy = elsewhere / "copy";
  append_beside_copy(copy);
  for (const auto& [name, bytes] : files_of(copy)) {
    if (name.starts_with("jobs-")) write(directory_ / name, bytes);
  }
  expect_refused("is of a copy of this directory, or of another time");
}

TEST_F(NewestFileTest, ItMustBeThereWholeAndOfThisLog) {
  append_segments(*open(), 1);
  const std::string bytes = contents(newest());
  ASSERT_EQ(bytes.size(), kBlock);
  for (std::size_t at = 0; at < 64; ++at) {
    flip(newest(), at, static_cast<int>(at % 8));
    expect_refused("is damaged: its checksum is wrong");
    write(newest(), bytes);
  }
  write(newest(), bytes.substr(0, 63));
  expect_refused("has been cut short");
  write(newest(), "");
  expect_refused("has been cut short");
  write(newest(), std::string(kBlock, '\0'));
  expect_refused("is damaged");
  fs::remove(newest());
  expect_refused("newest.data is gone, which says which file of the log is the newest");
  fs::create_directory(newest());
  expect_complaint("newest.data cannot be read: Is a directory");
  fs::remove(newest());
  NewestFile::make(held_, kIdentity + 1, {.life = 1, .serial = 2, .number = 2});
  expect_refused("newest.data does not belong to this data directory");
  write(newest(), bytes);
  EXPECT_EQ(complaint(), "");
}

TEST_F(NewestFileTest, OneOfAnEarlierTimeIsRefused) {
  auto log = open();
  append_segments(*log, 1);
  const std::string earlier = contents(newest());
  append_segments(*log, 1);
  log.reset();
  write(newest(), earlier);
  expect_refused(
      "says that it is jobs-2.data with the serial number 2, and there is jobs-3.data "
      "with 3: one of the two is of another time");
}

// It is written between the header of a segment and its first record.
TEST_F(NewestFileTest, ACrashBeforeItIsWrittenIsHarmless) {
  for (const LogWrites writes : {LogWrites::kDurable, LogWrites::kBuffered}) {
    remove_all_files();
    append_segments(*open(0, writes), 1);
    const std::string before = contents(newest());
    std::string name;
    for (int crash = 0; crash < 3; ++crash) {
      {
        auto log = open(0, writes);
        expect_found(1, 1);
        append_segments(*log, 1);
        name = files().back();
      }
      blank(name, kBlock, kSegment - kBlock);
      write(newest(), before);
    }
    auto log = open(0, writes);
    expect_found(1, 1);
    append_segments(*log, 2);
    log.reset();
    open(0, writes);
    expect_found(1, 3);
  }
}

// And here it is written, and the record is not.
TEST_F(NewestFileTest, ACrashAfterItIsWrittenIsHarmless) {
  append_segments(*open(), 2);
  blank(files().back(), kBlock, kSegment - kBlock);
  auto log = open();
  expect_found(1, 1);
  append_segments(*log, 1);
  log.reset();
  open();
  expect_found(1, 2);
}

// --- Logs at random, against a model.

// A log, and a copy of it that has gone on since: each starts after any crash, with all that was
// synced, and without any file that it needs, or with the newest one of the other, it does not.
class RandomLog : public NewestFileTest {
 protected:
  struct Side {
    explicit Side(const fs::path& at) : path(at), held(at.string()) {}

    fs::path path;
    base::Directory held;
    std::unique_ptr<LocalLog> log;
    LogNumber durable = 0;
    LogNumber trimmed = 0;
    LogWrites writes = LogWrites::kDurable;
  };

  void open_side(Side& side) {
    side.writes = random_() % 2 == 0 ? LogWrites::kDurable : LogWrites::kBuffered;
    side.log = std::make_unique<LocalLog>(
        side.held, kIdentity, LocalLogOptions{.segment_bytes = kSegment, .writes = side.writes});
    LogNumber next = side.trimmed + 1;
    side.log->read({.number = side.trimmed}, [&](LogNumber number, std::string_view change) {
      ASSERT_EQ(number, next++);
      ASSERT_EQ(change, text(number, change.size()));
    });
    ASSERT_GE(side.log->last(), side.durable);
    side.durable = side.log->last();
  }

  void act(Side& side) {
    LocalLog& log = *side.log;
    switch (random_() % 8) {
      case 0:
        log.write();
        break;
      case 1:
      case 2:
        side.durable = log.sync();
        break;
      case 3:
        if (side.durable == side.trimmed) break;
        side.trimmed += random_() % (side.durable - side.trimmed + 1);
        log.trim({.number = side.trimmed});
        break;
      default:
        append(log, random_() % (kSegment / 2));
    }
  }

  // What a start in a directory with these files says.
  static std::string start(const Files& files, const Side& side) {
    const TemporaryDirectory at;
    for (const auto& [name, bytes] : files) write(at.path() / name, bytes);
    const base::Directory held(at.path().string());
    try {
      LocalLog log(held, kIdentity, {.segment_bytes = kSegment});
      log.read({.number = side.trimmed}, [](LogNumber, std::string_view) {});
      return log.last() < side.durable ? "lost" : "";
    } catch (const StoreError& why) {
      return why.what();
    }
  }

  void expect_that_each_file_is_needed(const Side& side) {
    const Files files = files_of(side.path);
    ASSERT_EQ(start(files, side), "");
    std::map<std::uint64_t, LogSegment> segments;
    for (const auto& [name, bytes] : files) {
      if (!LogSegment::number_of(name)) continue;
      LogSegment segment = LogSegment::open(side.held, name, LogWrites::kDurable);
      if (segment.serial() > 0) segments.emplace(segment.serial(), std::move(segment));
    }
    for (auto at = segments.begin(); at != segments.end(); ++at) {
      const auto next = std::next(at);
      const bool is_needed = next == segments.end() || next->second.first() > side.trimmed + 1;
      Files without = files;
      without.erase(at->second.name());
      const std::string why = start(without, side);
      EXPECT_EQ(!why.empty() && why != "lost", is_needed) << at->second.name() << ": " << why;
      (is_needed ? needed_ : not_needed_) += 1;
    }
    Files without = files;
    without.erase(NewestFile::kName);
    EXPECT_NE(start(without, side).find("newest.data is gone"), std::string::npos);
  }

  void expect_that_the_newest_of_another_is_refused(const Side& side, const Side& other) {
    const auto newest = NewestFile::read(side.held, kIdentity);
    const auto others = NewestFile::read(other.held, kIdentity);
    if (newest.serial != others.serial || newest.life == others.life) return;
    Files files = files_of(side.path);
    files[LogSegment::name_of(newest.number)] =
        contents(other.path / LogSegment::name_of(others.number));
    EXPECT_NE(start(files, side).find("is of a copy of this directory"), std::string::npos);
    ++exchanged_;
  }

  static constexpr std::uint64_t kSeed = 20'261'128;
  const std::uint64_t seed_ = seed_or(kSeed);
  std::mt19937_64 random_{seed_};
  int needed_ = 0;
  int not_needed_ = 0;
  int exchanged_ = 0;
};

TEST_F(RandomLog, StartsAfterACrashAndNotWithoutAFileThatItNeeds) {
  for (int history = 0; history < 5 && !HasFailure(); ++history) {
    const TemporaryDirectory at;
    fs::create_directory(at / "origin");
    Side origin(at / "origin");
    LocalLog::make(origin.held, kIdentity, {});
    open_side(origin);
    for (std::uint64_t n = random_() % 30; n > 0; --n) act(origin);
    origin.durable = origin.log->sync();
    origin.log.reset();
    fs::copy(at / "origin", at / "copy");
    Side copy(at / "copy");
    copy.durable = origin.durable;
    copy.trimmed = origin.trimmed;
    for (int life = 0; life < 5 && !HasFailure(); ++life) {
      for (Side* side : {&origin, &copy}) {
        SCOPED_TRACE("history " + std::to_string(history) + ", life " + std::to_string(life));
        open_side(*side);
        if (HasFailure()) return;
        for (std::uint64_t n = random_() % 25; n > 0; --n) act(*side);
        side->durable = std::max(side->durable, side->log->sync());
        side->log.reset();  // which writes nothing
        expect_that_each_file_is_needed(*side);
      }
      expect_that_the_newest_of_another_is_refused(origin, copy);
      expect_that_the_newest_of_another_is_refused(copy, origin);
    }
  }
  if (seed_ != kSeed) return;  // other histories may have fewer
  EXPECT_GT(needed_, 40);
  EXPECT_GT(not_needed_, 20);
  EXPECT_GT(exchanged_, 0);
}

}  // namespace
}  // namespace carillon::queue
