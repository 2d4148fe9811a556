// A DiskStore whose process is killed, or whose log is gone.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

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

TEST(DiskCrash, AStateWithoutItsLogIsRefused) {
  const TemporaryDirectory directory;
  {
    DiskStore store(directory / "data", kSmallDisk);
    append_batch(store, 1);
  }
  for (const auto& file : std::filesystem::directory_iterator(directory / "data")) {
    if (file.path().filename().string().starts_with("log-")) std::filesystem::remove(file.path());
  }
  try {
    const DiskStore store(directory / "data", kSmallDisk);
    FAIL() << "it was opened";
  } catch (const StoreError& error) {
    EXPECT_NE(std::string(error.what()).find("it ends at change 0"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace carillon::queue
