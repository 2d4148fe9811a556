// The simulated disk: what a power loss may leave and what not, its space and its faults.

#include "simulator/disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "base/file_descriptor.h"
#include "base/file_io.h"
#include "queue/seed.h"

namespace carillon::simulator {

namespace {

namespace fs = std::filesystem;
using base::FileDescriptor;

class DiskTest : public testing::Test {
 protected:
  static FileDescriptor open(const char* path, int flags = O_RDWR | O_CREAT) {
    return FileDescriptor(::open(path, flags | O_CLOEXEC, 0600));
  }
  static std::string read(const char* path) {
    const FileDescriptor file = open(path, O_RDONLY);
    if (!file) return "none";
    std::string bytes(1 << 20, '\0');
    std::size_t size = bytes.size();
    if (base::read_at(file.get(), bytes.data(), size, 0) != 0) return "error";
    bytes.resize(size);
    return bytes;
  }
  static void write(const FileDescriptor& file, std::string_view bytes, std::size_t at = 0) {
    ASSERT_EQ(base::write_at(file.get(), bytes, at), 0);
  }
  // A file with these bytes, all of it durable.
  static void make_durable(const char* path, std::string_view bytes) {
    const FileDescriptor file = open(path);
    write(file, bytes);
    ASSERT_EQ(::fsync(file.get()), 0);
    ASSERT_EQ(base::sync_directory("/simulated"), 0);
  }

  Disk& disk = Disk::mount();
  Random random{queue::seed_or(1)};
};

TEST_F(DiskTest, KeepsFilesApartFromThoseOfTheMachine) {
  write(open("/simulated/a"), "hello");
  EXPECT_EQ(read("/simulated/a"), "hello");
  EXPECT_TRUE(fs::exists("/simulated/a"));
  EXPECT_EQ(fs::file_size("/simulated/a"), 5U);
  EXPECT_FALSE(fs::exists("/simulated/b"));
  EXPECT_TRUE(fs::exists("/proc/self/stat"));
  fs::create_directory("/simulated/d");
  write(open("/simulated/d/x"), "x");
  write(open("/simulated/d/y"), "y");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator("/simulated/d"))
    names.insert(entry.path().string());
  EXPECT_EQ(names, (std::set<std::string>{"/simulated/d/x", "/simulated/d/y"}));
  EXPECT_EQ(fs::remove_all("/simulated/d"), 3U);
  EXPECT_FALSE(fs::exists("/simulated/d"));
}

TEST_F(DiskTest, KeepsWhatWasWrittenWhenOnlyTheProcessDies) {
  const FileDescriptor file = open("/simulated/a");
  write(file, "hello");
  disk.end_process();
  EXPECT_EQ(read("/simulated/a"), "hello");
  EXPECT_EQ(::fsync(file.get()), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(DiskTest, KeepsWhatWasSynced) {
  for (int i = 0; i < 100; ++i) {
    make_durable("/simulated/a", std::string(10'000, 'a'));
    disk.lose_power(random);
    EXPECT_EQ(read("/simulated/a"), std::string(10'000, 'a'));
  }
}

TEST_F(DiskTest, TearsUnsyncedBytesAtSectorsAlone) {
  const std::string before(8'192, 'a');
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    make_durable("/simulated/a", before);
    write(open("/simulated/a", O_RDWR), std::string(4'096, 'b'), 4'096);
    disk.lose_power(random);
    const std::string after = read("/simulated/a");
    ASSERT_EQ(after.substr(0, 4'096), before.substr(0, 4'096));
    for (std::size_t sector = 4'096; sector < 8'192; sector += 512) {
      const std::string whole(512, after[sector]);
      ASSERT_TRUE(after[sector] == 'a' || after[sector] == 'b');
      ASSERT_EQ(after.substr(sector, 512), whole);
    }
    seen.insert(after);
  }
  EXPECT_TRUE(seen.contains(before));
  EXPECT_TRUE(seen.contains(before.substr(0, 4'096) + std::string(4'096, 'b')));
  EXPECT_GT(seen.size(), 10U);
}

TEST_F(DiskTest, KeepsTheFirstBytesThatWereAdded) {
  std::set<std::size_t> sizes;
  for (int i = 0; i < 200; ++i) {
    make_durable("/simulated/a", "hello");
    write(open("/simulated/a", O_RDWR), std::string(10'000, 'b'), 5);
    disk.lose_power(random);
    const std::string after = read("/simulated/a");
    ASSERT_EQ(after, "hello" + std::string(after.size() - 5, 'b'));
    sizes.insert(after.size());
    ASSERT_EQ(::unlink("/simulated/a"), 0);
  }
  EXPECT_TRUE(sizes.contains(5));
  EXPECT_TRUE(sizes.contains(10'005));
  EXPECT_GT(sizes.size(), 20U);
}

TEST_F(DiskTest, NeverLosesADurableWrite) {
  for (int i = 0; i < 100; ++i) {
    make_durable("/simulated/a", std::string(8'192, 'a'));
    write(open("/simulated/a", O_RDWR | O_DSYNC), std::string(4'096, 'b'), 0);
    disk.lose_power(random);
    EXPECT_EQ(read("/simulated/a"), std::string(4'096, 'b') + std::string(4'096, 'a'));
  }
}

TEST_F(DiskTest, CutsShortTheWriteDuringWhichThePowerFails) {
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    make_durable("/simulated/a", std::string(4'096, 'a'));
    const FileDescriptor file = open("/simulated/a", O_RDWR | O_DSYNC);
    disk.stop_after(2);
    write(file, std::string(512, 'b'), 0);
    EXPECT_EQ(base::write_at(file.get(), std::string(1'024, 'c'), 512), EIO);
    EXPECT_TRUE(disk.stopped());
    EXPECT_EQ(base::write_at(file.get(), std::string(512, 'd'), 2'048), EIO);
    disk.lose_power(random);
    const std::string after = read("/simulated/a");
    EXPECT_EQ(after.find('d'), std::string::npos);
    EXPECT_EQ(after[0], 'b');
    seen.insert({after[512], after[1'024]});
  }
  EXPECT_EQ(seen, (std::set<std::string>{"aa", "ac", "ca", "cc"}));
}

TEST_F(DiskTest, LosesNamesThatWereNotSynced) {
  std::set<bool> seen;
  for (int i = 0; i < 50; ++i) {
    Disk& fresh = Disk::mount();
    const FileDescriptor file = open("/simulated/a");
    write(file, "hello");
    ASSERT_EQ(::fsync(file.get()), 0);
    fresh.lose_power(random);
    seen.insert(fs::exists("/simulated/a"));
  }
  EXPECT_EQ(seen, (std::set<bool>{false, true}));
}

TEST_F(DiskTest, RenamesWhollyOrNotAtAll) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    Disk& fresh = Disk::mount();
    make_durable("/simulated/a", "old");
    make_durable("/simulated/b", "new");
    ASSERT_EQ(::rename("/simulated/b", "/simulated/a"), 0);
    fresh.lose_power(random);
    seen.insert(read("/simulated/a") + " " + read("/simulated/b"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"new none", "old new"}));
}

TEST_F(DiskTest, BringsBackWhatWasDeletedUnlessTheDirectoryWasSynced) {
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    make_durable("/simulated/a", "hello");
    ASSERT_EQ(::unlink("/simulated/a"), 0);
    disk.lose_power(random);
    seen.insert(read("/simulated/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"hello", "none"}));
}

TEST_F(DiskTest, NeverWritesWhatAFailedSyncHasNotWritten) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    make_durable("/simulated/a", "old");
    const FileDescriptor file = open("/simulated/a", O_RDWR);
    write(file, "new");
    disk.set_faults({.syncs = 1}, 1);
    EXPECT_EQ(::fdatasync(file.get()), -1);
    EXPECT_EQ(errno, EIO);
    disk.set_faults({}, 1);
    EXPECT_EQ(::fdatasync(file.get()), 0);
    EXPECT_EQ(read("/simulated/a"), "new");
    disk.lose_power(random);
    seen.insert(read("/simulated/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"new", "old"}));
}

TEST_F(DiskTest, IsFullAtItsCapacityAndFreeAfterADeletion) {
  disk.set_capacity(12'288);
  const FileDescriptor file = open("/simulated/a");
  write(file, std::string(8'192, 'a'));
  EXPECT_EQ(base::write_at(file.get(), std::string(8'192, 'a'), 8'192), ENOSPC);
  write(file, std::string(4'096, 'a'), 8'192);
  write(file, std::string(4'096, 'b'), 0);  // takes no more
  struct statvfs system {};
  ASSERT_EQ(::statvfs("/simulated", &system), 0);
  EXPECT_EQ(system.f_bavail, 0U);
  ASSERT_EQ(::unlink("/simulated/a"), 0);
  EXPECT_EQ(disk.free_bytes(), 12'288U);
}

TEST_F(DiskTest, FailsOneCallInThisMany) {
  disk.set_faults({.writes = 10, .reads = 10}, 1);
  const FileDescriptor file = open("/simulated/a");
  int failed = 0;
  for (int i = 0; i < 1'000; ++i) {
    if (base::write_at(file.get(), "x", 0) == EIO) ++failed;
    std::size_t size = 1;
    char byte = 0;
    if (base::read_at(file.get(), &byte, size, 0) == EIO) ++failed;
  }
  EXPECT_NEAR(failed, 200, 100);
  EXPECT_EQ(disk.failed_calls(), static_cast<std::uint64_t>(failed));
}

TEST_F(DiskTest, LocksAFileOnce) {
  const FileDescriptor first = open("/simulated/a");
  {
    const FileDescriptor second = open("/simulated/a");
    EXPECT_EQ(::flock(first.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(::flock(second.get(), LOCK_EX | LOCK_NB), -1);
    EXPECT_EQ(errno, EWOULDBLOCK);
  }
  disk.end_process();
  EXPECT_EQ(::flock(open("/simulated/a").get(), LOCK_EX | LOCK_NB), 0);
}

}  // namespace

}  // namespace carillon::simulator
