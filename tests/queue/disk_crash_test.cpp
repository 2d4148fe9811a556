// A DiskStore whose process is killed, or whose log is gone.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "carillon/queue/disk_store.h"
#include "queue/crash_batches.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/store_media.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

DiskStoreOptions options_with(bool durable_writes) {
  DiskStoreOptions options = kSmallDisk;
  options.durable_writes = durable_writes;
  return options;
}

// Tells of each batch when it is sure to outlive the process.
[[noreturn]] void append_until_killed(const std::string& directory, bool durable_writes) {
  DiskStore store(directory, options_with(durable_writes));
  std::mt19937_64 random(batches_in(store));
  for (std::uint64_t batch = batches_in(store) + 1;; ++batch) {
    append_batch(store, batch);
    if (random() % 4 != 0) continue;
    durable_writes ? static_cast<void>(store.sync()) : store.write();
    SecondSelf::tell(batch);
  }
}

void kill_writers(bool durable_writes) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  const TemporaryDirectory directory;
  std::uint64_t sure = 0;
  for (int round = 0; round < 10; ++round) {
    SecondSelf writer(directory / "data");
    for (std::uint64_t left = 1 + random() % 150; left > 0; --left) {
      const auto batch = writer.read<std::uint64_t>();
      ASSERT_TRUE(batch) << "the writer has ended";
      sure = *batch;
    }
    writer.kill();
    while (const auto batch = writer.read<std::uint64_t>()) sure = *batch;
    const DiskStore store(directory / "data", options_with(durable_writes));
    EXPECT_GE(batches_in(store), sure);
  }
}

TEST(DiskCrash, KilledWhileAppendingKeepsWhatWasSynced) {
  if (SecondSelf::is_this()) append_until_killed(SecondSelf::argument(), true);
  kill_writers(true);
}

TEST(DiskCrash, KilledWhileAppendingKeepsWhatWasWritten) {
  if (SecondSelf::is_this()) append_until_killed(SecondSelf::argument(), false);
  kill_writers(false);
}

std::size_t tables_in(const std::string& directory) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory))
    count += file.path().extension() == ".sst" ? 1U : 0U;
  return count;
}

// Else each start of a server that dies soon would apply all of it again.
TEST(DiskCrash, WhatALongReplayHasAppliedIsWrittenToFiles) {
  constexpr DiskStoreOptions kSmall{.recent = 16 << 20};
  if (SecondSelf::is_this()) {
    DiskStore store(SecondSelf::argument(), kSmall);
    for (std::uint64_t batch = 1; batch <= 600; ++batch) append_batch(store, batch);
    store.sync();
    SecondSelf::tell(1);
    std::_Exit(0);
  }
  const TemporaryDirectory directory;
  {
    SecondSelf writer(directory / "data");
    ASSERT_TRUE(writer.read<int>());
  }
  const std::size_t before = tables_in(directory / "data");
  DiskStore store(directory / "data", kSmall);
  EXPECT_EQ(batches_in(store), 600U) << "it serves meanwhile";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (tables_in(directory / "data") == before && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(tables_in(directory / "data"), before);
}

TEST(DiskCrash, AFileThatOnlyLooksLikeALogOfRocksDBsIsLeftAlone) {
  const TemporaryDirectory directory;
  {
    DiskStore store(directory / "data", kSmallDisk);
    append_batch(store, 1);
  }
  std::ofstream(directory / "data/x.log") << "not of RocksDB";
  EXPECT_EQ(batches_in(DiskStore(directory / "data", kSmallDisk)), 1U);
  EXPECT_TRUE(std::filesystem::exists(directory / "data/x.log"));
}

TEST(DiskCrash, AStateWithoutItsLogIsRefused) {
  const TemporaryDirectory directory;
  {
    DiskStore store(directory / "data", kSmallDisk);
    append_batch(store, 1);
  }
  for (const auto& file : std::filesystem::directory_iterator(directory / "data")) {
    if (file.path().filename().string().starts_with("jobs-")) std::filesystem::remove(file.path());
  }
  try {
    const DiskStore store(directory / "data", kSmallDisk);
    FAIL() << "it was opened";
  } catch (const StoreError& error) {
    EXPECT_NE(std::string(error.what()).find("is gone: there is no file jobs-N.data"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace carillon::queue
