// The space of a log ahead of its end: taken in steps, and written with zeros where syncs are small.
#include "queue/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

constexpr std::uint64_t kStep = 1 << 20;

class LogFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(LogFile::create(path_, kStep, current_, &log_).ok());
    ASSERT_TRUE(log_->become_current(path_).ok());
  }

  // As the store does for a command: room first, then the record, then a sync.
  void append(const std::string& record, int syncs = 1) {
    ASSERT_TRUE(log_->reserve(record.size()).ok());
    ASSERT_TRUE(log_->Append(record, {}, nullptr).ok());
    written_ += record;
    for (; syncs > 0; --syncs) ASSERT_TRUE(log_->Sync({}, nullptr).ok());
  }

  // Where the first byte is that was never written; the end of the file if there is none.
  off_t first_hole() const {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const off_t hole = ::lseek(fd, 0, SEEK_HOLE);
    ::close(fd);
    return hole;
  }

  // Whether the file system tells space that was taken from space that was written.
  bool tells_holes() const {
    const std::string path = directory_ / "probe";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool taken = ::fallocate(fd, 0, 0, 65'536) == 0;
    const bool hole = ::lseek(fd, 0, SEEK_DATA) < 0 && errno == ENXIO;
    ::close(fd);
    return taken && hole;
  }

  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "000001.log";
  LogFile::Current current_ = nullptr;
  std::unique_ptr<LogFile> log_;
  std::string written_;
};

TEST_F(LogFileTest, SpaceIsTakenByTheStepAndCutOffAtTheEnd) {
  append("hello");
  EXPECT_EQ(std::filesystem::file_size(path_), kStep);
  append(std::string(kStep, 'x'));
  EXPECT_EQ(std::filesystem::file_size(path_), 2 * kStep);
  ASSERT_TRUE(log_->Close({}, nullptr).ok());
  EXPECT_EQ(contents(), written_);
}

// So it can be told that nothing of it is missing.
TEST_F(LogFileTest, TheSyncOfALogThatHasASuccessorCutsItOff) {
  append("hello");
  std::unique_ptr<LogFile> next;
  ASSERT_TRUE(LogFile::create(directory_ / "000002.log", kStep, current_, &next).ok());
  ASSERT_TRUE(next->become_current(directory_ / "000002.log").ok());
  EXPECT_EQ(std::filesystem::file_size(path_), kStep);
  ASSERT_TRUE(log_->Sync({}, nullptr).ok());
  EXPECT_EQ(contents(), "hello");
}

TEST_F(LogFileTest, ZerosAreWrittenAheadOnceSyncsAreSmall) {
  if (!tells_holes()) GTEST_SKIP() << "this file system does not tell what was written";
  while (written_.size() <= 300'000) append(std::string(400, 'x'), written_.size() % 10'000 == 0 ? 1 : 0);
  EXPECT_LT(first_hole(), 320'000) << "a sync for 10 000 bytes: the space is only taken";
  while (written_.size() <= 600'000) append(std::string(400, 'y'));
  EXPECT_GT(first_hole(), 700'000) << "a sync for 400 bytes";
  for (int i = 0; i < 200; ++i) append(std::string(20'000, 'z'));
  EXPECT_LT(first_hole(), static_cast<off_t>(written_.size()) + 20'000) << "large again";
  const std::string all = contents();
  EXPECT_EQ(all.substr(0, written_.size()), written_);
  EXPECT_EQ(all.find_first_not_of('\0', written_.size()), std::string::npos);
}

}  // namespace
}  // namespace carillon::queue
