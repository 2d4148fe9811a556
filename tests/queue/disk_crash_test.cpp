// A DiskStore after a long replay, or with a file that is not its own. (tests/crash and the
// simulator show that the death of its process loses nothing.)

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "carillon/queue/disk_store.h"
#include "queue/crash_batches.h"
#include "queue/second_self.h"
#include "queue/store_media.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

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

}  // namespace
}  // namespace carillon::queue
