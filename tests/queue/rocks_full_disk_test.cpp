// RocksStore on disks that are full, and on disks that fail.

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
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/rocks_store.h"
#include "queue/numbered_jobs.h"
#include "queue/second_self.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;

constexpr RocksStoreOptions kSmall{
    .write_buffer = 512 << 10, .read_cache = 1 << 20, .large_body = 4 << 10};

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

// Runs without a journal, and with a journal and a sync after each put; that sync never fails.
class RocksFullDisk : public testing::TestWithParam<bool> {
 protected:
  RocksStoreOptions options(RocksStoreOptions others = kSmall) const {
    others.journal_bytes = GetParam() ? kSmallestJournal : 0;
    return others;
  }

  Sequence put(Store& store, JobId id, std::size_t body) const {
    const Sequence sequence = queue::put(store, id, body);
    if (GetParam()) {
      EXPECT_EQ(store.sync(), sequence);
    }
    return sequence;
  }

  // Puts jobs from `first` on until a put fails, with an error that contains `what`. Returns the
  // first job that was not put.
  JobId put_until_refused(Store& store, JobId first, std::size_t body,
                          const std::string& what) const {
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

  // Puts a job, and tries again for up to 30 s if that fails.
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
    // Bytes of each file: the log is the first file that reaches the limit.
    set_limit(RLIMIT_FSIZE, GetParam() ? 9 << 20 : 1 << 20);
    RocksStore store(SecondSelf::argument(), options({}));
    const JobId refused = put_until_refused(store, 1, kBody, "File too large");
    EXPECT_GT(refused, 90u);
    expect_jobs(store, refused - 1, kBody);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(put_until_refused(store, refused, kBody, "File too large"), refused);
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

// As above, but here RocksDB cannot make a new file, neither the next log nor a sorted file,
// because the directory has been renamed.
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

// A real file system without space: which write fails first is a matter of chance.
TEST_P(RocksFullDisk, OfMemoryIsSurvived) {
  constexpr std::size_t kBody = 3'000;
  if (SecondSelf::is_this()) {
    const std::string path = SecondSelf::argument();
    const bool mounted =
        ::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) == 0 &&
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

// While this lives, the descriptor of the open log is one that can neither be written to nor
// synced.
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
    EXPECT_TRUE(contains(complaint([&] { put(store, 2); }),
                         "nothing more is written until it is opened anew"));
    EXPECT_TRUE(contains(complaint([&] { store.sync(); }),
                         "nothing more is written until it is opened anew"));
    EXPECT_EQ(store.find(1), job(1));
  }
  RocksStore store(directory / "data");
  EXPECT_EQ(store.find(1), job(1));
  EXPECT_EQ(store.find(2), std::nullopt);
  put(store, 2);
  EXPECT_EQ(store.scan_due(1, {}, 10).size(), 2u);
}

}  // namespace

}  // namespace carillon::queue
