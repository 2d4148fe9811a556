// A log whose file fails: each write to it, and each sync, as on a disk that is broken.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "queue/store/log/log_segment.h"

namespace carillon::queue {

// While this lives, the descriptor of the log's first open segment is a pipe's, which can neither
// be written to at an offset nor synced. REQUIRES: this process has one log, which has not gone on
// in another segment since it was opened.
class BrokenLog {
 public:
  BrokenLog() {
    namespace fs = std::filesystem;
    std::optional<std::uint64_t> first;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const std::string name = fs::read_symlink(entry.path(), ignored).filename();
      const auto number = LogSegment::number_of(name);
      if (!number || (first && *first < *number)) continue;
      first = number;
      log_ = std::stoi(entry.path().filename().string());
    }
    EXPECT_GE(log_, 0);
    int pipe[2];
    EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    kept_ = ::fcntl(log_, F_DUPFD_CLOEXEC, 0);
    ::dup2(pipe[1], log_);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~BrokenLog() {
    ::dup2(kept_, log_);
    ::close(kept_);
  }
  BrokenLog(const BrokenLog&) = delete;
  BrokenLog& operator=(const BrokenLog&) = delete;

 private:
  int log_ = -1;
  int kept_ = -1;
};

}  // namespace carillon::queue
