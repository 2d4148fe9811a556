// The threads of a simulation: one runs at a time, waits take virtual time, and a seed repeats the
// order. And a DiskStore runs on the simulated disk, with RocksDB's threads among them.

#include "simulator/threads.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/crash_batches.h"
#include "queue/seed.h"
#include "simulator/clock.h"
#include "simulator/disk.h"

namespace carillon::simulator {

namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(ThreadsTest, SleepInVirtualTime) {
  begin_simulation(1);
  const auto began = steady_clock::now();
  std::this_thread::sleep_for(hours(10));
  EXPECT_EQ(steady_clock::now() - began, hours(10));
}

TEST(ThreadsTest, RunOnlyWhenTheMainThreadWaitsOrLetsThem) {
  begin_simulation(1);
  int n = 0;
  std::thread other([&n] { ++n; });
  EXPECT_EQ(n, 0);
  run_others();
  EXPECT_EQ(n, 1);
  other.join();
}

TEST(ThreadsTest, WaitForConditionsTimesAndSemaphores) {
  begin_simulation(1);
  std::mutex mutex;
  std::condition_variable changed;
  std::binary_semaphore semaphore{0};
  bool there = false;
  std::string told;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return there; });
    told += "woken ";
    if (!changed.wait_for(lock, seconds(5), [] { return false; })) told += "late ";
    semaphore.acquire();
    told += "done";
  });
  run_others();
  EXPECT_EQ(told, "");
  there = true;
  changed.notify_one();
  run_others();
  EXPECT_EQ(told, "woken ");
  virtual_time().pass(5'000'000'000);
  run_others();
  EXPECT_EQ(told, "woken late ");
  semaphore.release();
  other.join();
  EXPECT_EQ(told, "woken late done");
}

std::string order_of(std::uint64_t seed) {
  begin_simulation(seed);
  std::string order;
  std::vector<std::thread> all;
  for (char name = 'a'; name < 'i'; ++name) all.emplace_back([&order, name] { order += name; });
  for (std::thread& each : all) each.join();
  return order;
}

TEST(ThreadsTest, RunInAnOrderThatTheSeedGives) {
  EXPECT_EQ(order_of(7), order_of(7));
  EXPECT_NE(order_of(7), order_of(8));
}

// Appends batches of jobs, loses power now and then, and returns what the disk has seen.
std::string histories(std::uint64_t seed) {
  using queue::kOneLargeIn;
  virtual_time() = {.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};
  begin_simulation(seed);
  Random random(seed);
  Disk& disk = Disk::mount();
  const queue::DiskStoreOptions options{.recent = 64 << 10,
                                        .read_cache = 1 << 20,
                                        .large_body = 1 << 10,
                                        .log_bytes = 128 << 10,
                                        .log_segment_bytes = 32 << 10};
  std::uint64_t n = 0;
  for (int life = 0; life < 5; ++life) {
    std::uint64_t durable = n;
    auto store = std::make_unique<queue::DiskStore>("/simulated/data", options);
    n = queue::batches_in(*store, kOneLargeIn);
    disk.stop_after(1 + random() % 2'000);
    try {
      while (true) {
        queue::append_batch(*store, n + 1, kOneLargeIn);
        ++n;
        if (random() % 4 == 0) run_others();
        if (random() % 2 == 0) continue;
        store->sync();
        durable = n;
      }
    } catch (const queue::StoreError&) {
      disk.stop();
    }
    store.reset();
    disk.lose_power(random);
    EXPECT_GE(queue::batches_in(queue::DiskStore("/simulated/data", options), kOneLargeIn),
              durable);
  }
  return std::to_string(n) + " " + std::to_string(disk.changes()) + " " +
         std::to_string(disk.syncs()) + " " + std::to_string(virtual_time().mono_ns);
}

TEST(ThreadsTest, RepeatADiskStoreThatLosesPower) {
  const std::uint64_t seed = queue::seed_or(3);
  const std::string first = histories(seed);
  EXPECT_EQ(first, histories(seed));
}

// What RocksDB calls the directory: it is as long as a UUID.
std::string identity(std::uint64_t seed) {
  virtual_time() = {.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};
  begin_simulation(seed);
  Disk& disk = Disk::mount();
  const queue::DiskStore store("/simulated/data", {});
  const int file = disk.open(-1, "/simulated/data/IDENTITY", O_RDONLY);
  std::string bytes(64, ' ');
  bytes.resize(static_cast<std::size_t>(disk.pread(file, bytes.data(), bytes.size(), 0)));
  disk.close(file);
  return bytes;
}

TEST(ThreadsTest, RepeatTheIdentityThatRocksDbGivesADirectory) {
  identity(3);  // the first time, RocksDB asks for more, and keeps it as long as the process lives
  const std::string first = identity(3);
  EXPECT_EQ(first.size(), 36);
  EXPECT_EQ(first, identity(3));
  EXPECT_NE(first, identity(4));
}

}  // namespace

}  // namespace carillon::simulator
