// A RocksStore with a journal, and what is left of it: the database's log and the journal may each
// have lost what was not synced, or be damaged. All that was synced is there again, or it is
// refused; it is never less.

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
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

constexpr RocksStoreOptions kSmall{.write_buffer = 512 << 10,
                                   .read_cache = 1 << 20,
                                   .large_body = 1 << 10,
                                   .journal_bytes = kSmallestJournal};

std::vector<fs::path> logs_in(const fs::path& directory) {
  std::vector<fs::path> logs;
  for (const auto& file : fs::directory_iterator(directory)) {
    if (file.path().extension() == ".log") logs.push_back(file.path());
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

// What the writer tells after a sync.
struct Synced {
  std::uint64_t batch = 0;
  std::size_t log = 0;      // bytes in the only log
  std::size_t journal = 0;  // and in the journal
  bool by_journal = false;  // else the log was synced
};

// Windows of one to three batches, each of which is synced, and one more that is not. Some are too
// large for the journal.
[[noreturn]] void write_windows_and_vanish(const std::string& directory, int windows) {
  RocksStore store(directory, {.journal_bytes = 4 * kSmallestJournal});  // never nearly full
  std::mt19937_64 random(7);
  std::uint64_t batch = 0;
  std::string journal = contents(directory + "/journal");
  for (int window = 0; window < windows; ++window) {
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) append_batch(store, ++batch);
    if (random() % 16 == 0) batches_in(store);  // reads what was not synced yet
    store.sync();
    std::string now = contents(directory + "/journal");
    SecondSelf::tell(
        Synced{batch, end_of(contents(logs_in(directory).at(0))), end_of(now), now != journal});
    journal = std::move(now);
  }
  append_batch(store, ++batch);
  ::_exit(0);
}

class CrashedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (SecondSelf::is_this()) return;  // it is not to leave a directory behind
    directory_.emplace();
    made_ = *directory_ / "made";
    copy_ = *directory_ / "copy";
  }

  void crash() {
    SecondSelf writer(made_);
    while (const auto synced = writer.read<Synced>()) {
      last_record_ = synced_.journal;
      synced_ = *synced;
      if (!synced->by_journal) {
        log_synced_ = synced->log;
        needed_ = synced->journal;
      }
      (synced->by_journal ? by_journal_ : by_log_) += 1;
    }
    ASSERT_EQ(writer.wait(), 0);
    ASSERT_EQ(logs_in(made_).size(), 1u);
    log_ = contents(logs_in(made_)[0]);
    log_.resize(end_of(log_));
    journal_ = contents(made_ / "journal");
  }

  // The batches in the store with these files; none: it is refused.
  std::optional<std::uint64_t> open(const std::string& log, const std::string& journal) {
    fs::remove_all(copy_);
    fs::copy(made_, copy_);
    write(logs_in(copy_)[0], log);
    write(copy_ / "journal", journal);
    return open();
  }
  std::optional<std::uint64_t> open() {
    try {
      return batches_in(RocksStore(copy_, kSmall));
    } catch (const StoreError& error) {
      complaint_ = error.what();
      EXPECT_NE(complaint_.find("is damaged"), std::string::npos) << complaint_;
      return std::nullopt;
    }
  }

  std::mt19937_64 random_{seed_or(std::random_device()())};
  std::optional<TemporaryDirectory> directory_;
  fs::path made_;
  fs::path copy_;
  Synced synced_;                // last
  std::size_t log_synced_ = 0;   // bytes of the log
  std::size_t needed_ = 0;       // where the journal has what was synced since then
  std::size_t last_record_ = 0;  // where the journal has what was synced last
  int by_journal_ = 0;
  int by_log_ = 0;
  std::string log_;
  std::string journal_;
  std::string complaint_;
};

constexpr int kWindows = 80;

TEST_F(CrashedTest, TheLogMayEndAnywhereBehindItsLastSync) {
  if (SecondSelf::is_this()) write_windows_and_vanish(SecondSelf::argument(), kWindows);
  crash();
  EXPECT_GT(by_journal_, kWindows / 2);
  EXPECT_GT(by_log_, 3);
  EXPECT_EQ(open(log_, journal_), synced_.batch);
  for (int round = 0; round < 15; ++round) {
    const std::size_t cut = log_synced_ + random_() % (log_.size() - log_synced_ + 1);
    EXPECT_EQ(open(log_.substr(0, cut), journal_), synced_.batch)
        << "cut at " << cut << " of " << log_.size();
  }
}

TEST_F(CrashedTest, WhatWasNotSyncedOfTheLogMayBeDamaged) {
  if (SecondSelf::is_this()) write_windows_and_vanish(SecondSelf::argument(), kWindows);
  crash();
  for (int round = 0; round < 15 && log_.size() > log_synced_; ++round) {
    const std::size_t place = log_synced_ + random_() % (log_.size() - log_synced_);
    std::string log = log_;
    log[place] = static_cast<char>(log[place] ^ (1 << random_() % 8));
    EXPECT_EQ(open(log, journal_), synced_.batch) << "byte " << place;
  }
}

TEST_F(CrashedTest, WhatWasSyncedOfTheLogMayNotGoUnnoticed) {
  if (SecondSelf::is_this()) write_windows_and_vanish(SecondSelf::argument(), kWindows);
  crash();
  int refused = 0;
  for (int round = 0; round < 15; ++round) {
    const std::size_t place = random_() % log_synced_;
    SCOPED_TRACE("byte " + std::to_string(place));
    std::string log = log_;
    if (round % 2 == 0) {
      log.resize(place);
    } else {
      log[place] = static_cast<char>(log[place] ^ (1 << random_() % 8));
    }
    const auto batches = open(log, journal_);
    if (batches) {
      EXPECT_EQ(*batches, synced_.batch);
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 4);
}

TEST_F(CrashedTest, ADamagedJournalIsRefusedWhereItIsNeeded) {
  if (SecondSelf::is_this()) write_windows_and_vanish(SecondSelf::argument(), kWindows);
  crash();
  const std::string early = log_.substr(0, log_synced_);
  ASSERT_TRUE(synced_.by_journal);
  ASSERT_GT(last_record_, needed_);
  for (int round = 0; round < 25; ++round) {
    // Every other time one that is needed, but not the last: damaged, that one cannot be told from
    // one half written.
    const bool needed = round % 2 == 0;
    const std::size_t from = needed ? needed_ : 32;  // its first block says whose it is
    const std::size_t to = needed ? last_record_ : end_of(journal_);
    std::size_t place = from + random_() % (to - from);
    // The zeros that fill up a block are not read.
    while (needed && journal_[place] == 0) place = from + random_() % (to - from);
    SCOPED_TRACE("byte " + std::to_string(place));
    std::string journal = journal_;
    journal[place] = static_cast<char>(journal[place] ^ (1 << random_() % 8));
    const auto batches = open(early, journal);
    if (needed) {
      EXPECT_EQ(batches, std::nullopt);
    } else if (batches && *batches != synced_.batch) {
      EXPECT_GE(*batches + 3, synced_.batch) << "only the last record may be missing";
    }
  }
}

TEST_F(CrashedTest, IsReadAgainAfterACrashWhileItWasRead) {
  if (SecondSelf::is_this()) write_windows_and_vanish(SecondSelf::argument(), kWindows);
  crash();
  fs::copy(made_, copy_);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(open(), synced_.batch);
    // As if nothing of what it wrote had reached the disk, but in part.
    const auto last = logs_in(copy_).back();
    const std::string log = contents(last);
    write(last, log.substr(0, random_() % (log.size() + 1)));
  }
}

// --- Long runs: the journal is full many times over, and the thread that writes makes room.

// Small windows alone: of a large one nothing tells but the log, until the next sync. That one
// lost, though it was synced, goes unnoticed.
constexpr std::uint64_t kNone = std::uint64_t{1} << 62;  // one in so many bodies is large

[[noreturn]] void write_until_killed(const std::string& directory) {
  RocksStore store(directory, kSmall);
  std::uint64_t batch = batches_in(store, kNone);
  while (true) {
    append_batch(store, ++batch, kNone);
    store.sync();
    SecondSelf::tell(batch);
  }
}

TEST_F(CrashedTest, KilledAfterManyRoundsOfTheJournal) {
  if (SecondSelf::is_this()) write_until_killed(SecondSelf::argument());
  std::uint64_t synced = 0;
  for (int round = 0; round < 4; ++round) {
    SecondSelf writer(made_);
    for (std::uint64_t left = random_() % 2'500; left > 0; --left) {
      const auto batch = writer.read<std::uint64_t>();
      ASSERT_TRUE(batch) << "the writer has ended";
      synced = *batch;
    }
    writer.kill();
    while (const auto batch = writer.read<std::uint64_t>()) synced = *batch;
    for (int damage = 0; damage < 6; ++damage) {
      fs::remove_all(copy_);
      fs::copy(made_, copy_);
      const auto logs = logs_in(copy_);
      const fs::path& log = logs[random_() % logs.size()];
      std::string bytes = contents(log);
      bytes.resize(random_() % (bytes.size() + 1));
      write(log, bytes);
      try {
        EXPECT_GE(batches_in(RocksStore(copy_, kSmall), kNone), synced)
            << log << " cut at " << bytes.size();
      } catch (const StoreError&) {
        // What had been synced of the log is missing, and that was noticed.
      }
    }
    EXPECT_GE(batches_in(RocksStore(made_, kSmall), kNone), synced);
  }
}

// --- Several logs.

// Windows with small jobs, until families have been flushed and there is a new log with something
// in it. They are too few for the journal to be nearly full, so that no log was synced but those
// that were closed.
[[noreturn]] void put_until_there_is_a_new_log(const std::string& directory) {
  RocksStore store(directory,
                   {.write_buffer = kSmall.write_buffer, .journal_bytes = kJournalBytes});
  const fs::path first = logs_in(directory).back();
  JobId id = 0;
  const auto put_and_sync = [&] {
    put(store, ++id, 2'000);
    store.sync();
  };
  for (fs::path log = first; log == first || log == logs_in(directory).back(); put_and_sync()) {
    if (log == first) log = logs_in(directory).back();
  }
  for (int i = 0; i < 40; ++i) put_and_sync();
  SecondSelf::tell(id);
  ::_exit(0);
}

// The old log was synced when the family was flushed; of the new one, no page need have reached the
// disk, nor the first ones of those that did.
TEST_F(CrashedTest, AnyPageOfANewLogMayBeMissing) {
  if (SecondSelf::is_this()) put_until_there_is_a_new_log(SecondSelf::argument());
  SecondSelf writer(made_);
  const auto last = writer.read<JobId>();
  ASSERT_TRUE(last);
  ASSERT_EQ(writer.wait(), 0);
  const std::string name = logs_in(made_).back().filename();
  const std::string log = contents(made_ / name);
  constexpr std::size_t kPage = 4'096;
  ASSERT_GT(end_of(log), 3 * kPage);
  for (int round = 0; round < 20; ++round) {
    std::string missing;
    std::string holes = log;
    for (std::size_t page = 0; page < 4; ++page) {
      if (round < 4 ? page != static_cast<std::size_t>(round) : random_() % 2 == 0) continue;
      std::fill_n(holes.begin() + static_cast<std::ptrdiff_t>(page * kPage), kPage, '\0');
      missing += " " + std::to_string(page);
    }
    SCOPED_TRACE("without the pages" + missing);
    fs::remove_all(copy_);
    fs::copy(made_, copy_);
    write(copy_ / name, holes);
    const RocksStore store(copy_, {.journal_bytes = kJournalBytes});
    for (JobId id = 1; id <= *last; ++id) ASSERT_EQ(store.find(id), job(id));
  }
}

// What the database lacks is told by the last record alone. That many records before it are applied
// again, each of which adds to the database's count, must not make up for it.
TEST(Journal, RefusesADatabaseThatLostALargeWindowBetweenSmallOnes) {
  if (SecondSelf::is_this()) {
    RocksStore store(SecondSelf::argument(), {.journal_bytes = kJournalBytes});
    for (JobId id = 1; id <= 62; ++id) {
      put(store, id, id == 61 ? 40'000 : 100);
      store.sync();
    }
    ::_exit(0);
  }
  const TemporaryDirectory directory;
  EXPECT_EQ(SecondSelf(directory / "data").wait(), 0);
  for (const fs::path& log : logs_in(directory / "data")) write(log, "");
  try {
    const RocksStore store(directory / "data", {.journal_bytes = kJournalBytes});
    FAIL() << "it was opened";
  } catch (const StoreError& error) {
    EXPECT_EQ(std::string(error.what()),
              "data directory " + (directory / "data") +
                  " is damaged: changes that had been synced are missing");
  }
}

// --- With and without.

std::string format_of(const std::string& directory) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : {"default", "jobs", "index", "bodies"})
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* database = nullptr;
  EXPECT_TRUE(rocksdb::DB::OpenForReadOnly({}, directory, families, &handles, &database).ok());
  const std::unique_ptr<rocksdb::DB> owned(database);
  std::string format;
  EXPECT_TRUE(database->Get({}, "f", &format).ok());
  for (rocksdb::ColumnFamilyHandle* handle : handles)
    EXPECT_TRUE(database->DestroyColumnFamilyHandle(handle).ok());
  return format;
}

// Versions that know of no journal must not open a store that has one.
TEST(Journal, CanBeTakenUpAndGivenUpAndOfAnotherSizeAtEveryStart) {
  constexpr std::array<std::size_t, 4> kSizes{0, kSmallestJournal, 3 * kSmallestJournal,
                                              kJournalBytes};
  std::mt19937_64 random(seed_or(std::random_device()()));
  const TemporaryDirectory directory;
  const std::string path = directory / "data";
  std::uint64_t batch = 0;
  for (int round = 0; round < 20; ++round) {
    const std::size_t journal = kSizes[random() % kSizes.size()];
    {
      RocksStore store(path, {.journal_bytes = journal});
      EXPECT_EQ(batches_in(store), batch);
      EXPECT_EQ(fs::exists(path + "/journal") ? fs::file_size(path + "/journal") : 0, journal);
      for (std::uint64_t left = random() % 20; left > 0; --left) {
        append_batch(store, ++batch);
        if (random() % 2 == 0) store.sync();
      }
    }
    EXPECT_EQ(format_of(path), journal > 0 ? "carillon-queue 3" : "carillon-queue 1");
  }
}

TEST(Journal, HasASizeWithinBounds) {
  const TemporaryDirectory directory;
  for (const std::size_t bytes :
       {kSmallestJournal - 1, kLargestJournal + 1, (std::size_t{1} << 44) + 20'480}) {
    try {
      const RocksStore store(directory / "data", {.journal_bytes = bytes});
      FAIL() << "it was opened";
    } catch (const StoreError& error) {
      EXPECT_EQ(error.what(), "a journal cannot have " + std::to_string(bytes) +
                                  " bytes: from 524288 to 268435456 are allowed");
    }
  }
}

TEST(Journal, IsAppliedWhereNoneOrALargerOneIsWanted) {
  if (SecondSelf::is_this()) {
    RocksStore store(SecondSelf::argument(), {.journal_bytes = kJournalBytes});
    for (std::uint64_t batch = 1; batch <= 10; ++batch) {
      append_batch(store, batch);
      store.sync();
    }
    ::_exit(0);
  }
  const TemporaryDirectory directory;
  EXPECT_EQ(SecondSelf(directory / "data").wait(), 0);
  fs::copy(directory / "data", directory / "copy");
  EXPECT_EQ(batches_in(RocksStore(directory / "data")), 10u);
  EXPECT_FALSE(fs::exists(directory / "data/journal"));
  EXPECT_EQ(batches_in(RocksStore(directory / "copy", {.journal_bytes = 2 * kJournalBytes})), 10u);
  EXPECT_EQ(fs::file_size(directory / "copy/journal"), 2 * kJournalBytes);
}

// The first thing that a store with a journal has in its files is that there is one.
TEST(Journal, IsFoundThoughAllOfTheLogIsLost) {
  if (SecondSelf::is_this()) {
    RocksStore store(SecondSelf::argument(), {.journal_bytes = kJournalBytes});
    for (JobId id = 1; id <= 3; ++id) {
      put(store, id);
      store.sync();
    }
    ::_exit(0);
  }
  const TemporaryDirectory directory;
  EXPECT_EQ(SecondSelf(directory / "data").wait(), 0);
  for (const fs::path& log : logs_in(directory / "data")) write(log, "");
  const RocksStore store(directory / "data", {.journal_bytes = kJournalBytes});
  for (JobId id = 1; id <= 3; ++id) EXPECT_EQ(store.find(id), job(id));
}

TEST(Journal, ThatIsMissingIsRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory / "data";
  {
    append_batch(
        *std::make_unique<RocksStore>(path, RocksStoreOptions{.journal_bytes = kJournalBytes}), 1);
  }
  fs::remove(path + "/journal");
  for (const bool journal : {true, false}) {
    try {
      const RocksStore store(path, {.journal_bytes = journal ? kJournalBytes : 0});
      FAIL() << "it was opened";
    } catch (const StoreError& error) {
      EXPECT_EQ(
          std::string(error.what()),
          "the journal " + path + "/journal is missing; restore the whole directory from one copy");
    }
  }
}

}  // namespace

}  // namespace carillon::queue
