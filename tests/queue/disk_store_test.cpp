// What DiskStore has beyond other stores: its directory, damaged files of the state, the space it
// takes. Crashes are tested in disk_crash_test.cpp, full and failing disks in disk_full_test.cpp.

#include "carillon/queue/disk_store.h"
#include "carillon/queue/store_check.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/perf_context.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "queue/numbered_jobs.h"
#include "queue/second_self.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

constexpr DiskStoreOptions kSmall{.recent = 512 << 10,
                                  .read_cache = 1 << 20,
                                  .large_body = 4 << 10,
                                  .log_bytes = 512 << 10,
                                  .log_segment_bytes = 64 << 10};

std::string opening_complaint(const std::string& path) {
  return complaint([&] { DiskStore store(path, {}); });
}

std::vector<fs::path> files_with(const std::string& directory, const std::string& extension) {
  std::vector<fs::path> found;
  for (const auto& file : fs::directory_iterator(directory)) {
    if (file.path().extension() == extension) found.push_back(file.path());
  }
  return found;
}

// --- The directory.

TEST(DiskDirectory, IsMadeWithThoseAboveIt) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a/b/c/";
  {
    DiskStore store(path, {});
    put(store, 1);
  }
  EXPECT_EQ(DiskStore(path, {}).find(1), job(1));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0700));
}

TEST(DiskDirectory, AFileIsRefused) {
  const TemporaryDirectory directory;
  write(directory / "file", "");
  EXPECT_EQ(opening_complaint(directory / "file"),
            "data directory " + (directory / "file") + " is not a directory");
  EXPECT_EQ(opening_complaint(directory / "file/data"),
            "data directory " + (directory / "file/data") +
                " cannot be made: " + (directory / "file/data") + ": Not a directory");
  EXPECT_EQ(opening_complaint(""), "the data directory's name is empty");
}

TEST(DiskDirectory, AnUnwritableOneIsRefused) {
  if (SecondSelf::is_this()) {
    if (::geteuid() == 0 && ::setuid(65'534) != 0) FAIL();
    const std::string path = SecondSelf::argument();
    EXPECT_EQ(opening_complaint(path),
              "data directory " + path + " is not writable: Permission denied");
    EXPECT_EQ(opening_complaint(path + "/new"), "data directory " + path + "/new cannot be made: " +
                                                    path + "/new: Permission denied");
    return;
  }
  const TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms(0755));
  fs::create_directory(directory / "data");
  fs::permissions(directory / "data", fs::perms(0555));
  EXPECT_EQ(SecondSelf(directory / "data").wait(), 0);
}

TEST(DiskDirectory, InUseByAnotherProcessIsRefusedUntilThatIsGone) {
  if (SecondSelf::is_this()) {
    DiskStore store(SecondSelf::argument(), {});
    put(store, 1);
    store.sync();
    SecondSelf::tell(true);
    ::pause();
  }
  const TemporaryDirectory directory;
  SecondSelf other(directory / "data");
  ASSERT_TRUE(other.read<bool>());
  EXPECT_EQ(opening_complaint(directory / "data"),
            "data directory " + (directory / "data") + " is in use by another process (pid " +
                std::to_string(other.process()) + "): stop it, or use another directory");
  other.kill();
  EXPECT_EQ(DiskStore(directory / "data", {}).find(1), job(1));
}

TEST(DiskDirectory, IsInUseAlsoWithoutTheFilesThatAreLocked) {
  const TemporaryDirectory directory;
  {
    const DiskStore store(directory / "data", {});
    for (const char* const name : {"owner.pid", "LOCK"})
      ASSERT_TRUE(fs::remove((directory / "data/") + name));
    for (int attempt = 0; attempt < 2; ++attempt)
      EXPECT_EQ(opening_complaint(directory / "data"),
                "data directory " + (directory / "data") +
                    " is in use by another process: stop it, or use another directory");
    EXPECT_FALSE(fs::exists(directory / "data/owner.pid"));
  }
  DiskStore(directory / "data", {}).find(1);
}

TEST(DiskDirectory, IsOpenOnceInAProcess) {
  const TemporaryDirectory directory;
  const DiskStore store(directory / "data", {});
  EXPECT_EQ(opening_complaint(directory / "data"),
            "data directory " + (directory / "data") +
                " is open already, in this process or in another container (pid " +
                std::to_string(::getpid()) + ")");
}

TEST(DiskDirectory, OneWithOtherThingsIsRefusedAndLeftAlone) {
  const TemporaryDirectory directory;
  write(directory / "notes.txt", "dear diary");
  EXPECT_EQ(opening_complaint(directory.path()),
            "data directory " + directory.path().string() +
                " is neither empty nor a data directory of Carillon's: there is notes.txt in it");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1);
}

TEST(DiskDirectory, OneThatLacksItsFirstFileIsRefused) {
  const TemporaryDirectory directory;
  { DiskStore store(directory / "data", {}); }
  fs::remove(directory / "data/CURRENT");
  EXPECT_TRUE(contains(opening_complaint(directory / "data"), "no file CURRENT"));
}

TEST(DiskDirectory, WhoseMakingWasInterruptedIsMadeAgain) {
  const TemporaryDirectory directory;
  for (const char* name :
       {"owner.pid", "LOCK", "LOG", "IDENTITY", "MANIFEST-000001", "000001.dbtmp"})
    write(directory / name, "");
  DiskStore store(directory.path(), {});
  put(store, 1);
  EXPECT_EQ(store.find(1), job(1));
}

TEST(DiskDirectory, OneOfAnotherProgramIsRefused) {
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* database = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory / "data", &database).ok());
  ASSERT_TRUE(database->Put({}, "key", "value").ok());
  delete database;
  EXPECT_EQ(
      opening_complaint(directory / "data"),
      "data directory " + (directory / "data") + " was not made by Carillon: it says no format");

  ASSERT_TRUE(rocksdb::DB::Open(options, directory / "other", &database).ok());
  rocksdb::ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(database->CreateColumnFamily({}, "theirs", &family).ok());
  ASSERT_TRUE(database->DestroyColumnFamilyHandle(family).ok());
  delete database;
  EXPECT_EQ(
      opening_complaint(directory / "other"),
      "data directory " + (directory / "other") +
          " was made by a newer version of Carillon, or by another program: Invalid argument: "
          "Column families not opened: theirs");
}

TEST(DiskDirectory, OneOfAnotherFormatIsRefused) {
  const TemporaryDirectory directory;
  { DiskStore store(directory / "data", {}); }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : {"default", "jobs", "index", "bodies", "keys", "schedules"})
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* database = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, directory / "data", families, &handles, &database).ok());
  ASSERT_TRUE(database->Put({}, "f", "carillon-queue 2").ok());
  ASSERT_TRUE(database->Flush({}).ok());
  for (rocksdb::ColumnFamilyHandle* handle : handles)
    ASSERT_TRUE(database->DestroyColumnFamilyHandle(handle).ok());
  delete database;
  const std::string why =
      "data directory " + (directory / "data") +
      " was made by another version of Carillon: its format is 'carillon-queue 2', "
      "and this version knows 'carillon-queue 1'";
  EXPECT_EQ(opening_complaint(directory / "data"), why);
  const auto progress = [](std::uint64_t, std::uint64_t) { return true; };
  const StoreReport report = check_store(directory / "data", progress);
  EXPECT_FALSE(report.can_be_salvaged);
  EXPECT_TRUE(contains(report.damages.back(), why));
  const auto salvage = [&] {
    salvage_store(directory / "data", directory / "new", progress, [](const LostJob&) {});
  };
  EXPECT_EQ(complaint(salvage), why);
}

// --- Damaged files.

// Makes a store with the jobs 1 to `count` in files of the state: closing it writes them.
void make_files(const std::string& path, JobId count, std::size_t body) {
  DiskStore store(path, kSmall);
  for (JobId id = 1; id <= count; ++id) put(store, id, body);
}

std::string reading_complaint(const std::string& path, JobId count, std::size_t body) {
  return complaint([&] {
    const DiskStore store(path, kSmall);
    EXPECT_EQ(store.recover().tubes.size(), 1u);
    EXPECT_EQ(store.scan_due(1, {}, count + 1).size(), count);
    for (JobId id = 1; id <= count; ++id) {
      EXPECT_EQ(store.find(id), job(id));
      EXPECT_TRUE(store.body(id) == body_of(id, body));
    }
  });
}

TEST(DiskDamage, ToADataFileIsReported) {
  for (const std::string extension : {".sst", ".blob"}) {
    const TemporaryDirectory directory;
    const std::size_t body = extension == ".blob" ? 20'000 : 200;
    make_files(directory / "data", 100, body);
    ASSERT_EQ(reading_complaint(directory / "data", 100, body), "");
    const std::vector<fs::path> files = files_with(directory / "data", extension);
    ASSERT_FALSE(files.empty());
    for (const fs::path& path : files) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(fs::file_size(path) / 3));
      file << "damage";
    }
    const std::string complaint = reading_complaint(directory / "data", 100, body);
    EXPECT_TRUE(contains(complaint, "data directory " + (directory / "data"))) << complaint;
    EXPECT_TRUE(contains(complaint, "Corruption")) << complaint;
  }
}

// A large body, whose error does not say where it lies.
TEST(DiskDamage, ToABodyNamesTheFileAndThePlace) {
  const TemporaryDirectory directory;
  make_files(directory / "data", 100, 20'000);
  const std::vector<fs::path> files = files_with(directory / "data", ".blob");
  ASSERT_FALSE(files.empty());
  {
    std::fstream file(files[0], std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(files[0]) / 3));
    file << "damage";
  }
  const DiskStore store(directory / "data", {});
  std::size_t damaged = 0;
  for (JobId id = 1; id <= 100; ++id) {
    try {
      store.body(id);
    } catch (const StoreDamage& why) {
      ++damaged;
      EXPECT_TRUE(contains(why.what(), " in " + files[0].filename().string() + " offset "))
          << why.what();
    }
  }
  EXPECT_GT(damaged, 0u);
}

TEST(DiskDamage, AMissingDataFileIsReported) {
  const TemporaryDirectory directory;
  make_files(directory / "data", 100, 200);
  const std::vector<fs::path> files = files_with(directory / "data", ".sst");
  ASSERT_FALSE(files.empty());
  fs::remove(files.front());
  EXPECT_TRUE(contains(opening_complaint(directory / "data"),
                       "data directory " + (directory / "data") + " cannot be opened"));
}

// --- Cost.

std::uint64_t bytes_read_by_this_process() {
  std::ifstream file("/proc/self/io");
  std::string label;
  std::uint64_t bytes = 0;
  file >> label >> bytes;
  EXPECT_EQ(label, "rchar:");
  return bytes;
}

TEST(DiskCost, OpeningDoesNotReadTheJobs) {
  const TemporaryDirectory directory;
  {
    DiskStore store(directory / "data", kSmall);
    for (JobId id = 1; id <= 40'000; ++id) put(store, id, 1'000);
  }
  const std::uint64_t before = bytes_read_by_this_process();
  const DiskStore store(directory / "data", kSmall);
  EXPECT_EQ(store.recover().tubes.size(), 1u);
  EXPECT_EQ(store.scan_due(1, {}, 10).size(), 10u);
  EXPECT_LT(bytes_read_by_this_process() - before, 8u << 20);  // the bodies have 40 MB
}

// Wherever a scan begins: the jobs that were erased there are passed once.
TEST(DiskCost, ScansPassErasedJobsOnce) {
  const TemporaryDirectory directory;
  DiskStore store(directory / "data", {});
  constexpr JobId kLast = 10'000;
  for (JobId id = 1; id <= kLast; ++id) put(store, id, 10);
  for (JobId id = 100; id < kLast; ++id) erase(store, id);
  const std::uint64_t& passed = rocksdb::get_perf_context()->internal_delete_skipped_count;
  const auto scan = [&](JobId from, std::size_t limit) {
    const std::uint64_t before = passed;
    EXPECT_FALSE(store.scan_due(1, {job(from).due, from}, limit).empty());
    return passed - before;
  };
  EXPECT_EQ(scan(1, 99), 0u) << "it ends with the last job that it returns";
  EXPECT_EQ(scan(100, 16), kLast - 100);
  EXPECT_EQ(scan(100, 16), 0u);
  EXPECT_EQ(scan(5'000, 16), 0u);
}

std::uintmax_t space_taken(const std::string& path) {
  std::uintmax_t bytes = 0;
  for (const auto& file : fs::directory_iterator(path)) {
    std::error_code gone;
    const std::uintmax_t size = fs::file_size(file.path(), gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

// Small and large jobs come and go; 100 live at any time. Erased ones soon take no space.
TEST(DiskCost, SpaceOfErasedJobsIsGivenBack) {
  const TemporaryDirectory directory;
  std::uintmax_t highest = 0;
  {
    DiskStore store(directory / "data", kSmall);
    for (JobId id = 1; id <= 20'000; ++id) {
      put(store, id, id % 10 == 0 ? 20'000 : 500);
      if (id > 100) erase(store, id - 100);
      if (id % 1'000 == 0) highest = std::max(highest, space_taken(directory / "data"));
    }
    EXPECT_EQ(store.scan_due(1, {}, 1'000).size(), 100u);
  }
  EXPECT_LT(highest, 16u << 20) << "of 49 MB that were put, and as much again in the log";
  EXPECT_LT(space_taken(directory / "data"), 8u << 20);
}

// On a disk that is nearly full nothing is put, so nothing comes together that would be flushed.
TEST(DiskCost, SpaceOfErasedJobsIsGivenBackWithoutAnotherAppendWhenItIsSaved) {
  const TemporaryDirectory directory;
  DiskStore store(directory / "data", {.recent = 4 << 20, .log_segment_bytes = 64 << 10});
  constexpr JobId kMany = 400;
  for (JobId id = 1; id <= kMany; ++id) put(store, id, 30'000);
  for (JobId id = 1; id <= kMany; ++id) erase(store, id);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (space_taken(directory / "data") > 1 << 20) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << space_taken(directory / "data");
    store.save_space(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  store.save_space(false);
  put(store, kMany + 1);
  EXPECT_EQ(store.sync(), 2 * kMany + 1);
  EXPECT_EQ(store.scan_due(1, {}, 10).size(), 1U);
}

// One job of ten is left in each file of large bodies: RocksDB copies it, and the file goes.
TEST(DiskCost, SpaceOfFilesInWhichFewJobsLiveIsGivenBackWhenItIsSaved) {
  const TemporaryDirectory directory;
  DiskStore store(directory / "data", {.recent = 4 << 20, .log_segment_bytes = 64 << 10});
  constexpr JobId kMany = 400;
  for (JobId id = 1; id <= kMany; ++id) put(store, id, 30'000);
  for (JobId id = 1; id <= kMany; ++id) {
    if (id % 10 != 0) erase(store, id);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (space_taken(directory / "data") > 3 << 20) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << space_taken(directory / "data");
    store.save_space(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  while (!store.save_space(false)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(store.scan_due(1, {}, kMany).size(), kMany / 10);
  for (JobId id = 10; id <= kMany; id += 10) EXPECT_EQ(store.body(id, 0).size(), 30'000U);
}

// --- Threads.

class DiskThreads : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(DurableWrites, DiskThreads, testing::Bool(),
                         [](const auto& test) { return test.param ? "Yes" : "No"; });

TEST_P(DiskThreads, SyncsBesideAppendsWritesAndReads) {
  const TemporaryDirectory directory;
  DiskStoreOptions options = kSmall;
  options.durable_writes = GetParam();
  DiskStore store(directory / "data", options);
  std::atomic<bool> done = false;
  std::atomic<Sequence> appended = 0;
  std::thread syncing([&] {
    Sequence last = 0;
    while (!done) {
      const Sequence before = appended;
      const Sequence durable = store.sync();
      EXPECT_GE(durable, before);
      EXPECT_GE(durable, last);
      last = durable;
    }
  });
  for (JobId id = 1; id <= 2'000; ++id) {
    appended = put(store, id, 300);
    if (id % 5 == 0) store.write();
    if (id % 7 == 0) {
      EXPECT_TRUE(store.body(id - 3) == body_of(id - 3, 300));
    }
    if (id % 100 == 0) {
      EXPECT_EQ(store.find(id - 3), job(id - 3));
    }
  }
  done = true;
  syncing.join();
  EXPECT_EQ(store.sync(), 2'000u);
}

bool has_room_soon(DiskStore& store) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!store.has_room() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return store.has_room();
}

// The flush that makes room begins though nobody appends.
TEST(DiskStore, HasRoomAgainWhenAFlushHasEnded) {
  const TemporaryDirectory directory;
  DiskStore store(directory / "data", {.recent = 16 << 10});
  EXPECT_TRUE(has_room_soon(store)) << "the first segment of the log is made";
  put(store, 1, 64 << 10);
  EXPECT_FALSE(store.has_room());
  EXPECT_TRUE(has_room_soon(store));
  EXPECT_EQ(store.find(1), job(1));
}

// It would write the window first, and then wait for the segment after the next.
TEST(DiskStore, HasNoRoomForAnAppendThatWouldFillASegmentAtOnce) {
  const TemporaryDirectory directory;
  DiskStore store(directory / "data", {.log_segment_bytes = 1 << 20});
  EXPECT_TRUE(has_room_soon(store)) << "the first segment of the log is made";
  JobId jobs = 0;
  while (store.has_room() && jobs < 100) put(store, ++jobs, 60'000);
  EXPECT_GT(jobs * 60'000, 800u << 10);
  EXPECT_LT(jobs * 60'000, 1u << 20);
  store.write();
  EXPECT_TRUE(has_room_soon(store));
}

}  // namespace
}  // namespace carillon::queue
