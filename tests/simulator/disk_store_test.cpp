// A DiskStore on the simulated disk: cases that the simulator has found, and that no other test can
// show.

#include "carillon/queue/disk_store.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "queue/crash_batches.h"
#include "queue/seed.h"
#include "simulator/clock.h"
#include "simulator/disk.h"
#include "simulator/threads.h"

namespace carillon::simulator {

namespace {

using queue::DiskStore;

constexpr const char* kData = "/simulated/jobs/data";

// The first start dies when it has made the directory, and before its name is durable. The second
// one finds the directory.
TEST(SimulatedDiskStoreTest, MakesDurableTheNameOfADirectoryThatAStartBeforeHasMade) {
  begin_simulation(1);
  Random random(queue::seed_or(1));
  for (int trial = 0; trial < 20; ++trial) {
    for (const unsigned dies_at : {1U, 3U}) {  // the changes: mkdir, fsync, mkdir, fsync
      Disk& disk = Disk::mount();
      disk.stop_after(dies_at);
      EXPECT_THROW(DiskStore{kData}, queue::StoreError);
      disk.end_process();
      {
        DiskStore store(kData);
        queue::append_batch(store, 1);
        store.sync();
        disk.stop();
      }
      disk.lose_power(random);
      ASSERT_EQ(queue::batches_in(DiskStore(kData)), 1U);
    }
  }
}

// A sync has failed, and the process has ended. The page cache still has what should have been
// written, and no later sync writes it. The next start must not take it for durable.
TEST(SimulatedDiskStoreTest, BuildsOnNothingThatAFailedSyncHasLeftInThePageCache) {
  begin_simulation(1);
  Random random(queue::seed_or(1));
  for (int trial = 0; trial < 20; ++trial) {
    Disk& disk = Disk::mount();
    const queue::DiskStoreOptions buffered{.durable_writes = false};
    {
      DiskStore store(kData, buffered);
      queue::append_batch(store, 1);
      store.sync();
      queue::append_batch(store, 2);
      disk.set_faults({.syncs = 1}, 1);
      EXPECT_THROW(store.sync(), queue::StoreError);
      disk.stop();
    }
    disk.end_process();
    std::uint64_t last = 0;
    {
      DiskStore store(kData, buffered);
      last = queue::batches_in(store) + 1;
      queue::append_batch(store, last);
      store.sync();
      disk.stop();
    }
    disk.lose_power(random);
    ASSERT_EQ(queue::batches_in(DiskStore(kData, buffered)), last);
  }
}

// A disk is full for a while, so that flushes fail, and the appends are refused until RocksDB has
// resumed. It says then that the next flush is done before it has written anything. What that flush
// will write must stay in the log.
TEST(SimulatedDiskStoreTest, KeepsInTheLogWhatAFlushAfterAFailedOneHasNotWritten) {
  begin_simulation(1);
  Random random(queue::seed_or(1));
  const queue::DiskStoreOptions small{
      .recent = 64 << 10, .log_bytes = 1 << 20, .log_segment_bytes = 8 << 10};
  for (int trial = 0; trial < 25; ++trial) {
    Disk& disk = Disk::mount();
    std::uint64_t durable = 0;
    {
      DiskStore store(kData, small);
      const std::uint64_t full_at = 300'000 + random() % 4'000'000;
      disk.set_capacity(full_at);
      for (int refusals = 0; durable < 200;) {
        try {
          queue::append_batch(store, durable + 1, 1);
          store.sync();
          ++durable;
          if (refusals >= 3 && random() % 2 == 0) break;
        } catch (const queue::StoreError&) {
          virtual_time().pass(2'000'000'000);
          run_others();  // this takes long enough
          ASSERT_EQ(store.failure(), "");
          if (++refusals == 3) disk.set_capacity(UINT64_MAX);
        }
        if (random() % 5 == 0) run_others();
      }
      disk.stop();
    }
    disk.end_process();
    ASSERT_GE(queue::batches_in(DiskStore(kData, small), 1), durable) << trial;
  }
}

// RocksDB reads each table that it has just written. When that fails again and again, it leaves a
// flush in its queue. The store must report a failure then, and not wait for that flush for ever.
TEST(SimulatedDiskStoreTest, DoesNotWaitForAFlushThatIsLeftInTheQueue) {
  begin_simulation(1);
  Random random(queue::seed_or(1));
  const queue::DiskStoreOptions small{
      .recent = 64 << 10, .log_bytes = 1 << 20, .log_segment_bytes = 8 << 10};
  for (int trial = 0; trial < 30; ++trial) {
    Disk& disk = Disk::mount();
    std::uint64_t durable = 0;
    {
      DiskStore store(kData, small);
      for (int refusals = 0; refusals < 40 && durable < 100;) {
        disk.set_faults({.reads = durable < 20 ? 0U : 24U}, random());
        try {
          queue::append_batch(store, durable + 1, 1);
          store.sync();
          ++durable;
        } catch (const queue::StoreError&) {
          virtual_time().pass(2'000'000'000);
          ++refusals;
        }
        if (random() % 3 == 0) run_others();
      }
      disk.stop();
    }
    disk.end_process();
    ASSERT_GE(queue::batches_in(DiskStore(kData, small), 1), durable) << trial;
  }
}

// A scan goes from one file to the next. If the disk cannot read the next one, the scan must fail:
// what it leaves out would be late until the next start, and no one would know.
TEST(SimulatedDiskStoreTest, LeavesOutOfAScanNoFileThatCannotBeRead) {
  constexpr std::uint64_t kJobs = 60;
  begin_simulation(1);
  Disk& disk = Disk::mount();
  const queue::DiskStoreOptions small{
      .recent = 16 << 10, .log_bytes = 1 << 20, .log_segment_bytes = 8 << 10};
  {
    DiskStore store(kData, small);
    const std::string body(4'000, 'b');
    for (std::uint64_t id = 1; id <= kJobs; ++id) {
      queue::Changes changes;
      const queue::JobRecord job{.id = id, .tube = 1, .due = id, .ttr = 1'000, .history = {}};
      changes.jobs.push_back({{}, job, body});
      changes.tubes = {{.number = 1, .name = "default", .scheduled = id}};
      store.append(changes);
      run_others();
    }
  }
  std::uint64_t failed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const DiskStore store(kData, small);
    disk.set_faults({.reads = 16}, seed);
    try {
      ASSERT_EQ(store.scan_due(1, {}, SIZE_MAX).size(), kJobs) << seed;
    } catch (const queue::StoreError&) {
      ++failed;
    }
    disk.set_faults({}, seed);
  }
  EXPECT_GT(failed, 20U);
}

}  // namespace

}  // namespace carillon::simulator
