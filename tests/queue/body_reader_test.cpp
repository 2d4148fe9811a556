// Bodies that are read one by one, and several at once, with and without a wait for the disk:
// always those that are stored.

#include "queue/store/state/body_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "queue/flipped_reads.h"
#include "queue/numbered_jobs.h"
#include "queue/seed.h"
#include "queue/store/log/change_codec.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

class BodyReaderTest : public testing::Test {
 protected:
  void put(JobId id, std::size_t size = 100) {
    const std::string body = body_of(id, size);
    change({.before = {}, .after = job(id), .body = body});
    stored[id] = body;
  }
  void put_many(JobId first, JobId last) {
    for (JobId id = first; id <= last; ++id) put(id);
  }
  void erase(JobId id) {
    change({.before = job(id), .after = {}, .body = {}});
    stored.erase(id);
  }
  // The reader learns nothing of it.
  void erase_secretly(JobId id) { apply({.before = job(id), .after = {}, .body = {}}); }

  // Takes the files out of the page cache. The block cache holds little.
  void forget_files() {
    for (const auto& file : std::filesystem::directory_iterator(directory / "data")) {
      const int fd = ::open(file.path().c_str(), O_RDONLY);
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      ::close(fd);
    }
  }

  void expect_stored(JobId id) { EXPECT_TRUE(reader.read(id) == stored.at(id)) << id; }

  TemporaryDirectory directory;
  RocksState state{directory / "data", {.read_cache = 1 << 10, .large_body = 4 << 10}};
  BodyReader reader{state};
  std::map<JobId, std::string> stored;

 private:
  void apply(const JobChange& change) {
    std::string bytes;
    encode_changes({.jobs = {change}, .tubes = {}, .watermarks = {}}, bytes);
    state.apply(bytes, state.number() + 1);
  }
  void change(const JobChange& change) {
    apply(change);
    if (!change.before) reader.put(change.after->id);
  }
};

TEST_F(BodyReaderTest, ReadsAheadWhenIdsFollowEachOther) {
  put_many(1, 200);
  for (JobId id = 1; id <= 20; ++id) expect_stored(id);
  erase_secretly(24);
  erase_secretly(83);
  erase_secretly(84);
  for (JobId id = 21; id <= 83; ++id) expect_stored(id);
  EXPECT_THROW(reader.read(84), StoreDamage) << "it was not read yet";
  expect_stored(85);
}

TEST_F(BodyReaderTest, ReadsNothingAheadInAnotherOrder) {
  put_many(1, 200);
  for (JobId id = 200; id > 100; id -= 2) expect_stored(id);
  for (JobId id = 1; id < 50; id += 5) expect_stored(id);
  for (const JobId id : {46u, 47u, 51u, 99u, 103u}) {
    erase_secretly(id);
    EXPECT_THROW(reader.read(id), StoreDamage) << id;
  }
}

TEST_F(BodyReaderTest, FollowsTheOrdersOfSeveralTubes) {
  put_many(1, 900);
  for (JobId i = 1; i <= 20; ++i) {
    for (JobId tube = 0; tube < 8; ++tube) expect_stored(100 * tube + 3 * i);
  }
  for (JobId tube = 0; tube < 8; ++tube) {
    erase_secretly(100 * tube + 63);
    expect_stored(100 * tube + 63);
  }
}

TEST_F(BodyReaderTest, AtHandIsWhatWasPutLately) {
  put_many(1, 200);
  put(201, 100'000);
  for (JobId id = 1; id <= 201; ++id) EXPECT_TRUE(reader.at_hand(id) == stored.at(id)) << id;
  EXPECT_THROW(reader.at_hand(202), StoreDamage);
  erase(7);
  EXPECT_THROW(reader.at_hand(7), StoreDamage);
}

TEST_F(BodyReaderTest, WhatIsOnDiskAloneIsAtHandOnceItIsReadAhead) {
  put_many(1, 200);
  put(201, 100'000);
  state.flush({});
  const std::array<JobId, 4> some = {1, 2, 100, 201};
  const auto is_at_hand = [this](JobId id) { return reader.at_hand(id).has_value(); };
  // The system keeps pages for a while that it is busy with; and it reads what it has just said
  // that it does not have.
  forget_files();
  bool is_one_at_hand = std::ranges::any_of(some, is_at_hand);
  for (int tries = 0; tries < 100 && is_one_at_hand; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    forget_files();
    is_one_at_hand = std::ranges::any_of(some, is_at_hand);
  }
  EXPECT_FALSE(is_one_at_hand);
  for (JobId id = 1; id <= 10; ++id) expect_stored(id);
  for (JobId id = 11; id <= 60; ++id) EXPECT_TRUE(reader.at_hand(id) == stored.at(id)) << id;
  expect_stored(201);
}

// As the owner and the thread that reads what is not at hand do.
TEST_F(BodyReaderTest, TwoThreadsReadAtOnce) {
  put_many(1, 4'000);
  state.flush({});
  forget_files();
  std::thread other([this] {
    for (JobId id = 1; id <= 4'000; ++id) expect_stored(id);
  });
  for (JobId id = 1; id <= 4'000; ++id) {
    EXPECT_TRUE(reader.at_hand(id).value_or(stored.at(id)) == stored.at(id)) << id;
  }
  other.join();
}

TEST_F(BodyReaderTest, AlwaysReadsWhatIsStored) {
  const std::uint64_t seed = seed_or(std::random_device()());
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::array<std::size_t, 5> kLarge = {5'000, 16'385, 65'535, 65'537, 300'000};
  JobId next = 1;
  std::vector<JobId> at(3);
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t what = random() % 20;
    if (random() % 1'000 == 0) state.flush({});
    if (stored.size() < 100 || what == 0) {
      for (int i = 0; i < 50; ++i)
        put(next++, random() % 30 == 0 ? kLarge[random() % kLarge.size()] : random() % 300);
    } else if (what == 1) {
      auto erased = stored.lower_bound(1 + random() % next);
      if (erased != stored.end()) erase(erased->first);
    } else if (what == 2) {
      at[random() % at.size()] = random() % next;
    } else {
      JobId& last = at[random() % at.size()];
      const auto found = stored.lower_bound(last + 1 + random() % 3);
      if (found == stored.end()) continue;
      last = found->first;
      expect_stored(last);
      if (random() % 2 == 0) erase(last);
    }
  }
}

// Each read of a file in turn: of a table's footer, index, filter and blocks, and of a blob file.
TEST_F(BodyReaderTest, ReadsAgainWhatFailsItsChecksum) {
  if (!FlippedReads::can_flip()) GTEST_SKIP() << "a sanitizer replaces pread()";
  put(1, 100);
  put(2, 20'000);
  state.flush({});
  for (const JobId id : {JobId{1}, JobId{2}}) {
    for (int skip = 0; skip < 100; ++skip) {
      forget_files();
      const FlippedReads flips(skip, 1);
      SCOPED_TRACE(skip);
      expect_stored(id);
      if (flips.left() > 0) break;
      EXPECT_LT(skip, 99);
    }
  }
}

// Only the thread that may wait decides that a body is damaged.
TEST_F(BodyReaderTest, WhatFailsItsChecksumIsNotAtHand) {
  if (!FlippedReads::can_flip()) GTEST_SKIP() << "a sanitizer replaces pread()";
  put(1, 100);
  put(2, 20'000);
  state.flush({});
  for (const JobId id : {JobId{1}, JobId{2}}) {
    expect_stored(id);  // so it is in the page cache
    for (int skip = 0; skip < 100; ++skip) {
      const FlippedReads flips(skip, 1);
      SCOPED_TRACE(skip);
      EXPECT_TRUE(reader.at_hand(id).value_or(stored.at(id)) == stored.at(id));
      if (flips.left() > 0) break;
      EXPECT_LT(skip, 99);
    }
  }
}

TEST_F(BodyReaderTest, WhatFailsItsChecksumTwiceIsDamaged) {
  if (!FlippedReads::can_flip()) GTEST_SKIP() << "a sanitizer replaces pread()";
  put(1, 20'000);
  state.flush({});
  expect_stored(1);
  const FlippedReads flips(0, 100);
  EXPECT_THROW(reader.read(1), StoreDamage);
}

}  // namespace
}  // namespace carillon::queue
