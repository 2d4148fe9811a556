// What is RocksStore's own: its directory, full disks, damaged files, the space it takes. What it keeps in a crash:
// rocks_crash_test.cpp.

#include "carillon/queue/rocks_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "queue/second_self.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

constexpr RocksStoreOptions kSmall{.write_buffer = 512 << 10, .read_cache = 1 << 20, .large_body = 4 << 10};

JobRecord job(JobId id) {
  return {.id = id, .tube = 1, .priority = 0, .due = 1'000 + id, .ttr = 1'000, .created = 1, .history = {}};
}

// Bytes that do not compress, and tell the job.
std::string body_of(JobId id, std::size_t size) {
  std::mt19937_64 random(id);
  std::string body(size, '\0');
  for (char& byte : body) byte = static_cast<char>(random());
  return body;
}

Sequence put(Store& store, JobId id, std::size_t size = 100) {
  const std::string body = body_of(id, size);
  return store.append({.jobs = {{{}, job(id), body}}, .tubes = {{1, "default", id, 0}}, .watermarks = {}});
}

Sequence erase(Store& store, JobId id) {
  return store.append({.jobs = {{job(id), {}, {}}}, .tubes = {}, .watermarks = {}});
}

// What `action` complains of; empty: nothing.
std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const StoreError& error) {
    return error.what();
  }
  return "";
}

std::string opening_complaint(const std::string& path) {
  return complaint([&] { RocksStore store(path); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
}

std::vector<fs::path> files_with(const std::string& directory, const std::string& extension) {
  std::vector<fs::path> found;
  for (const auto& file : fs::directory_iterator(directory)) {
    if (file.path().extension() == extension) found.push_back(file.path());
  }
  return found;
}

// --- The directory.

TEST(RocksDirectory, IsMadeWithThoseAboveIt) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a/b/c/";
  {
    RocksStore store(path);
    put(store, 1);
    EXPECT_EQ(store.opening_note(), "");
  }
  EXPECT_EQ(RocksStore(path).find(1), job(1));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0700));
}

TEST(RocksDirectory, ThatIsAFileIsRefused) {
  const TemporaryDirectory directory;
  write(directory / "file", "");
  EXPECT_EQ(opening_complaint(directory / "file"), "data directory " + (directory / "file") + " is not a directory");
  EXPECT_EQ(opening_complaint(directory / "file/data"), "data directory " + (directory / "file/data") +
                                                            " cannot be made: " + (directory / "file/data") +
                                                            ": Not a directory");
  EXPECT_EQ(opening_complaint(""), "the data directory's name is empty");
}

TEST(RocksDirectory, ThatIsNotWritableIsRefused) {
  if (SecondSelf::is_this()) {
    if (::geteuid() == 0 && ::setuid(65'534) != 0) FAIL();
    const std::string path = SecondSelf::argument();
    EXPECT_EQ(opening_complaint(path), "data directory " + path + " is not writable: Permission denied");
    EXPECT_EQ(opening_complaint(path + "/new"),
              "data directory " + path + "/new cannot be made: " + path + "/new: Permission denied");
    return;
  }
  const TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms(0755));
  fs::create_directory(directory / "data");
  fs::permissions(directory / "data", fs::perms(0555));
  EXPECT_EQ(SecondSelf(directory / "data").wait(), 0);
}

TEST(RocksDirectory, InUseByAnotherProcessIsRefusedUntilThatIsGone) {
  if (SecondSelf::is_this()) {
    RocksStore store(SecondSelf::argument());
    put(store, 1);
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
  EXPECT_EQ(RocksStore(directory / "data").find(1), job(1));
}

TEST(RocksDirectory, IsOpenOnceInAProcess) {
  const TemporaryDirectory directory;
  const RocksStore store(directory / "data");
  EXPECT_EQ(opening_complaint(directory / "data"),
            "data directory " + (directory / "data") + " is open already in this process");
}

TEST(RocksDirectory, OfOtherThingsIsRefusedAndLeftAlone) {
  const TemporaryDirectory directory;
  write(directory / "notes.txt", "dear diary");
  EXPECT_EQ(opening_complaint(directory.path()),
            "data directory " + directory.path().string() +
                " is neither empty nor a data directory of Carillon's: there is notes.txt in it");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1);
}

TEST(RocksDirectory, ThatLacksItsFirstFileIsRefused) {
  const TemporaryDirectory directory;
  { RocksStore store(directory / "data"); }
  fs::remove(directory / "data/CURRENT");
  EXPECT_TRUE(contains(opening_complaint(directory / "data"), "is neither empty nor a data directory of Carillon's"));
}

TEST(RocksDirectory, WhoseMakingWasInterruptedIsMadeAgain) {
  const TemporaryDirectory directory;
  for (const char* name : {"owner.pid", "LOCK", "LOG", "IDENTITY", "MANIFEST-000001", "000001.dbtmp"})
    write(directory / name, "");
  RocksStore store(directory.path());
  put(store, 1);
  EXPECT_EQ(store.find(1), job(1));
}

TEST(RocksDirectory, OfAnotherProgramIsRefused) {
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* database = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory / "data", &database).ok());
  ASSERT_TRUE(database->Put({}, "key", "value").ok());
  delete database;
  EXPECT_EQ(opening_complaint(directory / "data"),
            "data directory " + (directory / "data") + " was not made by Carillon: it says no format");

  ASSERT_TRUE(rocksdb::DB::Open(options, directory / "other", &database).ok());
  rocksdb::ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(database->CreateColumnFamily({}, "theirs", &family).ok());
  ASSERT_TRUE(database->DestroyColumnFamilyHandle(family).ok());
  delete database;
  EXPECT_EQ(opening_complaint(directory / "other"),
            "data directory " + (directory / "other") +
                " was made by a newer version of Carillon, or by another program: it has "
                "a column family 'theirs'");
}

TEST(RocksDirectory, OfANewerFormatIsRefused) {
  const TemporaryDirectory directory;
  { RocksStore store(directory / "data"); }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : {"default", "jobs", "index", "bodies"})
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* database = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, directory / "data", families, &handles, &database).ok());
  ASSERT_TRUE(database->Put({}, "f", "carillon-queue 3").ok());
  for (rocksdb::ColumnFamilyHandle* handle : handles) ASSERT_TRUE(database->DestroyColumnFamilyHandle(handle).ok());
  delete database;
  EXPECT_EQ(opening_complaint(directory / "data"),
            "data directory " + (directory / "data") +
                " was made by another version of Carillon: its format is 'carillon-queue 3', "
                "and this version knows 'carillon-queue 1' and 'carillon-queue 2'");
}

// --- Damaged files.

// Jobs 1 to `count` in files, not in the log.
void make_files(const std::string& path, JobId count, std::size_t body) {
  {
    RocksStore store(path, kSmall);
    for (JobId id = 1; id <= count; ++id) put(store, id, body);
  }
  RocksStore again(path, kSmall);  // writes what was in the log to files
}

std::string reading_complaint(const std::string& path, JobId count, std::size_t body) {
  return complaint([&] {
    const RocksStore store(path, kSmall);
    EXPECT_EQ(store.recover().tubes.size(), 1u);
    EXPECT_EQ(store.scan_due(1, {}, count + 1).size(), count);
    for (JobId id = 1; id <= count; ++id) {
      EXPECT_EQ(store.find(id), job(id));
      EXPECT_TRUE(store.body(id) == body_of(id, body));
    }
  });
}

TEST(RocksDamage, ToADataFileIsReported) {
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

TEST(RocksDamage, ThatADataFileIsMissingIsReported) {
  const TemporaryDirectory directory;
  make_files(directory / "data", 100, 200);
  const std::vector<fs::path> files = files_with(directory / "data", ".sst");
  ASSERT_FALSE(files.empty());
  fs::remove(files.front());
  EXPECT_TRUE(
      contains(opening_complaint(directory / "data"), "data directory " + (directory / "data") + " cannot be opened"));
}

// --- Disks that fail.

void set_limit(int resource, rlim_t limit) {
  rlimit both{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &both);
  both.rlim_cur = std::min(limit, both.rlim_max);
  EXPECT_EQ(::setrlimit(static_cast<__rlimit_resource>(resource), &both), 0);
}

void expect_jobs(const Store& store, JobId count, std::size_t body) {
  EXPECT_EQ(store.scan_due(1, {}, count + 10).size(), count);
  EXPECT_EQ(store.recover().tubes, (std::vector<TubeRecord>{{1, "default", count, 0}}));
  for (JobId id = 1; id <= count; ++id) {
    EXPECT_EQ(store.find(id), job(id));
    EXPECT_TRUE(store.body(id) == body_of(id, body)) << id;
  }
  EXPECT_EQ(store.find(count + 1), std::nullopt);
}

// Without a journal, and with one and a sync after each put, which never fails.
class RocksFullDisk : public testing::TestWithParam<bool> {
 protected:
  RocksStoreOptions options(RocksStoreOptions others = kSmall) const {
    others.journal = GetParam();
    return others;
  }

  Sequence put(Store& store, JobId id, std::size_t body) const {
    const Sequence sequence = queue::put(store, id, body);
    if (GetParam()) {
      EXPECT_EQ(store.sync(), sequence);
    }
    return sequence;
  }

  // Puts jobs from `first` on until that fails, with `what`. Returns the first job that was not put.
  JobId put_until_refused(Store& store, JobId first, std::size_t body, const std::string& what) const {
    JobId id = first;
    std::string complained;
    while (complained.empty()) {
      complained = complaint([&] { put(store, id, body); });
      if (complained.empty()) ++id;
    }
    EXPECT_TRUE(contains(complained, "cannot be written")) << complained;
    EXPECT_TRUE(contains(complained, what)) << complained;
    return id;
  }

  // Puts a job, if not at once then soon.
  void put_soon(Store& store, JobId id, std::size_t body) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (complaint([&] { put(store, id, body); }).empty()) return;
      std::this_thread::yield();
    }
    FAIL() << "the store did not recover";
  }
};

INSTANTIATE_TEST_SUITE_P(Journal, RocksFullDisk, testing::Bool(),
                         [](const auto& test) { return test.param ? "With" : "Without"; });

constexpr rlim_t kNoLimit = RLIM_INFINITY;

TEST_P(RocksFullDisk, FailsTheAppendAtOnceAndTheNextOnesWorkOnceThereIsRoom) {
  constexpr std::size_t kBody = 10'000;
  if (SecondSelf::is_this()) {
    std::signal(SIGXFSZ, SIG_IGN);
    set_limit(RLIMIT_FSIZE, GetParam() ? 5 << 20 : 1 << 20);  // of each file: the log meets it first
    RocksStore store(SecondSelf::argument(), options({}));
    const JobId refused = put_until_refused(store, 1, kBody, "File too large");
    EXPECT_GT(refused, 90u);
    expect_jobs(store, refused - 1, kBody);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(put_until_refused(store, refused, kBody, "File too large"), refused);
    EXPECT_EQ(store.sync(), refused - 1);
    set_limit(RLIMIT_FSIZE, kNoLimit);
    EXPECT_EQ(put(store, refused, kBody), refused);
    EXPECT_EQ(store.sync(), refused);
    SecondSelf::tell(refused);
    return;
  }
  const TemporaryDirectory directory;
  SecondSelf writer(directory / "data");
  const auto last = writer.read<JobId>();
  ASSERT_TRUE(last);
  EXPECT_EQ(writer.wait(), 0);
  expect_jobs(RocksStore(directory / "data", options({})), *last, kBody);
}

// As above, but it is not the log that finds no room: no new file can be made, neither the next log nor one to flush to, since
// the directory is not where it was.
TEST_P(RocksFullDisk, FailsTheAppendWhenAFlushFailsAndGoesOnAfterwards) {
  constexpr std::size_t kBody = 1'000;
  const TemporaryDirectory directory;
  JobId last = 0;
  {
    RocksStore store(directory / "data", options());
    put(store, 1, kBody);
    fs::rename(directory / "data", directory / "elsewhere");
    const JobId refused = put_until_refused(store, 2, kBody, "No such file or directory");
    EXPECT_GT(refused, 100u);
    expect_jobs(store, refused - 1, kBody);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(put_until_refused(store, refused, kBody, "No such file or directory"), refused);
    }
    fs::rename(directory / "elsewhere", directory / "data");
    put_soon(store, refused, kBody);
    last = 2 * refused;
    for (JobId id = refused + 1; id <= last; ++id) put(store, id, kBody);
    expect_jobs(store, last, kBody);
  }
  expect_jobs(RocksStore(directory / "data", options()), last, kBody);
}

// A real file system without space: what gives out first is a matter of chance.
TEST_P(RocksFullDisk, OfMemoryIsSurvived) {
  constexpr std::size_t kBody = 3'000;
  if (SecondSelf::is_this()) {
    const std::string path = SecondSelf::argument();
    const bool mounted = ::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("none", path.c_str(), "tmpfs", 0, GetParam() ? "size=28m" : "size=24m") == 0;
    SecondSelf::tell(mounted);
    if (!mounted) return;
    JobId last = 0;
    for (int round = 0; round < 3; ++round) {
      write(path + "/ballast", std::string(6 << 20, 'x'));
      const std::string data = path + "/data" + std::to_string(round);
      {
        RocksStore store(data, options());
        last = put_until_refused(store, 1, kBody, "No space left on device");
        expect_jobs(store, last - 1, kBody);
        fs::remove(path + "/ballast");
        put_soon(store, last, kBody);
        for (int i = 0; i < 100; ++i) put_soon(store, ++last, kBody);
        expect_jobs(store, last, kBody);
      }
      expect_jobs(RocksStore(data, options()), last, kBody);
      fs::remove_all(data);
    }
    return;
  }
  const TemporaryDirectory directory;
  SecondSelf writer(directory.path());
  const auto mounted = writer.read<bool>();
  ASSERT_TRUE(mounted);
  EXPECT_EQ(writer.wait(), 0);
  if (!*mounted) GTEST_SKIP() << "a small file system cannot be mounted here";
}

// The descriptor of the open log becomes one that can neither be written to nor synced, until this is destroyed.
class BrokenLog {
 public:
  BrokenLog() {
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const fs::path target = fs::read_symlink(entry.path(), ignored);
      if (target.extension() == ".log") log_ = std::stoi(entry.path().filename().string());
    }
    EXPECT_GE(log_, 0);
    int pipe[2];
    EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    kept_ = ::fcntl(log_, F_DUPFD_CLOEXEC, 0);
    ::dup2(pipe[1], log_);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~BrokenLog() {
    ::dup2(kept_, log_);
    ::close(kept_);
  }
  BrokenLog(const BrokenLog&) = delete;
  BrokenLog& operator=(const BrokenLog&) = delete;

 private:
  int log_ = -1;
  int kept_ = -1;
};

TEST(RocksBrokenDisk, AfterAFailedSyncNothingMoreIsWritten) {
  const TemporaryDirectory directory;
  {
    RocksStore store(directory / "data");
    put(store, 1);
    EXPECT_EQ(store.sync(), 1u);
    put(store, 2);
    const std::string cannot = "data directory " + (directory / "data") + " cannot be synced: ";
    {
      const BrokenLog broken;
      EXPECT_TRUE(contains(complaint([&] { store.sync(); }), cannot));
    }
    const std::string final = "nothing more is written until it is opened anew";
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(contains(complaint([&] { store.sync(); }), final));
      EXPECT_TRUE(contains(complaint([&] { put(store, 3); }), cannot));
      EXPECT_TRUE(contains(complaint([&] { put(store, 3); }), final));
    }
    EXPECT_EQ(store.find(2), job(2));
    EXPECT_EQ(store.find(3), std::nullopt);
  }
  RocksStore store(directory / "data");
  EXPECT_EQ(store.find(1), job(1));
  EXPECT_EQ(put(store, 3), 1u);
  EXPECT_EQ(store.sync(), 1u);
}

TEST(RocksBrokenDisk, AfterAFailedWriteToTheLogNothingMoreIsWritten) {
  const TemporaryDirectory directory;
  {
    RocksStore store(directory / "data");
    put(store, 1);
    {
      const BrokenLog broken;
      EXPECT_TRUE(contains(complaint([&] { put(store, 2); }), "cannot be written"));
    }
    EXPECT_EQ(store.find(2), std::nullopt);
    EXPECT_TRUE(contains(complaint([&] { put(store, 2); }), "nothing more is written until it is opened anew"));
    EXPECT_TRUE(contains(complaint([&] { store.sync(); }), "nothing more is written until it is opened anew"));
    EXPECT_EQ(store.find(1), job(1));
  }
  RocksStore store(directory / "data");
  EXPECT_EQ(store.find(1), job(1));
  EXPECT_EQ(store.find(2), std::nullopt);
  put(store, 2);
  EXPECT_EQ(store.scan_due(1, {}, 10).size(), 2u);
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

TEST(RocksCost, OpeningDoesNotReadTheJobs) {
  const TemporaryDirectory directory;
  {
    RocksStore store(directory / "data", kSmall);
    for (JobId id = 1; id <= 40'000; ++id) put(store, id, 1'000);
  }
  const std::uint64_t before = bytes_read_by_this_process();
  const RocksStore store(directory / "data", kSmall);
  EXPECT_EQ(store.recover().tubes.size(), 1u);
  EXPECT_EQ(store.scan_due(1, {}, 10).size(), 10u);
  EXPECT_LT(bytes_read_by_this_process() - before, 8u << 20);  // of 40 MB
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

// Jobs that come and go, 100 at a time, small and large: what is gone takes no space for long.
TEST(RocksCost, SpaceOfErasedJobsIsGivenBack) {
  const TemporaryDirectory directory;
  std::uintmax_t highest = 0;
  {
    RocksStore store(directory / "data", kSmall);
    for (JobId id = 1; id <= 20'000; ++id) {
      put(store, id, id % 10 == 0 ? 20'000 : 500);
      if (id > 100) erase(store, id - 100);
      if (id % 1'000 == 0) highest = std::max(highest, space_taken(directory / "data"));
    }
    EXPECT_EQ(store.scan_due(1, {}, 1'000).size(), 100u);
  }
  EXPECT_LT(highest, 40u << 20);  // of 49 MB that were put, and as much again in the log
  EXPECT_LT(space_taken(directory / "data"), 30u << 20);
}

// --- Threads.

TEST(RocksThreads, SyncsBesideAppends) {
  const TemporaryDirectory directory;
  RocksStore store(directory / "data", kSmall);
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
  for (JobId id = 1; id <= 5'000; ++id) appended = put(store, id, 300);
  done = true;
  syncing.join();
  EXPECT_EQ(store.sync(), 5'000u);
}

}  // namespace
}  // namespace carillon::queue
