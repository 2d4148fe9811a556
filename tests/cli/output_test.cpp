// Tests of reading standard input, and of lines for standard error.

#include "cli/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "cli/scripted_server.h"

namespace carillon::cli {
namespace {

// Replaces standard input with a pipe while the object exists.
class StandardInput {
 public:
  explicit StandardInput(std::string_view text) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
    if (::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("the text does not fit into the pipe");
    }
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    end_ = ends[1];
  }
  ~StandardInput() {
    end();
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

  void end() {
    if (end_ >= 0) ::close(std::exchange(end_, -1));
  }

 private:
  int before_ = ::dup(STDIN_FILENO);
  int end_ = -1;
};

TEST(ReadStandardInput, UpToTheLimit) {
  StandardInput input("hello");
  input.end();
  EXPECT_EQ(read_standard_input(5), "hello");
}

TEST(ReadStandardInput, OneByteMoreIsRefusedWithoutWaitingForTheRest) {
  const StandardInput input("hello!");  // the pipe stays open
  EXPECT_EQ(failure_of([] { read_standard_input(5); }),
            "standard input has more than 5 bytes, the most that any server takes as a body");
}

// A line may have what a server has sent.
TEST(Remark, WritesNoControlCharactersThatATerminalWouldObey) {
  testing::internal::CaptureStderr();
  remark("it answered \x1b[2J\x07\x7f\u009b!\tand\nmore");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "it answered \\x1B[2J\\x07\\u007F\\u009B!\tand\nmore\n");
}

TEST(WriteOut, WritesNoControlCharactersThatATerminalWouldObey) {
  testing::internal::CaptureStdout();
  write_out("a key\tk\x1b[2J\u009b\u202e\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a key\tk\\x1B[2J\\u009B\\u202E\n");
}

TEST(WriteBody, IsByteForByteInAFile) {
  testing::internal::CaptureStdout();
  write_body("\x1b[2J\xFF\u009b");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "\x1b[2J\xFF\u009b");
}

}  // namespace
}  // namespace carillon::cli
