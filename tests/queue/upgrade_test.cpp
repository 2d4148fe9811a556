// Data directories of earlier versions are opened, with all that was acknowledged in them; or, if
// RocksDB's log in them is damaged, refused. tests/queue/data/README.md says how they were made.

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/file_bytes.h"
#include "queue/numbered_jobs.h"
#include "queue/seed.h"
#include "queue/store_media.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr UtcMs kYear2090 = 3'786'912'000'000;
constexpr UtcMs kYear2160 = 5'995'987'200'000;

// The ids that were given before the server was killed for the first time, and after it.
constexpr JobId kLastBefore = 30;
constexpr JobId kFirstAfter = 1'002;
constexpr JobId kLarge = 1'032;
constexpr JobId kLast = 1'042;

class UpgradeTest : public testing::TestWithParam<const char*> {
 protected:
  UpgradeTest() {
    const fs::path archive = fs::path(CARILLON_TEST_DATA) / GetParam();
    const std::string command =
        "tar -xzf '" + archive.string() + ".tar.gz' -C '" + directory_.path().string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    for (const auto& file : fs::directory_iterator(made_)) {
      if (file.path().extension() == ".log") log_ = std::max(log_, file.path().filename().string());
    }
  }

  // A copy of the directory with these bytes as RocksDB's newest log. The other files are the same
  // in both: opening deletes some, but changes none.
  void copy_with(const std::string& log) {
    fs::remove_all(copy_);
    fs::copy(made_, copy_, fs::copy_options::recursive | fs::copy_options::create_hard_links);
    fs::remove(copy_ / log_);
    write(copy_ / log_, log);
  }

  // Opens the copy. Returns the complaint if it is refused, and "" if it has all jobs.
  std::string open() {
    try {
      const DiskStore store(copy_, kSmallDisk);
      expect_all_jobs(store);
      return "";
    } catch (const StoreError& error) {
      return error.what();
    }
  }

  // Opens the directory with this log. Returns true if it is refused, and as it should be: with a
  // line that says what to do, and nothing changed. Else all jobs must be there.
  bool refused_or_whole(const std::string& log) {
    copy_with(log);
    const std::string why = open();
    if (why.empty()) return false;
    EXPECT_TRUE(why.starts_with("data directory " + copy_.string() +
                                " has a log of an older version of Carillon that is cut short or "
                                "damaged (") &&
                why.ends_with("): start that version in it once and stop it, and then start this "
                              "one"))
        << why;
    EXPECT_TRUE(contents(copy_ / log_) == log) << "it is left as it was";
    return true;
  }

  static void expect_all_jobs(const Store& store) {
    const Recovered recovered = store.recover();
    ASSERT_EQ(recovered.tubes.size(), 2U);
    EXPECT_GT(recovered.watermarks.next_id, kLast);
    const auto first = store.find(1);
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->buried());
    EXPECT_EQ(first->priority, 9U);
    EXPECT_EQ(first->history.buries, 1U);
    EXPECT_EQ(store.body(1), "first");
    expect_far(store, 2, "second");
    EXPECT_EQ(store.find(2)->ttr, 90'000U);
    for (JobId id = 3; id <= kLast; ++id) {
      if (id == kLastBefore + 1) id = kFirstAfter;
      if (id == 5) {
        EXPECT_FALSE(store.find(id)) << "it was deleted";
      } else {
        expect_far(store, id,
                   id == kLarge ? std::string(20'000, 'x') : "body " + std::to_string(id) + "\n");
      }
    }
    EXPECT_EQ(ids(store.scan_due(store.find(kLarge)->tube, {}, 1)), (Ids{kLarge}));
  }

  static void expect_far(const Store& store, JobId id, const std::string& body) {
    const auto job = store.find(id);
    ASSERT_TRUE(job) << id;
    EXPECT_GT(job->due, kYear2090);
    EXPECT_LT(job->due, kYear2160);
    EXPECT_EQ(store.body(id), body);
  }

  TemporaryDirectory directory_;
  fs::path made_ = directory_ / "data";
  fs::path copy_ = directory_ / "copy";
  std::string log_;
};

INSTANTIATE_TEST_SUITE_P(Formats, UpgradeTest,
                         testing::Values("format-1", "format-1-stopped", "format-3"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// Where the fragments of a log of RocksDB's begin (old_log.h), and where the last one ends.
std::vector<std::size_t> fragments_of(const std::string& log) {
  constexpr std::size_t kBlock = 32 << 10;
  constexpr std::size_t kHead = 7;
  std::vector<std::size_t> at = {0};
  while (at.back() + kHead <= log.size()) {
    std::uint16_t size = 0;
    std::memcpy(&size, log.data() + at.back() + 4, sizeof size);
    if (size == 0) break;
    const std::size_t end = at.back() + kHead + size;
    at.push_back(kBlock - end % kBlock < kHead ? (end / kBlock + 1) * kBlock : end);
  }
  return at;
}

TEST_P(UpgradeTest, ADirectoryIsOpenedAndUsed) {
  {
    DiskStore store(made_, kSmallDisk);
    expect_all_jobs(store);
    JobRecord moved = *store.find(2);
    const JobRecord before = moved;
    moved.due = kYear2090;
    store.append({.jobs = {{before, moved, {}}}, .tubes = {}, .watermarks = {}});
    store.sync();
  }
  DiskStore again(made_, kSmallDisk);
  EXPECT_EQ(again.find(2)->due, kYear2090);
  EXPECT_FALSE(fs::exists(made_ / "journal"));
  EXPECT_FALSE(fs::exists(made_ / "next-log"));
}

TEST_P(UpgradeTest, AVersionBeforeRefusesTheDirectoryAfterwards) {
  { const DiskStore store(made_, kSmallDisk); }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : {"default", "jobs", "index", "bodies"})
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::OpenForReadOnly({}, made_, families, &handles, &opened).ok());
  const std::unique_ptr<rocksdb::DB> database(opened);
  std::string format;
  EXPECT_TRUE(database->Get({}, "f", &format).ok());
  EXPECT_EQ(format, "carillon-queue 4") << "versions before know 1 and 3";
  for (rocksdb::ColumnFamilyHandle* handle : handles)
    EXPECT_TRUE(database->DestroyColumnFamilyHandle(handle).ok());
}

// --- RocksDB's log is damaged, or cut short.

TEST_P(UpgradeTest, AFlippedBitInTheLogIsRefusedOrHarmless) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  const std::string log = contents(made_ / log_);
  const std::vector<std::size_t> fragments = fragments_of(log);
  ASSERT_GT(fragments.size(), 30U);
  int refused = 0;
  constexpr int kFlips = 40;
  for (int round = 0; round < kFlips; ++round) {
    // Every other time it is in the head of a fragment, where it may hide all that follows.
    const std::size_t fragment = fragments[random() % (fragments.size() - 1)];
    const std::size_t at = round % 2 == 0 ? random() % end_of(log) : fragment + random() % 7;
    const auto bit = static_cast<int>(random() % 8);
    SCOPED_TRACE("bit " + std::to_string(bit) + " of byte " + std::to_string(at));
    std::string damaged = log;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
    refused += refused_or_whole(damaged) ? 1 : 0;
    if (HasFailure()) break;
  }
  EXPECT_GT(refused, kFlips / 2);
}

// RocksDB takes such a fragment for the remainder of another log, and reads no further.
TEST_P(UpgradeTest, ATypeOfFragmentThatCarillonDidNotWriteIsRefused) {
  std::string log = contents(made_ / log_);
  const std::vector<std::size_t> fragments = fragments_of(log);
  log[fragments[fragments.size() / 2] + 6] ^= 4;
  EXPECT_TRUE(refused_or_whole(log));
}

// A log without one of its pages has a hole, where RocksDB goes on behind it.
TEST_P(UpgradeTest, ALogThatLacksAPageIsRefused) {
  constexpr std::size_t kPage = 4'096;
  const std::string log = contents(made_ / log_);
  for (std::size_t page = 0; page + 2 * kPage < end_of(log); page += kPage) {
    SCOPED_TRACE("page at byte " + std::to_string(page));
    std::string hole = log;
    std::fill_n(hole.begin() + static_cast<std::ptrdiff_t>(page), kPage, '\0');
    EXPECT_TRUE(refused_or_whole(hole));
  }
}

// What ends where a record ends is whole: before the cut, nothing tells of what came after it. Of
// format 1 that is a beginning of the changes, as after a crash of the machine; of format 3 the
// journal has the rest.
TEST_P(UpgradeTest, ALogThatIsCutShortIsRefusedOrWhole) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  const std::string log = contents(made_ / log_);
  const std::vector<std::size_t> fragments = fragments_of(log);
  const bool journal = fs::exists(made_ / "journal");
  for (int round = 0; round < 15; ++round) {
    // Every other time within the head of a fragment.
    const std::size_t cut = round % 2 == 0 ? 1 + random() % (fragments.back() - 1)
                                           : fragments[random() % (fragments.size() - 1)] + 3;
    SCOPED_TRACE("cut at byte " + std::to_string(cut));
    if (std::find(fragments.begin(), fragments.end(), cut) != fragments.end()) continue;
    EXPECT_TRUE(refused_or_whole(log.substr(0, cut)));
    std::string zeros = log;  // of pages that never reached the disk
    std::fill(zeros.begin() + static_cast<std::ptrdiff_t>(cut), zeros.end(), '\0');
    refused_or_whole(zeros);
    if (HasFailure()) break;
  }
  if (!journal) return;
  for (std::size_t n = fragments.size() - 9; n < fragments.size(); ++n)
    EXPECT_FALSE(refused_or_whole(log.substr(0, fragments[n]))) << "the journal has the rest";
}

}  // namespace
}  // namespace carillon::queue
