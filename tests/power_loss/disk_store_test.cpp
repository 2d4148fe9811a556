// A DiskStore loses power while one thread appends and another syncs, and is opened again: all
// that was acknowledged is there, each change is whole, and the state's files are never ahead of
// the log (which opening the store checks), though the state is flushed all the time.
//
// A second self of the test writes and is killed; disk.h tells which writes may be lost then. The
// copy loses some of them, and the next writer goes on from the copy.
//
// CARILLON_SEED=n repeats the writer's habits, but not at which instruction the writer dies.
// CARILLON_TRIALS=n tries n times as often.

#include "carillon/queue/disk_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "power_loss/disk.h"
#include "power_loss/shared_memory.h"
#include "queue/crash_batches.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

struct LoggedHabits {
  std::size_t recent = 256 << 10;
  std::size_t log_bytes = 256 << 10;
  std::size_t log_segment_bytes = 64 << 10;  // and of a window
  std::uint64_t one_large_in = kOneLargeIn;  // bodies
  std::uint64_t behind = 0;                  // batches that are appended and not synced, at most
  bool durable_writes = true;
  unsigned disk_takes = 0;     // microseconds
  bool dies_flushing = false;  // soon after a flush of the state has made its files
  bool checkpoints = false;    // are made all the time

  DiskStoreOptions options() const {
    return {.recent = recent,
            .read_cache = 1 << 20,
            .large_body = 1 << 10,
            .log_bytes = log_bytes,
            .log_segment_bytes = log_segment_bytes,
            .durable_writes = durable_writes};
  }
};

// What the writer and the test have in common.
struct LoggedShared {
  LoggedHabits habits;
  std::uint64_t seed = 0;
  std::atomic<std::uint64_t> appended = 0;      // batches that may be there
  std::atomic<std::uint64_t> acknowledged = 0;  // batches that must be there
  Disk disk;
};

void wait_until(const std::atomic<std::uint64_t>& number, std::uint64_t least) {
  for (std::uint64_t now = number; now < least; now = number) number.wait(now);
}

[[noreturn]] void write_until_killed(const std::string& directory) {
  SharedMemory<LoggedShared> shared(directory + "/shared");
  track_writes_in(&shared->disk);
  const LoggedHabits& habits = shared->habits;
  DiskStore store(directory + "/made", habits.options());
  const std::uint64_t before = batches_in(store, habits.one_large_in);
  shared->disk.takes = habits.disk_takes;
  SecondSelf::tell(before);

  std::atomic<std::uint64_t> appended = 0;
  std::atomic<std::uint64_t> synced = 0;
  const std::thread syncing([&] {
    while (true) {
      wait_until(appended, synced + 1);
      const Sequence sequence = store.sync();
      shared->acknowledged = before + sequence;
      synced = sequence;
      synced.notify_all();
    }
  });
  std::mt19937_64 random(shared->seed);
  if (habits.checkpoints) store.begin_checkpoint();
  for (std::uint64_t n = 1;; ++n) {
    shared->appended = before + n;
    append_batch(store, before + n, habits.one_large_in);
    if (habits.checkpoints && store.poll_checkpoint()) {
      store.release_checkpoint();
      store.begin_checkpoint();
    }
    appended = n;
    appended.notify_all();
    if (!habits.durable_writes && random() % 2 == 0) store.write();
    const std::uint64_t behind = random() % (habits.behind + 1);
    if (n > behind) wait_until(synced, n - behind);
  }
}

class LoggedMachine {
 public:
  ~LoggedMachine() {
    std::printf("%llu writes; %d power losses could take back some\n",
                static_cast<unsigned long long>(writes_), torn_);
    EXPECT_GT(writes_, 0U) << "the functions of disk.cpp were not called";
  }

  std::uint64_t random() { return random_(); }

  void live_and_die(const LoggedHabits& habits) {
    fs::remove_all(made_);
    left_ = 0;
    for (int life = 0; life < 3 && !testing::Test::HasFailure(); ++life) {
      write_and_die(habits);
      fs::create_directories(made_);  // the writer may have died before
      fs::remove_all(copy_);
      fs::copy(made_, copy_);
      const std::string told = shared_->disk.lose_power(made_, copy_, random_);
      SCOPED_TRACE(told);
      if (shared_->disk.first != shared_->disk.next) ++torn_;
      expect_all_that_was_acknowledged(habits);
      fs::remove_all(made_);
      fs::rename(copy_, made_);
    }
  }

 private:
  void write_and_die(const LoggedHabits& habits) {
    shared_.emplace();
    shared_->habits = habits;
    shared_->seed = random();
    shared_->appended = shared_->acknowledged = left_;
    SecondSelf writer(directory_.path());
    if (habits.dies_flushing || random() % 6 != 0) {  // else it dies while it opens the store
      ASSERT_EQ(writer.read<std::uint64_t>(), left_);
    }
    if (habits.dies_flushing) wait_for_a_flush();
    const unsigned then = habits.dies_flushing ? 30'000 : 150'000;
    std::this_thread::sleep_for(microseconds(random() % then));
    writer.kill();
    const int status = writer.wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "the writer has ended: " << status;
    writes_ += shared_->disk.next;
  }

  // Returns when there are four new tables: one of each family. Gives up after 5 s.
  void wait_for_a_flush() {
    const auto tables = [this] {
      std::set<fs::path> found;
      for (const auto& file : fs::directory_iterator(made_)) {
        if (file.path().extension() == ".sst") found.insert(file.path());
      }
      return found;
    };
    const std::set<fs::path> before = tables();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::chrono::steady_clock::now() < deadline) {
      std::set<fs::path> now = tables();
      for (const fs::path& table : before) now.erase(table);
      if (now.size() >= 4) return;
      std::this_thread::sleep_for(microseconds(500));
    }
  }

  void expect_all_that_was_acknowledged(const LoggedHabits& habits) {
    try {
      left_ = batches_in(DiskStore(copy_, habits.options()), habits.one_large_in);
      EXPECT_GE(left_, shared_->acknowledged);
      EXPECT_LE(left_, shared_->appended);
    } catch (const StoreError& error) {
      ADD_FAILURE() << error.what();
    }
  }

  TemporaryDirectory directory_;
  fs::path made_ = directory_ / "made";
  fs::path copy_ = directory_ / "copy";
  SharedMemory<LoggedShared> shared_{directory_ / "shared"};
  std::mt19937_64 random_{seed_or(1)};
  std::uint64_t left_ = 0;
  std::uint64_t writes_ = 0;
  int torn_ = 0;
};

// CARILLON_TRIALS times as many as usual.
int trials(int usual) {
  const char* factor = std::getenv("CARILLON_TRIALS");
  return usual * (factor == nullptr ? 1 : std::atoi(factor));
}

TEST(DiskPowerLoss, AtAnyMoment) {
  if (SecondSelf::is_this()) write_until_killed(SecondSelf::argument());
  LoggedMachine machine;
  const auto one_of = [&machine](auto... values) {
    const std::array all{values...};
    return all[machine.random() % all.size()];
  };
  for (int trial = 0; trial < trials(8) && !testing::Test::HasFailure(); ++trial) {
    LoggedHabits habits;
    habits.recent = one_of(64u << 10, 256u << 10, 16u << 20);
    habits.log_segment_bytes = one_of(64u << 10, 1u << 20);
    habits.log_bytes = 4 * habits.log_segment_bytes;
    habits.one_large_in = one_of(10u, 200u);
    habits.behind = one_of(0u, 2u, 30u, 200u);
    habits.durable_writes = trial % 2 == 0;
    habits.disk_takes = one_of(0u, 400u, 20'000u);
    habits.checkpoints = one_of(false, true);
    machine.live_and_die(habits);
  }
}

// The log's disk is slow, and much is appended meanwhile, so that the state is flushed. A flush
// that did not wait for the log would be ahead of it when its files are there.
TEST(DiskPowerLoss, WhileTheStateIsFlushed) {
  if (SecondSelf::is_this()) write_until_killed(SecondSelf::argument());
  LoggedMachine machine;
  for (int trial = 0; trial < trials(2) && !testing::Test::HasFailure(); ++trial) {
    machine.live_and_die({.recent = 64 << 10,
                          .log_bytes = 16 << 20,
                          .log_segment_bytes = 4 << 20,
                          .behind = std::uint64_t{1} << 60,
                          .durable_writes = trial % 2 == 0,
                          .disk_takes = 100'000,
                          .dies_flushing = true});
  }
}

}  // namespace
}  // namespace carillon::queue
