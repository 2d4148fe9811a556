// A RocksStore with a journal loses power while one thread appends and another syncs, and is opened
// again. Whichever of the unsynced bytes had reached the disk by then, all that was acknowledged is
// there, each change is whole, and the store opens.
//
// A second self of the test writes and is killed. disk.h tells what a power loss at that moment
// would have left for sure. The test makes several copies of the directory, and each copy loses
// some other part of the rest. The next writer goes on from one of the copies.
//
// CARILLON_SEED=n repeats the writer's habits and what is lost, but not the instruction at which
// the writer dies: so run it several times. CARILLON_TRIALS=n makes n times as many trials.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
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
#include <vector>

#include "carillon/queue/rocks_store.h"
#include "power_loss/disk.h"
#include "power_loss/shared_memory.h"
#include "queue/crash_batches.h"
#include "queue/file_bytes.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

constexpr std::size_t kPage = 4'096;
constexpr std::size_t kSector = 512;
// For the "one in N" below: practically never.
constexpr unsigned kNone = 1u << 31;

// What the writers do in a directory, one after the other.
struct Habits {
  std::size_t write_buffer = 64 << 20;
  std::size_t journal = kSmallestJournal;
  // One body in this many is large.
  std::uint64_t one_large_in = kOneLargeIn;
  // Before each append the writer draws a number up to this: that many batches may be appended and
  // not synced then.
  std::uint64_t behind = 0;
  // After one batch in this many the writer reads a job.
  std::uint64_t one_read_in = 1'000;
  // Microseconds: see Disk.
  unsigned write_takes = 0;
  unsigned sync_takes = 0;

  RocksStoreOptions options() const {
    return {.write_buffer = write_buffer,
            .read_cache = 1 << 20,
            .large_body = 1 << 10,
            .journal_bytes = journal};
  }
};

// What the writer and the test share.
struct Shared {
  Habits habits;
  std::uint64_t seed = 0;
  std::atomic<std::uint64_t> appended = 0;      // batches that may be there
  std::atomic<std::uint64_t> acknowledged = 0;  // batches that must be there
  Disk disk;
};

// --- The writer.

void wait_until(const std::atomic<std::uint64_t>& number, std::uint64_t least) {
  for (std::uint64_t now = number; now < least; now = number) number.wait(now);
}

void set(std::atomic<std::uint64_t>& number, std::uint64_t to) {
  number = to;
  number.notify_all();
}

[[noreturn]] void write_until_killed(const std::string& directory) {
  SharedMemory<Shared> shared(directory + "/shared");
  track_writes_in(&shared->disk);
  const Habits& habits = shared->habits;
  RocksStore store(directory + "/made", habits.options());
  const std::uint64_t before = store.recover().watermarks.next_id - 1;
  // Set only now, as opening must not take all the time.
  shared->disk.write_takes = habits.write_takes;
  shared->disk.sync_takes = habits.sync_takes;
  SecondSelf::tell(before);

  std::atomic<std::uint64_t> appended = 0;
  std::atomic<std::uint64_t> synced = 0;
  const std::thread syncing([&] {
    while (true) {
      wait_until(appended, synced + 1);
      const Sequence sequence = store.sync();
      shared->acknowledged = before + sequence;
      set(synced, sequence);
    }
  });
  std::mt19937_64 random(shared->seed);
  for (std::uint64_t n = 1;; ++n) {
    const std::uint64_t batch = before + n;
    shared->appended = batch;
    append_batch(store, batch, habits.one_large_in);
    set(appended, n);
    if (random() % habits.one_read_in == 0 && store.find(3 * batch) != job_of(batch, 0))
      std::abort();
    if (random() % 50 == 0 && store.body(3 * batch) != batch_body(batch, 0, habits.one_large_in))
      std::abort();
    const std::uint64_t behind = random() % (habits.behind + 1);
    if (n > behind) wait_until(synced, n - behind);
  }
}

// --- What is lost.

// What a copy loses of the bytes that are only in the page cache: nothing, all, the end, some
// pages.
enum class Loss : std::uint8_t { kNothing, kAll, kEnd, kPages };

// The writers' directory, and what is left of it after a power loss. It is not a fixture, because a
// writer would then make a directory too, and leave it behind when it is killed.
class Machine {
 public:
  ~Machine() {
    std::printf("%llu records, %llu syncs of the log, %d torn records\n",
                static_cast<unsigned long long>(records_), static_cast<unsigned long long>(syncs_),
                torn_);
    EXPECT_GT(records_, 0u) << "the functions of disk.cpp were not called";
    EXPECT_GT(syncs_, 0u);
  }

  std::uint64_t random() { return random_(); }

  // Runs a few writers one after the other. Each goes on from the last copy of the directory of the
  // one before. Each writes some records into the journal, goes on for up to `a_while`
  // microseconds, and dies; or it dies while it opens the store.
  void live_and_die(const Habits& habits, std::uint64_t least_records, std::uint64_t most_records,
                    unsigned a_while) {
    constexpr int kLives = 3;
    fs::remove_all(made_);
    left_ = 0;
    for (int life = 0; life < kLives; ++life) {
      if (life > 0 && random() % 6 == 0) {
        write_and_die(habits, 0, up_to(60'000));
      } else {
        write_and_die(habits, least_records + random() % (most_records - least_records + 1),
                      up_to(a_while));
      }
      if (testing::Test::HasFailure()) return;
      std::array losses{Loss::kNothing, Loss::kEnd, Loss::kPages, Loss::kAll};
      // Any loss may be last. But kAll is last more often, as the next writer then has most to
      // apply from the journal.
      if (random() % 2 == 0) std::shuffle(losses.begin(), losses.end(), random_);
      for (const Loss loss : losses) {
        copy_with(loss);
        if (loss == losses.back()) fs::copy(copy_, next_);
        expect_all_that_was_acknowledged(habits);
        if (testing::Test::HasFailure()) return;
      }
      fs::remove_all(made_);
      fs::rename(next_, made_);
    }
  }

 private:
  microseconds up_to(unsigned most) {
    return microseconds(std::uniform_int_distribution<microseconds::rep>(0, most)(random_));
  }

  // Runs one writer, in a new directory or in what the writer before left. On a slow disk it may
  // write fewer than `records`.
  void write_and_die(const Habits& habits, std::uint64_t records, microseconds then) {
    shared_.emplace();
    shared_->habits = habits;
    shared_->seed = random();
    // These are on the disk, whatever happens to the writer.
    shared_->appended = shared_->acknowledged = left_;
    SecondSelf writer(directory_.path());
    if (records > 0) {
      ASSERT_EQ(writer.read<std::uint64_t>(), left_);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (shared_->disk.writes < records && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(microseconds(100));
    }
    std::this_thread::sleep_for(then);
    writer.kill();
    const int status = writer.wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "the writer has ended: " << status;
    records_ += shared_->disk.writes;
    syncs_ += shared_->disk.syncs;
  }

  // Makes `copy_` what a power loss at the moment of the kill may have left.
  void copy_with(Loss loss) {
    fs::remove_all(copy_);
    fs::copy(made_, copy_);
    told_.clear();
    std::vector<std::string> logs;
    for (const auto& file : fs::directory_iterator(made_)) {
      if (file.path().extension() == ".log") logs.push_back(file.path().filename());
    }
    std::sort(logs.begin(), logs.end());
    for (const std::string& log : logs) lose(log, loss);
    if (shared_->disk.under_way) tear_record();
  }

  void lose(const std::string& log, Loss loss) {
    std::string bytes = contents(made_ / log);
    const std::size_t end = end_of(bytes);
    const std::size_t synced = shared_->disk.synced(made_ / log);
    if (synced >= end || loss == Loss::kNothing) return;
    std::size_t left = end;
    if (loss == Loss::kAll) left = synced;
    if (loss == Loss::kEnd) left = synced + random() % (end - synced);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(left), bytes.end(), '\0');
    if (random() % 2 == 0) bytes.resize(left);  // the length of the file was not synced either
    told_ += log + " with " + std::to_string(end) + " bytes, " + std::to_string(synced) +
             " synced: up to " + std::to_string(left) + " left";
    for (std::size_t page = synced / kPage * kPage; loss == Loss::kPages && page < end;
         page += kPage) {
      if (random() % 3 != 0) continue;
      const std::size_t from = std::max(page, synced);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                  std::min(page + kPage, bytes.size()) - from, '\0');
      told_ += ", not page " + std::to_string(page / kPage);
    }
    told_ += "; ";
    std::ofstream(copy_ / log, std::ios::binary | std::ios::trunc) << bytes;
  }

  void tear_record() {
    const Disk& disk = shared_->disk;
    std::fstream journal(copy_ / "journal", std::ios::binary | std::ios::in | std::ios::out);
    journal.seekp(static_cast<std::streamoff>(disk.at));
    told_ += "record at block " + std::to_string(disk.at / kPage) + ", new sectors ";
    const std::uint64_t kind = random() % 4;  // 0: no new sector, 1: all new, else about half
    for (std::size_t at = 0; at < disk.size; at += kSector) {
      const bool is_new = kind == 1 || (kind > 1 && random() % 2 == 0);
      journal.write((is_new ? disk.after : disk.before).data() + at, kSector);
      told_ += is_new ? '1' : '0';
    }
    ++torn_;
  }

  void expect_all_that_was_acknowledged(const Habits& habits) {
    SCOPED_TRACE(told_);
    try {
      left_ = batches_in(RocksStore(copy_, habits.options()), habits.one_large_in);
      EXPECT_GE(left_, shared_->acknowledged);
      EXPECT_LE(left_, shared_->appended);
    } catch (const StoreError& error) {
      ADD_FAILURE() << error.what();
    }
  }

  TemporaryDirectory directory_;
  fs::path made_ = directory_ / "made";
  fs::path copy_ = directory_ / "copy";
  fs::path next_ = directory_ / "next";
  SharedMemory<Shared> shared_{directory_ / "shared"};
  std::mt19937_64 random_{seed_or(std::random_device()())};
  std::uint64_t left_ = 0;
  std::string told_;
  std::uint64_t records_ = 0;
  std::uint64_t syncs_ = 0;
  int torn_ = 0;
};

int trials(int by_default) {
  const char* factor = std::getenv("CARILLON_TRIALS");
  return factor == nullptr ? by_default : by_default * std::atoi(factor);
}

TEST(PowerLoss, AtAnyMoment) {
  if (SecondSelf::is_this()) write_until_killed(SecondSelf::argument());
  Machine machine;
  const auto one_of = [&machine](auto... values) {
    const std::array all{values...};
    return all[machine.random() % all.size()];
  };
  for (int trial = 0; trial < trials(4) && !testing::Test::HasFailure(); ++trial) {
    Habits habits;
    habits.write_buffer = one_of(512u << 10, 64u << 20);
    habits.journal = one_of(kSmallestJournal, kSmallestJournal, kJournalBytes);
    habits.one_large_in = one_of(10u, 200u, kNone);
    // 30 small batches are about the largest window of the journal.
    habits.behind = one_of(0u, 2u, 30u, 60u);
    habits.one_read_in = one_of(3u, 20u, 1'000u);
    habits.write_takes = one_of(0u, 400u);
    habits.sync_takes = one_of(0u, 400u, 5'000u);
    machine.live_and_die(habits, 1, 300, 5'000);
  }
}

// RocksDB's log is slow to sync. So the journal is full of records that RocksDB may have lost, and
// the next writer applies them. It must not overwrite them before they are durable in RocksDB. It
// dies at about the time at which it begins to overwrite.
TEST(PowerLoss, WhileTheJournalIsFull) {
  if (SecondSelf::is_this()) write_until_killed(SecondSelf::argument());
  Machine machine;
  constexpr Habits kSlow{.one_large_in = kNone, .one_read_in = kNone, .sync_takes = 100'000};
  for (int trial = 0; trial < trials(3) && !testing::Test::HasFailure(); ++trial) {
    machine.live_and_die(kSlow, 60, 250, 10'000);
  }
}

}  // namespace
}  // namespace carillon::queue
