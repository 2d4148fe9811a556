// The fixture of the log's tests: a log in a temporary directory, with changes that are made from
// their numbers alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/file_bytes.h"
#include "queue/store/log/local_log.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

inline constexpr std::uint64_t kIdentity = 0x0123'4567'89ab'cdef;
inline constexpr std::size_t kBlock = kLogBlock;
inline constexpr std::size_t kSegment = 16 * kBlock;

inline std::string text(LogNumber number, std::size_t size) {
  std::string text = "change " + std::to_string(number) + " ";
  text.resize(std::max(size, text.size()), static_cast<char>('a' + number % 26));
  return text;
}

class LocalLogTest : public ::testing::Test {
 protected:
  // Makes a log if there is no file.
  std::unique_ptr<LocalLog> open(const LogPosition& after, LogWrites writes,
                                 std::uint64_t boot = 0) {
    if (std::filesystem::is_empty(directory_.path())) LocalLog::make(held_, kIdentity, {});
    return open_what_is_there(after, writes, boot);
  }
  std::unique_ptr<LocalLog> open(LogNumber after = 0, LogWrites writes = LogWrites::kDurable) {
    return open({.number = after}, writes);
  }
  std::unique_ptr<LocalLog> open_what_is_there(const LogPosition& after, LogWrites writes,
                                               std::uint64_t boot) {
    const LocalLogOptions options{
        .segment_bytes = kSegment, .most_bytes = 64 * kSegment, .writes = writes, .boot = boot};
    auto log = std::make_unique<LocalLog>(held_, kIdentity, options);
    found_.clear();
    log->read(after, [this](LogNumber number, std::string_view change) {
      found_.emplace_back(number, change);
    });
    dropped_ = log->dropped();
    return log;
  }

  std::string complaint(LogNumber after = 0, std::uint64_t boot = 0) {
    return complaint({.number = after}, boot);
  }
  std::string complaint(const LogPosition& after, std::uint64_t boot) {
    try {
      open_what_is_there(after, LogWrites::kDurable, boot);
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  }

  static LogNumber append(LocalLog& log, std::size_t size) {
    const std::string change = text(log.last() + 1, size);
    return log.append(change, [](LogNumber) {});
  }

  static void append_durable(LocalLog& log, std::size_t size, int count = 1) {
    for (int n = 0; n < count; ++n) {
      append(log, size);
      log.sync();
    }
  }

  void expect_complaint(const std::string& part, LogNumber after = 0, std::uint64_t boot = 0) {
    const std::string why = complaint(after, boot);
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }

  // Each change that was found is as append() made it, and they have the numbers first to last.
  void expect_found(LogNumber first, LogNumber last) {
    ASSERT_EQ(found_.size(), last - first + 1);
    for (const auto& [number, change] : found_) {
      ASSERT_EQ(number, first++);
      ASSERT_EQ(change, text(number, change.size()));
    }
  }

  // The segments that have room for records, in the order in which they were made.
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      if (entry.file_size() != kBlock) files.push_back(entry);
    }
    const auto number = [](const auto& path) {
      return LogSegment::number_of(path.filename().string());
    };
    std::sort(files.begin(), files.end(),
              [&](const auto& a, const auto& b) { return number(a) < number(b); });
    return files;
  }

  void remove_all_files() const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      std::filesystem::remove(entry);
  }

  static void blank(const std::filesystem::path& file, std::size_t at, std::size_t size) {
    std::string bytes = contents(file);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, '\0');
    write(file, bytes);
  }

  TemporaryDirectory directory_;
  const base::Directory held_{directory_.path().string()};
  std::vector<std::string> dropped_;
  std::vector<std::pair<LogNumber, std::string>> found_;
};

}  // namespace carillon::queue
