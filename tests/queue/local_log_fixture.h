// The fixture of the log's tests: a log in a temporary directory, with changes that are made from
// their numbers alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/store/local_log.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

inline constexpr std::uint64_t kIdentity = 0x0123'4567'89ab'cdef;
inline constexpr std::size_t kBlock = LogSegment::kBlock;
inline constexpr std::size_t kSegment = 16 * kBlock;

inline std::string text(LogNumber number, std::size_t size) {
  std::string text = "change " + std::to_string(number) + " ";
  text.resize(std::max(size, text.size()), static_cast<char>('a' + number % 26));
  return text;
}

class LocalLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<LocalLog> open(LogNumber after = 0, LogWrites writes = LogWrites::kDurable) {
    const LocalLogOptions options{
        .segment_bytes = kSegment, .most_bytes = 64 * kSegment, .writes = writes};
    auto log = std::make_unique<LocalLog>(directory_.path().string(), kIdentity, options);
    found_.clear();
    log->read(after, [this](LogNumber number, std::string_view change) {
      found_.emplace_back(number, change);
    });
    return log;
  }

  std::string complaint(LogNumber after = 0) {
    try {
      open(after);
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  }

  static LogNumber append(LocalLog& log, std::size_t size) {
    const std::string change = text(log.last() + 1, size);
    return log.append(change, [](LogNumber) {});
  }

  // Each change that was found is as append() made it, and they have the numbers first to last.
  void expect_found(LogNumber first, LogNumber last) {
    ASSERT_EQ(found_.size(), last - first + 1);
    for (const auto& [number, change] : found_) {
      ASSERT_EQ(number, first++);
      ASSERT_EQ(change, text(number, change.size()));
    }
  }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      files.push_back(entry);
    std::sort(files.begin(), files.end());
    return files;
  }

  static void put(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  TemporaryDirectory directory_;
  std::vector<std::pair<LogNumber, std::string>> found_;
};

}  // namespace carillon::queue
