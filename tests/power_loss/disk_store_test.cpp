// A DiskStore loses power while one thread appends and another syncs, and is opened again: all
// that was acknowledged is there, each change is whole, and the state's files are never ahead of
// the log (which opening the store checks), though the state is flushed all the time.
//
// A second self of the test writes and is killed; disk.h tells which write past the page cache was
// under way. The copy has any of its sectors old or new. The next writer goes on from the copy.
//
// CARILLON_SEED=n repeats the writer's habits, but not at which instruction the writer dies.
// CARILLON_TRIALS=n tries n times as often.

#include "carillon/queue/disk_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
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

constexpr std::size_t kSector = 512;

struct LoggedHabits {
  std::size_t recent = 256 << 10;
  std::size_t log_bytes = 256 << 10;
  std::uint64_t one_large_in = kOneLargeIn;  // bodies
  std::uint64_t behind = 0;                  // batches that are appended and not synced, at most
  unsigned write_takes = 0;                  // microseconds; of the disk

  DiskStoreOptions options() const {
    return {.recent = recent,
            .read_cache = 1 << 20,
            .large_body = 1 << 10,
            .log_bytes = log_bytes,
            .log_segment_bytes = 64 << 10};
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
  const std::uint64_t before = store.recover().watermarks.next_id - 1;
  shared->disk.write_takes = habits.write_takes;
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
  for (std::uint64_t n = 1;; ++n) {
    shared->appended = before + n;
    append_batch(store, before + n, habits.one_large_in);
    appended = n;
    appended.notify_all();
    const std::uint64_t behind = random() % (habits.behind + 1);
    if (n > behind) wait_until(synced, n - behind);
  }
}

class LoggedMachine {
 public:
  std::uint64_t random() { return random_(); }
  std::uint64_t records() const { return records_; }
  int torn() const { return torn_; }

  void live_and_die(const LoggedHabits& habits) {
    fs::remove_all(made_);
    left_ = 0;
    for (int life = 0; life < 3 && !testing::Test::HasFailure(); ++life) {
      write_and_die(habits);
      fs::create_directories(made_);  // the writer may have died before
      fs::remove_all(copy_);
      fs::copy(made_, copy_);
      if (shared_->disk.under_way) tear_record();
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
    if (random() % 6 != 0) {  // else it dies while it opens the store
      ASSERT_EQ(writer.read<std::uint64_t>(), left_);
    }
    std::this_thread::sleep_for(microseconds(random() % 150'000));
    writer.kill();
    const int status = writer.wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "the writer has ended: " << status;
    records_ += shared_->disk.writes;
  }

  // Each sector of the write that was under way is old or new.
  void tear_record() {
    const Disk& disk = shared_->disk;
    for (const auto& file : fs::directory_iterator(made_)) {
      struct stat status {};
      ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
      if (status.st_ino != disk.inode) continue;
      std::fstream torn(copy_ / file.path().filename(),
                        std::ios::binary | std::ios::in | std::ios::out);
      torn.seekp(static_cast<std::streamoff>(disk.at));
      const std::uint64_t kind = random() % 4;  // 0: no new sector, 1: all new, else about half
      for (std::size_t at = 0; at < disk.size; at += kSector) {
        const bool is_new = kind == 1 || (kind > 1 && random() % 2 == 0);
        torn.write((is_new ? disk.after : disk.before).data() + at, kSector);
      }
      ++torn_;
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
  std::mt19937_64 random_{seed_or(std::random_device()())};
  std::uint64_t left_ = 0;
  std::uint64_t records_ = 0;
  int torn_ = 0;
};

TEST(DiskPowerLoss, AtAnyMoment) {
  if (SecondSelf::is_this()) write_until_killed(SecondSelf::argument());
  LoggedMachine machine;
  const auto one_of = [&machine](auto... values) {
    const std::array all{values...};
    return all[machine.random() % all.size()];
  };
  const char* factor = std::getenv("CARILLON_TRIALS");
  const int trials = 8 * (factor == nullptr ? 1 : std::atoi(factor));
  for (int trial = 0; trial < trials && !testing::Test::HasFailure(); ++trial) {
    LoggedHabits habits;
    habits.recent = one_of(64u << 10, 256u << 10, 16u << 20);
    habits.one_large_in = one_of(10u, 200u);
    // On a slow disk with much behind, a flush that did not wait for the log would be ahead of it
    // for most of the time.
    habits.behind = one_of(0u, 2u, 30u, 200u);
    habits.write_takes = one_of(0u, 400u, 20'000u);
    machine.live_and_die(habits);
  }
  std::printf("%llu records, %d torn\n", static_cast<unsigned long long>(machine.records()),
              machine.torn());
  EXPECT_GT(machine.records(), 0U) << "the functions of disk.cpp were not called";
}

}  // namespace
}  // namespace carillon::queue
