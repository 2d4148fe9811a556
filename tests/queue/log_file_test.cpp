// The space of a log ahead of its end: taken in steps, and cut off where it is complete.
#include "queue/store/log_file.h"

#include <gtest/gtest.h>

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
  void append(const std::string& record) {
    ASSERT_TRUE(log_->reserve(record.size()).ok());
    ASSERT_TRUE(log_->Append(record, {}, nullptr).ok());
    written_ += record;
    ASSERT_TRUE(log_->Sync({}, nullptr).ok());
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

}  // namespace
}  // namespace carillon::queue
