// RocksStore after its process or its machine died: what it must have kept, and what it reports if
// its log is damaged.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/rocks_store.h"
#include "queue/crash_batches.h"
#include "queue/file_bytes.h"
#include "queue/numbered_jobs.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

// --- The process is killed.

constexpr RocksStoreOptions kSmall{
    .write_buffer = 512 << 10, .read_cache = 1 << 20, .large_body = 1 << 10};

constexpr RocksStoreOptions kSmallWithJournal{.write_buffer = 512 << 10,
                                              .read_cache = 1 << 20,
                                              .large_body = 1 << 10,
                                              .journal_bytes = kSmallestJournal};

[[noreturn]] void append_until_killed(const std::string& directory,
                                      const RocksStoreOptions& options) {
  RocksStore store(directory, options);
  std::mt19937_64 random(batches_in(store));
  for (std::uint64_t batch = batches_in(store) + 1;; ++batch) {
    append_batch(store, batch);
    if (random() % 4 != 0) continue;
    store.sync();
    SecondSelf::tell(batch);
  }
}

void kill_writers(const RocksStoreOptions& options) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  const TemporaryDirectory directory;
  std::uint64_t synced = 0;
  for (int round = 0; round < 10; ++round) {
    SecondSelf writer(directory / "data");
    for (std::uint64_t left = 1 + random() % 150; left > 0; --left) {
      const auto batch = writer.read<std::uint64_t>();
      ASSERT_TRUE(batch) << "the writer has ended";
      synced = *batch;
    }
    writer.kill();
    while (const auto batch = writer.read<std::uint64_t>()) synced = *batch;
    const RocksStore store(directory / "data", options);
    EXPECT_GE(batches_in(store), synced);
  }
}

TEST(RocksCrash, KilledWhileAppendingKeepsWhatWasSynced) {
  if (SecondSelf::is_this()) append_until_killed(SecondSelf::argument(), kSmall);
  kill_writers(kSmall);
}

TEST(RocksCrash, KilledWhileAppendingWithAJournalKeepsWhatWasSynced) {
  if (SecondSelf::is_this()) append_until_killed(SecondSelf::argument(), kSmallWithJournal);
  kill_writers(kSmallWithJournal);
}

// --- The log is changed, as a crash of the machine or a bad disk may leave it.

// The files of a store that was not closed.
struct Image {
  std::vector<std::pair<std::string, std::string>> files;  // all but the log
  std::string log_name;
  std::string log;                // without the zeros at its end, if it was not closed
  std::vector<std::size_t> ends;  // the size of the log after each batch

  // Returns the number of batches whose log records end at or before `size`.
  std::uint64_t batches_before(std::size_t size) const {
    return static_cast<std::uint64_t>(std::upper_bound(ends.begin(), ends.end(), size) -
                                      ends.begin());
  }
};

fs::path the_log(const fs::path& directory) {
  fs::path found;
  for (const auto& file : fs::directory_iterator(directory)) {
    if (file.path().extension() != ".log") continue;
    EXPECT_TRUE(found.empty()) << "more than one log";
    found = file.path();
  }
  return found;
}

// Appends `batches` batches, with a sync after each of the first `synced` ones, tells where each
// ends in the log, and ends the process without closing the store.
[[noreturn]] void append_and_vanish(const std::string& directory, std::uint64_t synced,
                                    std::uint64_t batches) {
  RocksStore store(directory);
  for (std::uint64_t batch = 1; batch <= batches; ++batch) {
    append_batch(store, batch);
    if (batch <= synced) store.sync();
    SecondSelf::tell(end_of(contents(the_log(directory))));
  }
  ::_exit(0);
}

class LogTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBatches = 40;

  void SetUp() override {
    // The second self must not leave a directory behind.
    if (!SecondSelf::is_this()) directory_.emplace();
  }

  // Returns the image of a store of kBatches batches, made by the second self of the test.
  Image make_image() {
    SecondSelf writer(*directory_ / "made");
    Image image;
    while (const auto end = writer.read<std::size_t>()) image.ends.push_back(*end);
    EXPECT_EQ(writer.wait(), 0);
    EXPECT_EQ(image.ends.size(), kBatches);
    read(image);
    image.log.resize(end_of(image.log));
    return image;
  }

  void read(Image& image) {
    for (const auto& file : fs::directory_iterator(*directory_ / "made")) {
      const std::string name = file.path().filename();
      if (file.path().extension() == ".log") {
        image.log_name = name;
        image.log = contents(file.path());
      } else {
        image.files.emplace_back(name, contents(file.path()));
      }
    }
  }

  // Makes a directory with the image's files and this log, and returns its path.
  std::string restore(const Image& image, const std::string& log) {
    const std::string path = *directory_ / "restored";
    fs::remove_all(path);
    fs::create_directory(path);
    for (const auto& [name, bytes] : image.files) write(fs::path(path) / name, bytes);
    write(fs::path(path) / image.log_name, log);
    return path;
  }

  // Returns the number of batches in the store with this log; none if it is refused as damaged.
  std::optional<std::uint64_t> open(const Image& image, const std::string& log) {
    const std::string path = restore(image, log);
    try {
      const RocksStore store(path);
      warning_ = store.opening_warning();
      return batches_in(store);
    } catch (const StoreError& error) {
      const std::string what = error.what();
      EXPECT_TRUE(contains(what, "data directory " + path + " cannot be opened")) << what;
      EXPECT_TRUE(contains(what, image.log_name + " is damaged at byte")) << what;
      EXPECT_EQ(contents(fs::path(path) / image.log_name), log) << "a refused log is left as it is";
      return std::nullopt;
    }
  }

  std::optional<TemporaryDirectory> directory_;
  std::string warning_;
};

constexpr std::size_t kPage = 4'096;

TEST_F(LogTest, IsReplayedWhole) {
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), kBatches, kBatches);
  const Image image = make_image();
  EXPECT_EQ(open(image, image.log), kBatches);
  EXPECT_EQ(warning_, "");
  EXPECT_EQ(open(image, image.log + std::string(100'000, '\0')), kBatches);
  EXPECT_EQ(warning_, "");
}

TEST_F(LogTest, CutAnywhereIsReplayedUpToTheCut) {
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), kBatches, kBatches);
  const Image image = make_image();
  std::mt19937_64 random(seed_or(std::random_device()()));
  std::vector<std::size_t> cuts = {0, 1, 6, 7, 8};
  for (const std::size_t end : {image.ends[0], image.ends[17], image.ends[39]}) {
    cuts.insert(cuts.end(), {end - 1, end, end + 1, end + 8});
  }
  for (int i = 0; i < 40; ++i) cuts.push_back(random() % image.log.size());
  for (const std::size_t cut : cuts) {
    SCOPED_TRACE("cut at byte " + std::to_string(cut));
    std::string log = image.log.substr(0, cut);
    EXPECT_EQ(open(image, log), image.batches_before(cut));
    log.resize(cut + 50'000);
    EXPECT_EQ(open(image, log), image.batches_before(cut));
  }
}

TEST_F(LogTest, SaysWhatItLeavesOut) {
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), 39, kBatches);
  const Image image = make_image();
  EXPECT_EQ(open(image, image.log.substr(0, image.ends[38] + 7)), 39u);
  EXPECT_EQ(warning_,
            "data directory " + (*directory_ / "restored") +
                " was not closed cleanly: the last 7 bytes of its log were never synced and "
                "are not whole; they have "
                "been left out");
}

TEST_F(LogTest, GoesOnAfterACut) {
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), kBatches, kBatches);
  const Image image = make_image();
  const std::string path = restore(image, image.log.substr(0, image.ends[20] - 1));
  {
    RocksStore store(path);
    EXPECT_EQ(batches_in(store), 20u);
    append_batch(store, 21);
    append_batch(store, 22);
  }
  EXPECT_EQ(batches_in(RocksStore(path)), 22u);
}

// All batches are synced. With one bit changed, only the last batch may be lost in silence, because
// no later log record vouches for it.
TEST_F(LogTest, DamageToSyncedRecordsIsRefused) {
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), kBatches, kBatches);
  const Image image = make_image();
  std::mt19937_64 random(seed_or(std::random_device()()));
  std::vector<std::size_t> offsets;
  // A header, and the bytes after it.
  for (std::size_t i = 0; i < 20; ++i) offsets.push_back(image.ends[10] + i);
  for (int i = 0; i < 60; ++i) offsets.push_back(random() % image.log.size());
  for (const std::size_t offset : offsets) {
    const int bit = static_cast<int>(random() % 8);
    SCOPED_TRACE("bit " + std::to_string(bit) + " of byte " + std::to_string(offset));
    std::string log = image.log;
    log[offset] = static_cast<char>(log[offset] ^ (1 << bit));
    const auto batches = open(image, log);
    if (offset >= image.ends[38]) {
      EXPECT_EQ(batches, 39u);
    } else {
      // All batches are there if the bit was in padding.
      EXPECT_TRUE(!batches || batches == kBatches) << "replayed: " << *batches;
      EXPECT_FALSE(batches && offset < image.ends[10] + 20 && offset >= image.ends[10])
          << "this is no padding";
    }
  }
}

TEST_F(LogTest, AllOfItsBeginningLostIsRefused) {
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), kBatches, kBatches);
  const Image image = make_image();
  std::string log = image.log;
  std::fill_n(log.begin(), image.ends[5] + 3, '\0');
  EXPECT_EQ(open(image, log), std::nullopt);
}

// Nothing is synced. So any bytes may be missing, and all batches after them are left out.
TEST_F(LogTest, DamageToUnsyncedRecordsEndsTheReplay) {
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), 0, kBatches);
  const Image image = make_image();
  std::mt19937_64 random(seed_or(std::random_device()()));
  for (int i = 0; i < 40; ++i) {
    const std::size_t offset = image.ends[0] + random() % (image.log.size() - image.ends[0]);
    SCOPED_TRACE("byte " + std::to_string(offset));
    std::string log = image.log;
    log[offset] = static_cast<char>(log[offset] ^ 0x10);
    const auto batches = open(image, log);
    // All batches are there if the bit was in padding.
    EXPECT_TRUE(batches == image.batches_before(offset) || batches == kBatches);
  }
}

// A machine dies while pages are on their way to the disk: any page that was not synced may be
// lost.
TEST_F(LogTest, LostPagesEndTheReplayOrAreRefused) {
  constexpr std::uint64_t kSynced = 25;
  if (SecondSelf::is_this()) append_and_vanish(SecondSelf::argument(), kSynced, kBatches);
  const Image image = make_image();
  const std::size_t synced = image.ends[kSynced - 1];
  for (std::size_t page = 0; page < image.log.size(); page += kPage) {
    SCOPED_TRACE("page at byte " + std::to_string(page));
    std::string log = image.log;
    // The synced bytes of a page are never lost.
    const std::size_t from = page < synced && synced < page + kPage ? synced : page;
    std::fill(log.begin() + static_cast<std::ptrdiff_t>(from),
              log.begin() + static_cast<std::ptrdiff_t>(std::min(page + kPage, log.size())), '\0');
    const auto batches = open(image, log);
    if (from < synced) {
      EXPECT_EQ(batches, std::nullopt);
    } else {
      EXPECT_EQ(batches, image.batches_before(from));
    }
  }
}

// A clean close adds a log record that vouches for all before it: the last batch is as safe as the
// others.
TEST_F(LogTest, DamageAfterACleanCloseIsRefused) {
  std::size_t end = 0;
  {
    RocksStore store(*directory_ / "made");
    append_batch(store, 1);
    append_batch(store, 2);
    end = end_of(contents(the_log(*directory_ / "made")));
  }
  Image image;
  read(image);
  EXPECT_EQ(open(image, image.log), 2u);
  for (const std::size_t offset : {end - 200, end - 100, end - 1}) {
    std::string log = image.log;
    log[offset] = static_cast<char>(log[offset] ^ 1);
    EXPECT_EQ(open(image, log), std::nullopt) << offset;
  }
  EXPECT_EQ(open(image, image.log.substr(0, image.log.size() - 1)), 2u);
}

// --- Several logs, some of which are not needed any more.

constexpr std::uint64_t kMany = 400;

[[noreturn]] void append_many_and_vanish(const std::string& directory, bool synced) {
  RocksStore store(directory, kSmall);
  for (std::uint64_t batch = 1; batch <= kMany; ++batch) {
    append_batch(store, batch);
    if (synced) store.sync();
  }
  ::_exit(0);
}

// Changes one bit in one of the logs of a copy of `made`, and returns how many batches are left;
// none if the store was refused.
std::optional<std::uint64_t> open_damaged(const fs::path& made, const fs::path& copy,
                                          std::mt19937_64& random) {
  fs::remove_all(copy);
  fs::copy(made, copy);
  std::vector<fs::path> logs;
  for (const auto& file : fs::directory_iterator(copy)) {
    if (file.path().extension() == ".log" && end_of(contents(file.path())) > 0)
      logs.push_back(file.path());
  }
  std::sort(logs.begin(), logs.end());
  EXPECT_FALSE(logs.empty());
  const fs::path& damaged = logs[random() % logs.size()];
  std::string log = contents(damaged);
  const std::size_t offset = random() % end_of(log);
  SCOPED_TRACE(damaged.string() + " byte " + std::to_string(offset));
  log[offset] = static_cast<char>(log[offset] ^ 4);
  write(damaged, log);
  try {
    return batches_in(RocksStore(copy, kSmall));
  } catch (const StoreError& error) {
    const std::string what = error.what();
    EXPECT_TRUE(contains(what, "damaged at byte") || contains(what, "ahead of WALs")) << what;
    return std::nullopt;
  }
}

TEST(RocksCrash, DamageToOneOfManySyncedLogsIsNotPassedOver) {
  if (SecondSelf::is_this()) append_many_and_vanish(SecondSelf::argument(), true);
  std::mt19937_64 random(seed_or(std::random_device()()));
  const TemporaryDirectory directory;
  EXPECT_EQ(SecondSelf(directory / "made").wait(), 0);
  int refused = 0;
  for (int i = 0; i < 30; ++i) {
    const auto batches = open_damaged(directory / "made", directory / "copy", random);
    EXPECT_GE(batches.value_or(kMany), kMany - 1);
    refused += batches ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

// A store is refused if other families were flushed beyond the damage: RocksDB had synced the log
// for that.
TEST(RocksCrash, DamageToOneOfManyUnsyncedLogsEndsTheReplayOrIsRefused) {
  if (SecondSelf::is_this()) append_many_and_vanish(SecondSelf::argument(), false);
  std::mt19937_64 random(seed_or(std::random_device()()));
  const TemporaryDirectory directory;
  EXPECT_EQ(SecondSelf(directory / "made").wait(), 0);
  int replayed = 0;
  for (int i = 0; i < 30; ++i)
    replayed += open_damaged(directory / "made", directory / "copy", random) ? 1 : 0;
  EXPECT_GT(replayed, 0);
}

}  // namespace
}  // namespace carillon::queue
