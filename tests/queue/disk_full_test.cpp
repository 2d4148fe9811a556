// DiskStore on disks that are full, and on disks that fail. With and without durable writes: what
// the log writes is the same, but not when it fails.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/broken_log.h"
#include "queue/numbered_jobs.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

void set_limit(int resource, rlim_t limit) {
  rlimit both{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &both);
  both.rlim_cur = std::min(limit, both.rlim_max);
  EXPECT_EQ(::setrlimit(static_cast<__rlimit_resource>(resource), &both), 0);
}

// While this lives, no file can be opened. (Sanitizers open some to read an exception, so it must
// be gone by then.)
struct NoDescriptors {
  NoDescriptors() {
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    set_limit(RLIMIT_NOFILE, static_cast<rlim_t>(lowest_free));
  }
  ~NoDescriptors() { set_limit(RLIMIT_NOFILE, RLIM_INFINITY); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
};

void expect_jobs(const Store& store, JobId count, std::size_t body) {
  EXPECT_EQ(store.scan_due(1, {}, count + 10).size(), count);
  for (JobId id = 1; id <= count; ++id) {
    EXPECT_EQ(store.find(id), job(id));
    EXPECT_TRUE(store.body(id) == body_of(id, body)) << id;
  }
  EXPECT_EQ(store.find(count + 1), std::nullopt);
}

void expect_reopened(const Store& store, JobId count, std::size_t body) {
  EXPECT_EQ(store.recover().tubes, (std::vector<TubeRecord>{{1, "default", count, 0}}));
  expect_jobs(store, count, body);
}

// The names that RocksDB will give its next tables.
std::vector<fs::path> tables_to_come(const fs::path& directory) {
  unsigned long last = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".sst")
      last = std::max(last, std::stoul(entry.path().stem().string()));
  }
  std::vector<fs::path> paths;
  for (unsigned long n = last + 1; n <= last + 50; ++n) {
    const std::string number = std::to_string(n);
    paths.push_back(directory / (std::string(6 - number.size(), '0') + number + ".sst"));
  }
  return paths;
}

class DiskFull : public testing::TestWithParam<bool> {
 protected:
  // The state is flushed all the time.
  DiskStoreOptions small() const {
    return {.recent = 512 << 10,
            .read_cache = 1 << 20,
            .large_body = 4 << 10,
            .log_bytes = 512 << 10,
            .log_segment_bytes = 64 << 10,
            .durable_writes = GetParam()};
  }
  // The state is never flushed. Then only the log can fail.
  DiskStoreOptions log_alone() const {
    return {.log_segment_bytes = 64 << 10, .durable_writes = GetParam()};
  }

  // Puts jobs from `first` on, with a sync after each, until a put fails, with an error that
  // contains `what`. Returns the first job that was not put.
  static JobId put_until_refused(Store& store, JobId first, std::size_t body,
                                 const std::string& what) {
    JobId id = first;
    std::string complained;
    while (complained.empty()) {
      complained = complaint([&] { put(store, id, body); });
      if (!complained.empty()) break;
      ++id;
      store.sync();
    }
    EXPECT_TRUE(contains(complained, what)) << complained;
    EXPECT_EQ(store.failure(), "");
    return id;
  }

  // Puts a job, and tries again for up to 30 s if that fails.
  static void put_soon(Store& store, JobId id, std::size_t body) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (complaint([&] { put(store, id, body); }).empty()) {
        store.sync();
        return;
      }
      ASSERT_EQ(store.failure(), "");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL() << "the store did not recover";
  }
};

INSTANTIATE_TEST_SUITE_P(DurableWrites, DiskFull, testing::Bool(),
                         [](const auto& test) { return test.param ? "Yes" : "No"; });

// A change that needs a segment of its own, of more bytes than a file may have.
TEST_P(DiskFull, FailsTheAppendAtOnceAndTheNextOnesWork) {
  constexpr std::size_t kBody = 10'000;
  constexpr std::size_t kLargeBody = 300'000;
  if (SecondSelf::is_this()) {
    std::signal(SIGXFSZ, SIG_IGN);
    set_limit(RLIMIT_FSIZE, 256 << 10);
    DiskStore store(SecondSelf::argument(), log_alone());
    for (JobId id = 1; id <= 50; ++id) put(store, id, kBody);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(put_until_refused(store, 51, kLargeBody, "cannot be made: File too large"), 51U);
    expect_jobs(store, 50, kBody);
    EXPECT_EQ(store.sync(), 50U);
    EXPECT_EQ(put(store, 51, kBody), 51U) << "a refused change has no number";
    EXPECT_EQ(store.sync(), 51U);
    set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
    EXPECT_EQ(put(store, 52, kLargeBody), 52U);
    EXPECT_EQ(store.sync(), 52U);
    ::_exit(HasFailure() ? 1 : 0);  // what follows is read from the log
  }
  const TemporaryDirectory directory;
  EXPECT_EQ(SecondSelf(directory / "data").wait(), 0);
  const DiskStore store(directory / "data", log_alone());
  EXPECT_EQ(store.scan_due(1, {}, 100).size(), 52U);
  EXPECT_TRUE(store.body(51) == body_of(51, kBody));
  EXPECT_TRUE(store.body(52) == body_of(52, kLargeBody));
}

// Here the log cannot make another segment, because it gets no descriptor for it.
TEST_P(DiskFull, FailsTheAppendWhileTheLogCannotGrow) {
  constexpr std::size_t kBody = 1'000;
  if (SecondSelf::is_this()) {
    DiskStore store(SecondSelf::argument(), log_alone());
    put(store, 1, kBody);
    const auto put_without_descriptors = [&](JobId id) {
      const NoDescriptors none;
      put(store, id, kBody);
    };
    JobId refused = 1;
    std::string complained;
    while (complained.empty()) {
      ++refused;
      store.sync();
      complained = complaint([&] { put_without_descriptors(refused); });
    }
    // No segment can be made, or one that was made ahead cannot be opened.
    EXPECT_TRUE(contains(complained, ": Too many open files")) << complained;
    EXPECT_GT(refused, 10U);
    for (int i = 0; i < 10; ++i)
      EXPECT_FALSE(complaint([&] { put_without_descriptors(refused); }).empty());
    expect_jobs(store, refused - 1, kBody);
    EXPECT_EQ(store.failure(), "");
    const JobId last = 2 * refused;
    for (JobId id = refused; id <= last; ++id) put(store, id, kBody);
    expect_jobs(store, last, kBody);
    store.write();
    SecondSelf::tell(last);
    ::_exit(HasFailure() ? 1 : 0);
  }
  const TemporaryDirectory directory;
  SecondSelf writer(directory / "data");
  const auto last = writer.read<JobId>();
  ASSERT_TRUE(last);
  EXPECT_EQ(writer.wait(), 0);
  expect_reopened(DiskStore(directory / "data", log_alone()), *last, kBody);
}

// And here RocksDB cannot make a file, because a directory has its name. That is not a shortage:
// the store breaks and must be opened anew. What was synced is in the log.
TEST_P(DiskFull, OrAFileThatCannotBeMadeBreaksTheStoreAndLosesNothing) {
  constexpr std::size_t kBody = 1'000;
  const TemporaryDirectory directory;
  DiskStoreOptions options = small();
  options.log_segment_bytes = 4 << 20;  // one that is there already
  JobId synced = 0;
  {
    DiskStore store(directory / "data", options);
    put(store, 1, kBody);
    store.sync();
    const std::vector<fs::path> in_the_way = tables_to_come(directory / "data");
    for (const fs::path& path : in_the_way) fs::create_directory(path);
    std::string complained;
    for (JobId id = 1; complained.empty(); ++id) {
      ASSERT_LT(id, 5'000U);
      synced = id;
      complained = complaint([&] {
        put(store, id + 1, kBody);
        store.sync();
      });
    }
    EXPECT_TRUE(contains(complained, "it must be opened anew")) << complained;
    EXPECT_EQ(store.failure(), complained);
    EXPECT_EQ(complaint([&] { store.sync(); }), complained);
    EXPECT_EQ(complaint([&] { store.write(); }), complained);
    EXPECT_EQ(complaint([&] { put(store, synced + 1, kBody); }), complained);
    EXPECT_EQ(complaint([&] { store.body(1); }), complained);
    for (const fs::path& path : in_the_way) fs::remove(path);
    EXPECT_EQ(complaint([&] { store.sync(); }), complained);
  }
  DiskStore store(directory / "data", options);
  expect_reopened(store, synced, kBody);
  EXPECT_EQ(put(store, synced + 1, kBody), 1U);
  EXPECT_EQ(store.sync(), 1U);
}

// A real file system without space: which write fails first is a matter of chance.
TEST_P(DiskFull, LackOfMemoryIsSurvived) {
  constexpr std::size_t kBody = 3'000;
  if (SecondSelf::is_this()) {
    const std::string path = SecondSelf::argument();
    const bool mounted = ::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("none", path.c_str(), "tmpfs", 0, "size=24m") == 0;
    SecondSelf::tell(mounted);
    if (!mounted) return;
    std::mt19937_64 random(seed_or(std::random_device()()));
    write(path + "/ballast", std::string((6 << 20) + random() % (1 << 20), 'x'));
    const std::string data = path + "/data";
    JobId last = 0;
    {
      DiskStore store(data, small());
      last = put_until_refused(store, 1, kBody, "No space left on device");
      expect_jobs(store, last - 1, kBody);
      fs::remove(path + "/ballast");
      put_soon(store, last, kBody);
      for (int i = 0; i < 100; ++i) put_soon(store, ++last, kBody);
      expect_jobs(store, last, kBody);
    }
    expect_reopened(DiskStore(data, small()), last, kBody);
    return;
  }
  const TemporaryDirectory directory;
  SecondSelf writer(directory.path());
  const auto mounted = writer.read<bool>();
  ASSERT_TRUE(mounted);
  EXPECT_EQ(writer.wait(), 0);
  if (!*mounted) GTEST_SKIP() << "a small file system cannot be mounted here";
}

// --- The log's file fails. After that, no write or sync that works may hide it.

TEST_P(DiskFull, AfterAFailedWriteToTheLogNothingMoreIsWritten) {
  const TemporaryDirectory directory;
  {
    DiskStore store(directory / "data", log_alone());
    put(store, 1);
    EXPECT_EQ(store.sync(), 1U);
    put(store, 2);
    std::string complained;
    {
      const BrokenLog broken;
      complained = complaint([&] { store.write(); });
    }
    EXPECT_TRUE(contains(complained, "jobs-2.data cannot be written")) << complained;
    EXPECT_EQ(store.failure(), complained);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(complaint([&] { store.sync(); }), complained);
      EXPECT_EQ(complaint([&] { store.write(); }), complained);
      EXPECT_EQ(complaint([&] { put(store, 3); }), complained);
      EXPECT_EQ(complaint([&] { store.body(1); }), complained) << "it could not be deleted";
    }
    EXPECT_EQ(store.find(2), job(2)) << "it is visible, and acknowledged to nobody";
    EXPECT_EQ(store.find(3), std::nullopt);
  }
  DiskStore store(directory / "data", log_alone());
  EXPECT_EQ(store.find(1), job(1));
  EXPECT_EQ(store.find(2), std::nullopt);
  EXPECT_EQ(put(store, 2), 1U);
  EXPECT_EQ(store.sync(), 1U);
}

// A durable write needs no sync.
TEST(DiskBroken, AfterAFailedSyncNothingMoreIsWritten) {
  constexpr DiskStoreOptions kBuffered{.durable_writes = false};
  const TemporaryDirectory directory;
  {
    DiskStore store(directory / "data", kBuffered);
    put(store, 1);
    EXPECT_EQ(store.sync(), 1U);
    put(store, 2);
    store.write();
    std::string complained;
    {
      const BrokenLog broken;
      complained = complaint([&] { store.sync(); });
    }
    EXPECT_TRUE(contains(complained, "jobs-2.data cannot be synced")) << complained;
    EXPECT_EQ(complaint([&] { store.sync(); }), complained);
    EXPECT_EQ(complaint([&] { store.write(); }), complained);
    EXPECT_EQ(complaint([&] { put(store, 3); }), complained);
  }
  DiskStore store(directory / "data", kBuffered);
  EXPECT_EQ(store.find(1), job(1));
  EXPECT_EQ(store.find(2), job(2)) << "the system had it";
  EXPECT_EQ(store.find(3), std::nullopt);
}

}  // namespace

}  // namespace carillon::queue
