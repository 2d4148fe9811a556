// What a salvage does with a log of which a file cannot be read, or is another's.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/directory.h"
#include "carillon/queue/disk_store.h"
#include "queue/salvage_fixture.h"
#include "queue/store/log/log_mender.h"
#include "queue/store/log/log_record.h"
#include "queue/store/log/log_segment.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

class SalvageOfALog : public SalvageTest {
 protected:
  std::string path(const std::string& name) const { return directory_ / name; }

  static void put_job(DiskStore& store, JobId id) {
    store.append({.jobs = {{{}, job(id, 4), "body"}},
                  .tubes = {{1, "default", id, 0}},
                  .watermarks = Watermarks{.next_id = id + 1}});
    store.sync();
  }

  void copy_open(const std::string& from, const std::string& to) const {
    copy_open_store(path(from), path(to));
  }

  std::vector<JobId> saved_jobs() const {
    std::vector<JobId> ids;
    for (const JobRecord& record : DiskStore(saved(), {}).scan_due(1, {}, 100))
      ids.push_back(record.id);
    return ids;
  }
};

// A directory cannot be read as a file, not even by root.
TEST_F(SalvageOfALog, OneFileThatCannotBeReadCostsNoOther) {
  {
    DiskStore store(path("data"), {});
    for (JobId id = 1; id <= 3; ++id) put_job(store, id);
    copy_open("data", "copy");
  }
  fs::create_directory(path("copy/jobs-99.data"));
  const StoreReport found = check(copy());
  EXPECT_TRUE(found.can_be_salvaged);
  const StoreReport report = salvage();
  SCOPED_TRACE(testing::PrintToString(report.damages));
  EXPECT_EQ(saved_jobs(), (std::vector<JobId>{1, 2, 3}));
  ASSERT_EQ(report.damages.size(), 1u);
  EXPECT_EQ(report.damages[0],
            "the log's file " + path("copy/jobs-99.data") + " cannot be read: Is a directory");
  ASSERT_EQ(report.lost_changes.size(), 1u);
  EXPECT_TRUE(contains(report.lost_changes[0], "change 4 of the log and those behind it may be"));
  EXPECT_EQ(found.lost_changes, report.lost_changes);
}

// Both go on from the same moment, and their newest files have the same serial number.
TEST_F(SalvageOfALog, TheNewestFileOfACopyIsLeftOut) {
  {
    DiskStore store(path("data"), {});
    put_job(store, 1);
    put_job(store, 2);
    copy_open("data", "ours");
    copy_open("data", "theirs");
  }
  {
    DiskStore store(path("ours"), {});
    put_job(store, 3);
    copy_open("ours", "copy");
  }
  fs::path newest;
  {
    DiskStore store(path("theirs"), {});
    put_job(store, 4);
    erase(store, 1);
    store.sync();
    copy_open("theirs", "other");
  }
  std::uint64_t serial = 0;
  const base::Directory held(path("other"));
  for (const auto& file : fs::directory_iterator(path("other"))) {
    const std::string name = file.path().filename();
    if (!LogSegment::number_of(name)) continue;
    const auto segment = LogSegment::open(held, name, LogWrites::kBuffered);
    if (segment.serial() <= serial) continue;
    serial = segment.serial();
    newest = name;
  }
  ASSERT_TRUE(fs::exists(fs::path(path("copy")) / newest));
  fs::copy_file(fs::path(path("other")) / newest, fs::path(path("copy")) / newest,
                fs::copy_options::overwrite_existing);
  const StoreReport report = salvage();
  SCOPED_TRACE(testing::PrintToString(report.damages));
  EXPECT_EQ(saved_jobs(), (std::vector<JobId>{1, 2}));
  ASSERT_FALSE(report.damages.empty());
  EXPECT_TRUE(contains(report.damages[0], "is of a copy of this directory"));
  ASSERT_EQ(report.lost_changes.size(), 1u);
  EXPECT_TRUE(contains(report.lost_changes[0], "change 3 of the log and those behind it may be"))
      << report.lost_changes[0];
}

// The file was used as number 6 before, and a record of that time is still there. Its neighbours of
// both times are there, too, in either order of their names.
TEST_F(SalvageOfALog, AHeaderIsThatOfTheLatestUse) {
  constexpr std::uint64_t kIdentity = 7;
  constexpr std::uint64_t kLife = 11;
  constexpr std::uint32_t kBlocks = 4;
  std::string broken(kBlocks * kLogBlock, '\xff');
  for (const std::uint64_t serial : {9u, 6u}) {
    const std::uint64_t block = serial == 9 ? 1 : 2;
    const LogRecordHead head{.first = serial};
    std::string record(kLogBlock, '\0');
    std::memcpy(record.data(), &head, sizeof head);
    seal_log_record(record.data(), {.life = kLife, .serial = serial, .block = block});
    broken.replace(block * kLogBlock, kLogBlock, record);
  }
  for (const bool swapped : {false, true}) {
    SCOPED_TRACE(swapped);
    const std::string log = path(swapped ? "swapped" : "log");
    fs::create_directory(log);
    for (const std::uint64_t serial : {5u, 8u}) {
      std::string bytes(kBlocks * kLogBlock, '\0');
      const std::string header = LogSegment::header_of(
          kIdentity, kBlocks, {.life = kLife, .serial = serial, .first = serial});
      bytes.replace(0, header.size(), header);
      write(fs::path(log) / ((serial == 5) == swapped ? "jobs-1.data" : "jobs-2.data"), bytes);
    }
    write(fs::path(log) / "jobs-3.data", broken);
    std::vector<std::string> damages;
    const base::Directory mended(mend_log(log, log + "-mended", kIdentity, damages));
    EXPECT_EQ(damages.size(), 1u);
    const auto segment = LogSegment::open(mended, "jobs-3.data", LogWrites::kBuffered);
    EXPECT_EQ(segment.serial(), 9u);
    EXPECT_EQ(segment.first(), 9u);
  }
}

TEST_F(SalvageOfALog, LinksThatCannotBeMadeAreAnErrorOfTheStore) {
  fs::create_directory(path("log"));
  write(path("log/jobs-1.data"), std::string(kLogBlock, '\xff'));
  std::vector<std::string> damages;
  const std::string why =
      complaint([&] { mend_log(path("log"), path("nowhere/mended"), 7, damages); });
  EXPECT_TRUE(contains(why, "cannot make links in " + path("nowhere/mended"))) << why;
}

}  // namespace
}  // namespace carillon::queue
