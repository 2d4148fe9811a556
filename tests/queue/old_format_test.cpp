// A data directory of before 0.1.0 is refused, in one line, and keeps its files.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "carillon/queue/disk_store.h"
#include "queue/numbered_jobs.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

TEST(OldFormat, IsRefusedAndItsLogStays) {
  const TemporaryDirectory directory;
  const fs::path archive = fs::path(CARILLON_TEST_DATA) / "format-4.tar.gz";
  const std::string command =
      "tar -xzf '" + archive.string() + "' -C '" + directory.path().string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  for (int start = 0; start < 2; ++start) {
    const std::string why = complaint([&] { DiskStore(directory / "data", {}); });
    EXPECT_TRUE(contains(why,
                         "/data was made by another version of Carillon: its format is "
                         "'carillon-queue 4', and this version knows 'carillon-queue 6'"))
        << why;
    EXPECT_TRUE(fs::exists(directory / "data/log-1"));
  }
}

}  // namespace
}  // namespace carillon::queue
