// A bit that changes in memory while a start reads the log: the start reads again, finds all that
// was acknowledged, and changes nothing on the disk.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "carillon/queue/disk_store.h"
#include "queue/crash_batches.h"
#include "queue/file_bytes.h"
#include "queue/flipped_reads.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> log_in(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& file : fs::directory_iterator(directory)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("jobs-") && name.ends_with(".data") && file.file_size() > 4'096)
      files[name] = contents(file);
  }
  return files;
}

class ChangedBits : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(DurableWrites, ChangedBits, testing::Bool(),
                         [](const auto& test) { return test.param ? "Yes" : "No"; });

TEST_P(ChangedBits, InMemoryHarmNothing) {
  if (!FlippedReads::can_flip()) GTEST_SKIP() << "a sanitizer replaces pread()";
  const DiskStoreOptions options{.log_segment_bytes = 64 << 10, .durable_writes = GetParam()};
  constexpr std::uint64_t kBatches = 40;
  if (SecondSelf::is_this()) {
    DiskStore store(SecondSelf::argument(), options);
    for (std::uint64_t batch = 1; batch <= kBatches; ++batch) {
      append_batch(store, batch);
      store.sync();
    }
    SecondSelf::tell(1);
    std::_Exit(0);
  }
  const TemporaryDirectory directory;
  {
    SecondSelf writer(directory / "made");
    ASSERT_TRUE(writer.read<int>());
  }
  std::mt19937_64 random(seed_or(1));
  const auto made = log_in(directory / "made");
  int changed = 0;
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    fs::remove_all(directory / "copy");
    fs::copy(directory / "made", directory / "copy");
    const int skip = static_cast<int>(random() % (2 * made.size() + 4));
    const std::uint64_t bit = random();
    SCOPED_TRACE("read " + std::to_string(skip) + " bit " + std::to_string(bit));
    const FlippedReads flips(skip, 1, ".data", bit);
    const DiskStore store(directory / "copy", options);
    changed += 1 - flips.left();
    EXPECT_EQ(batches_in(store), kBatches);
    const auto now = log_in(directory / "copy");
    for (const auto& [name, bytes] : made) EXPECT_TRUE(now.contains(name) && now.at(name) == bytes);
  }
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace carillon::queue
