// How memory is shared out, and what the system says of it.

#include "server/net/memory_shares.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "server/net/memory_pool.h"

namespace carillon::server {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(MemoryShares, AGibibyteIsShared) {
  const MemoryShares shares = share_memory(1'024 * kMiB, true);
  EXPECT_EQ(shares.recent, 64 * kMiB);
  EXPECT_EQ(shares.read_cache, 64 * kMiB);
  EXPECT_EQ(shares.loaded, 671'088u);
  EXPECT_EQ(shares.reserved, 223'696u);
  EXPECT_EQ(shares.tubes, 67'108u);
  EXPECT_EQ(shares.schedules, 16 * kMiB);
  EXPECT_EQ(shares.connections, 320 * kMiB);
  EXPECT_EQ(shares.stored, 0u);
}

TEST(MemoryShares, TogetherAreLessThanTheWhole) {
  for (const bool on_disk : {false, true}) {
    for (std::uint64_t bytes = kLeastMemory; bytes < std::uint64_t{1} << 40; bytes *= 3) {
      const MemoryShares shares = share_memory(bytes, on_disk);
      const std::uint64_t sum = 3 * shares.recent + shares.read_cache + shares.stored +
                                300 * (shares.loaded + shares.reserved) + 1'000 * shares.tubes +
                                shares.connections;
      EXPECT_LE(sum, bytes - bytes / 8) << bytes;
    }
  }
}

TEST(MemoryShares, TooLittleCountsAsTheLeast) {
  EXPECT_EQ(share_memory(0, true).loaded, share_memory(kLeastMemory, true).loaded);
}

class MemoryLimit : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::uint64_t limit() const { return memory_limit(root_); }

  void SetUp() override {
    std::filesystem::remove_all(root_);
    write("/proc/meminfo", "MemTotal:        4194304 kB\nMemFree:          100000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

 private:
  const std::string root_ =
      ::testing::TempDir() + "carillon_memory_limit_" + std::to_string(::getpid());
};

TEST_F(MemoryLimit, IsTheMachinesMemory) {
  EXPECT_EQ(limit(), 4'096 * kMiB);
}

TEST_F(MemoryLimit, IsThatOfAGroupAboveIfThatIsLess) {
  write("/proc/self/cgroup", "0::/system.slice/carillon.service\n");
  write("/sys/fs/cgroup/system.slice/carillon.service/memory.max", "max\n");
  EXPECT_EQ(limit(), 4'096 * kMiB);
  write("/sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
  EXPECT_EQ(limit(), 1'024 * kMiB);
}

TEST_F(MemoryLimit, AContainersLimitIsInTheRootOfItsGroups) {
  write("/proc/self/cgroup", "0::/docker/not-to-be-seen-from-inside\n");
  write("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_EQ(limit(), 512 * kMiB);
}

TEST_F(MemoryLimit, ALimitOfVersionOneIsFound) {
  write("/proc/self/cgroup", "5:devices:/\n4:memory:/a/b\n0::/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "268435456\n");
  EXPECT_EQ(limit(), 256 * kMiB);
}

TEST(MemoryPool, CountsItsShares) {
  MemoryPool pool(100);
  {
    MemoryPool::Share a(pool);
    MemoryPool::Share b(pool);
    a.set(30);
    b.set(50);
    a.set(40);
    EXPECT_EQ(pool.used(), 90u);
    EXPECT_TRUE(pool.has(10));
    EXPECT_FALSE(pool.has(11));
    b.set(70);
    EXPECT_EQ(pool.free(), 0u) << "overdrawn";
    EXPECT_TRUE(pool.has(0));
  }
  EXPECT_EQ(pool.used(), 0u);
}

}  // namespace
}  // namespace carillon::server
