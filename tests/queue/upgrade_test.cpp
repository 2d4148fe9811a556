// Data directories of earlier versions are opened, with all that was acknowledged in them.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "carillon/queue/disk_store.h"
#include "queue/store_media.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr UtcMs kYear2997 = 32'409'072'000'000;
constexpr UtcMs kYear2998 = 32'440'608'000'000;
constexpr UtcMs kYear2999 = 32'472'144'000'000;

void unpack(const std::string& name, const fs::path& into) {
  const fs::path archive = fs::path(CARILLON_TEST_DATA) / name;
  const std::string command = "tar -xzf '" + archive.string() + "' -C '" + into.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

void expect_the_jobs_of_format_3(const DiskStore& store) {
  const Recovered recovered = store.recover();
  ASSERT_EQ(recovered.tubes.size(), 2U);
  EXPECT_GE(recovered.watermarks.next_id, 62U);
  const auto first = store.find(1);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->buried());
  EXPECT_EQ(first->priority, 9U);
  EXPECT_EQ(first->history.buries, 1U);
  EXPECT_EQ(store.body(1), "first");
  const auto far = store.find(2);
  ASSERT_TRUE(far);
  EXPECT_EQ(far->due, kYear2999);
  EXPECT_EQ(far->ttr, 90'000U);
  EXPECT_FALSE(store.find(5)) << "it was deleted";
  for (JobId id = 3; id <= 60; ++id) {
    if (id == 5) continue;
    const auto job = store.find(id);
    ASSERT_TRUE(job) << id;
    EXPECT_EQ(job->due, kYear2998);
    EXPECT_EQ(store.body(id), "body " + std::to_string(id) + "\n");
  }
  EXPECT_EQ(store.body(61), std::string(20'000, 'x'));
  EXPECT_EQ(ids(store.scan_due(store.find(61)->tube, {}, 1)), (Ids{61}));
  EXPECT_EQ(store.find(61)->due, kYear2997);
}

TEST(Upgrade, ADirectoryOfFormat3ThatWasKilledIsOpened) {
  const TemporaryDirectory directory;
  unpack("format-3.tar.gz", directory.path());
  {
    DiskStore store(directory / "data", kSmallDisk);
    expect_the_jobs_of_format_3(store);
    JobRecord moved = *store.find(2);
    const JobRecord before = moved;
    moved.due += 1;
    store.append({.jobs = {{before, moved, {}}}, .tubes = {}, .watermarks = {}});
    store.sync();
  }
  DiskStore again(directory / "data", kSmallDisk);
  EXPECT_EQ(again.find(2)->due, kYear2999 + 1);
  EXPECT_FALSE(fs::exists(directory / "data/journal"));
}

}  // namespace
}  // namespace carillon::queue
