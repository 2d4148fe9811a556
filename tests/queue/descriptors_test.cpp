// How many descriptors a log and a store have open, however much is in their files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "carillon/queue/disk_store.h"
#include "queue/numbered_jobs.h"
#include "queue/store/log/local_log.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

// Counts the descriptors of this process that are files whose paths begin so.
std::size_t open_files(const std::string& beginning) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry, gone).string().starts_with(beginning)) ++count;
  }
  return count;
}

std::size_t files(const fs::path& directory, const std::string& ending) {
  const auto all = fs::directory_iterator(directory);
  return static_cast<std::size_t>(std::count_if(begin(all), end(all), [&](const auto& entry) {
    return entry.path().string().ends_with(ending);
  }));
}

class LogDescriptors : public ::testing::TestWithParam<LogWrites> {};

TEST_P(LogDescriptors, AreFewHoweverManySegments) {
  constexpr std::uint64_t kIdentity = 1;
  const TemporaryDirectory directory;
  const base::Directory held(directory.path().string());
  const std::string segments = directory / "jobs-";
  const std::string change(10'000, 'c');
  const LocalLogOptions options{
      .segment_bytes = 64 << 10, .most_bytes = 64 << 20, .writes = GetParam()};
  {
    LocalLog::make(held, kIdentity, {});
    LocalLog log(held, kIdentity, options);
    log.read({}, [](LogNumber, std::string_view) {});
    for (int n = 0; n < 200; ++n) {
      log.append(change, [](LogNumber) {});
      log.write();  // nobody may sync for long
      ASSERT_LE(open_files(segments), 4U) << n;
    }
    EXPECT_GT(files(directory.path(), ""), 30U);
    log.sync();
    log.trim({.number = 150});
    const std::size_t made = files(directory.path(), "");
    for (int n = 200; n < 300; ++n) {
      log.append(change, [](LogNumber) {});
      log.sync();
      ASSERT_LE(open_files(segments), 4U) << n;
    }
    EXPECT_LE(files(directory.path(), ""), made + 1);  // those that were trimmed are used again
  }
  LocalLog log(held, kIdentity, options);
  LogNumber found = 150;
  log.read({.number = 150}, [&](LogNumber number, std::string_view bytes) {
    EXPECT_EQ(number, ++found);
    EXPECT_EQ(bytes, change);
  });
  EXPECT_EQ(found, 300U);
  EXPECT_EQ(open_files(segments), 0U);
  log.append(change, [](LogNumber) {});
  EXPECT_EQ(log.sync(), 301U);
  EXPECT_EQ(open_files(segments), 1U);
}

INSTANTIATE_TEST_SUITE_P(Writes, LogDescriptors,
                         ::testing::Values(LogWrites::kDurable, LogWrites::kBuffered),
                         [](const auto& param) {
                           return param.param == LogWrites::kDurable ? "Durable" : "Buffered";
                         });

TEST(StoreDescriptors, StayWithinTheirShareHoweverManyFiles) {
  const TemporaryDirectory directory;
  const DiskStoreOptions options{.recent = 256 << 10,
                                 .read_cache = 1 << 20,
                                 .log_bytes = 1 << 20,
                                 .log_segment_bytes = 64 << 10,
                                 .max_open_files = 32,
                                 .durable_writes = false};
  DiskStore store(directory / "data", options);
  constexpr JobId kJobs = 5'000;
  std::size_t most = 0;
  for (JobId id = 1; id <= kJobs; ++id) {
    put(store, id, id % 4 == 0 ? 10'000 : 1'000);
    if (id % 100 != 0) continue;
    store.sync();
    most = std::max(most, open_files(directory / "data"));
  }
  const fs::path data = directory / "data";
  EXPECT_GT(files(data, ".sst") + files(data, ".blob"), 2 * options.max_open_files);
  for (JobId id = 1; id <= kJobs; id += 97) {
    ASSERT_EQ(store.body(id), body_of(id, id % 4 == 0 ? 10'000 : 1'000));
    most = std::max(most, open_files(directory / "data"));
  }
  EXPECT_LE(most, options.max_open_files + DiskStoreOptions::kOtherFiles);
}

}  // namespace
}  // namespace carillon::queue
