// A bit that changes in memory while a start reads the log: the start reads again, finds all that
// was acknowledged, and changes nothing on the disk.
//
// This program has its own `pread`, which changes a bit of what it has read when a test says so.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "carillon/queue/disk_store.h"
#include "queue/crash_batches.h"
#include "queue/file_bytes.h"
#include "queue/second_self.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"

namespace {

// The read of the log from now on that changes a bit; 0: none does.
unsigned changes_at = 0;
unsigned reads = 0;
std::uint64_t changed_bit = 0;

bool is_of_log(int fd) {
  std::array<char, 64> link{};
  std::array<char, PATH_MAX> name{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link.data(), name.data(), name.size());
  return size > 0 &&
         std::string_view(name.data(), static_cast<std::size_t>(size)).ends_with(".data");
}

ssize_t read_and_change(int fd, void* to, std::size_t size, off_t at) {
  const ssize_t got = ::syscall(SYS_pread64, fd, to, size, at);
  if (changes_at == 0 || got <= 0 || !is_of_log(fd) || ++reads != changes_at) return got;
  const std::uint64_t bit = changed_bit % (static_cast<std::uint64_t>(got) * 8);
  char& byte = static_cast<char*>(to)[bit / 8];
  byte = static_cast<char>(byte ^ (1 << bit % 8));
  return got;
}

}  // namespace

extern "C" {

ssize_t pread(int fd, void* to, std::size_t size, off_t at) {
  return read_and_change(fd, to, size, at);
}

ssize_t pread64(int fd, void* to, std::size_t size, off64_t at) {
  return read_and_change(fd, to, size, at);
}
}

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
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    fs::remove_all(directory / "copy");
    fs::copy(directory / "made", directory / "copy");
    changes_at = 1 + static_cast<unsigned>(random() % (2 * made.size() + 4));
    changed_bit = random();
    reads = 0;
    SCOPED_TRACE("read " + std::to_string(changes_at) + " bit " + std::to_string(changed_bit));
    {
      const DiskStore store(directory / "copy", options);
      changes_at = 0;
      EXPECT_EQ(batches_in(store), kBatches);
      for (const auto& [name, bytes] : log_in(directory / "copy")) {
        if (made.contains(name)) {
          EXPECT_TRUE(made.at(name) == bytes) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace carillon::queue
