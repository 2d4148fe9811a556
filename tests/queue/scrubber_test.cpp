// A scrubber over real files, some of them with a bit that is flipped.

#include "carillon/queue/scrubber.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/file_bytes.h"
#include "queue/numbered_jobs.h"
#include "queue/store/damage/file_checks.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class ScrubberTest : public testing::Test {
 protected:
  ScrubberTest() {
    DiskStore store(path_, {});
    for (JobId id = 1; id <= 100; ++id) put(store, id, id % 2 == 0 ? 100 : 6'000);
    store.close();
  }

  static ScrubberOptions quick() {
    return {.bytes_per_second = 1 << 30,
            .settled = milliseconds(0),
            .between_rounds = milliseconds(1),
            .until_last_read = milliseconds(0)};
  }
  Scrubber::OnDamage note() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  static void await_rounds(const Scrubber& scrubber, std::uint64_t rounds) {
    while (scrubber.health().rounds < rounds) std::this_thread::sleep_for(milliseconds(1));
  }
  std::uint64_t bytes() const {
    std::uint64_t bytes = 0;
    for (const fs::path& file : files()) bytes += fs::file_size(file);
    return bytes;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path_)) {
      const std::string ending = entry.path().extension();
      if (ending == ".sst" || ending == ".blob") files.push_back(entry.path());
    }
    return files;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "data";
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(ScrubberTest, ReadsAllOfWholeFilesAndSaysNothing) {
  const Scrubber scrubber(path_, quick(), note());
  await_rounds(scrubber, 2);
  EXPECT_GE(scrubber.health().bytes, bytes());
  EXPECT_EQ(scrubber.health().damaged_files, 0u);
  EXPECT_EQ(lines(), std::vector<std::string>());
}

TEST_F(ScrubberTest, AFileThatCannotBeReadIsNotCalledDamaged) {
  const std::string loop = directory_ / "loop.sst";
  fs::create_symlink(loop, loop);
  const FileVerdict verdict = verdict_on({.path = loop});
  EXPECT_NE(verdict.fault, "");
  EXPECT_TRUE(verdict.unreadable);
  const fs::path whole = files().front();
  fs::resize_file(whole, fs::file_size(whole) / 2);
  EXPECT_FALSE(verdict_on({.path = whole}).unreadable);
}

TEST_F(ScrubberTest, CountsEachFileOnceThatAReaderHasNoted) {
  Scrubber scrubber(path_, quick(), note());
  scrubber.note_damage("block checksum mismatch in /proc/self/fd/7/000921.sst offset 0 size 9");
  scrubber.note_damage("the file /data/000921.sst is damaged: x");
  scrubber.note_damage("000922.blob");
  scrubber.note_damage("Blob CRC mismatch");
  scrubber.note_damage("a.sst");
  EXPECT_EQ(scrubber.health().damaged_files, 2u);
}

TEST_F(ScrubberTest, ReportsEachDamagedFileOnce) {
  std::size_t flipped = 0;
  for (const fs::path& file : files()) {
    std::string bytes = contents(file);
    if (bytes.size() < 3'000) continue;
    bytes[2'000] = static_cast<char>(bytes[2'000] ^ 1);
    write(file, bytes);
    ++flipped;
  }
  ASSERT_GE(flipped, 2u);  // a table, and a file of large bodies
  const Scrubber scrubber(path_, quick(), note());
  await_rounds(scrubber, 3);
  EXPECT_EQ(scrubber.health().damaged_files, flipped);
  const std::vector<std::string> told = lines();
  ASSERT_EQ(told.size(), flipped);
  for (const std::string& line : told) EXPECT_TRUE(contains(line, path_)) << line;
}

// Such a file may not be complete yet.
TEST_F(ScrubberTest, LeavesWhatWasWrittenLatelyForLater) {
  for (const fs::path& file : files()) write(file, contents(file).substr(0, 100));
  ScrubberOptions options = quick();
  options.settled = std::chrono::hours(24);
  const Scrubber scrubber(path_, options, note());
  await_rounds(scrubber, 2);
  EXPECT_EQ(scrubber.health().bytes, 0u);
  EXPECT_EQ(lines(), std::vector<std::string>());
}

TEST_F(ScrubberTest, ReadsNoFasterThanItsRate) {
  ScrubberOptions options = quick();
  options.bytes_per_second = 1 << 20;
  const auto began = std::chrono::steady_clock::now();
  const Scrubber scrubber(path_, options, note());
  await_rounds(scrubber, 1);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took.count(), static_cast<double>(bytes()) / (1 << 20));
}

TEST_F(ScrubberTest, EndsWhileItWaits) {
  ScrubberOptions options = quick();
  options.bytes_per_second = 1;
  const Scrubber scrubber(path_, options, note());
  while (scrubber.health().bytes == 0) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace
}  // namespace carillon::queue
