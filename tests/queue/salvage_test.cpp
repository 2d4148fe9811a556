// What a salvaged directory promises: it serves, gives no id twice, and says what nobody knows.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/engine.h"
#include "queue/salvage_fixture.h"
#include "queue/store/damage/offline_state.h"
#include "queue/store/log/change_codec.h"
#include "queue/store/state/rocks_state.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr Now kAtSalvage{.utc_ns = 1'000'000'000'000, .mono_ns = 1};

class StoreCheckSalvage : public SalvageTest {
 protected:
  void copy_open() const { copy_open_store(data(), copy()); }

  // Flips a bit where a file of the copy has these bytes. Returns how many have them.
  int damage(const std::string& ending, const std::string& bytes) {
    int files = 0;
    for (const auto& file : fs::directory_iterator(copy())) {
      if (file.path().extension() != ending) continue;
      const std::size_t at = contents(file.path()).find(bytes);
      if (at == std::string::npos) continue;
      flip(file.path(), at);
      ++files;
    }
    return files;
  }

  static JobRecord job_of(JobId id, std::uint32_t tube) {
    JobRecord record = job(id, 4);
    record.tube = tube;
    return record;
  }
};

// The records of tubes fill several blocks. The record of the tube with the groups lies in a lost
// block, and most of its groups lie in others.
TEST_F(StoreCheckSalvage, ATubeOfGroupsThatIsLostIsMadeAnew) {
  constexpr std::uint32_t kTubes = 900;
  constexpr std::uint32_t kHead = 500;
  const std::string name = "q7Zx0vKp2Lw9sTfB4mNc";
  {
    DiskStore store(data(), {});
    Changes changes{.jobs = {}, .tubes = {}, .watermarks = Watermarks{.next_id = kTubes + 1}};
    std::vector<std::string> names;
    for (std::uint32_t tube = 1; tube <= kTubes; ++tube) {
      if (tube == kHead) {
        changes.tubes.push_back({.number = tube, .name = name, .lanes = kTubes - 1});
        continue;
      }
      changes.jobs.push_back({{}, job_of(tube, tube), "body"});
      changes.tubes.push_back(
          {.number = tube, .name = "group" + std::to_string(tube), .scheduled = 1, .head = kHead});
    }
    store.append(changes);
    store.close();
  }
  fs::copy(data(), copy());
  ASSERT_EQ(damage(".sst", name), 1);
  const StoreReport report = salvage();
  EXPECT_FALSE(report.damages.empty());
  EXPECT_EQ(report.jobs, kTubes - 1);
  EXPECT_TRUE(
      tells(report.left_out, "the record of tube number 500 is lost: its settings (max-running"));
  EXPECT_TRUE(tells(report.left_out, "Its jobs are in 'salvaged-500': check them"));
  EXPECT_TRUE(tells(report.left_out, "settings of tubes without jobs, may be lost"));
  EXPECT_FALSE(tells(report.left_out, "schedules may be lost"));
  DiskStore store(saved(), {});
  const std::vector<TubeRecord> tubes = store.recover().tubes;
  const auto head = std::find_if(tubes.begin(), tubes.end(),
                                 [](const TubeRecord& tube) { return tube.number == kHead; });
  ASSERT_NE(head, tubes.end());
  EXPECT_EQ(head->name, "salvaged-500");
  EXPECT_GT(head->lanes, 100u);
  EXPECT_LT(head->lanes, kTubes - 1);
  Engine engine(store, {}, kAtSalvage);
  const JobCounts jobs = engine.stats(kAtSalvage).jobs;
  EXPECT_EQ(jobs.delayed + jobs.ready, kTubes - 1);
}

// The records of tubes fill several blocks. A schedule knows the number of one of those that are
// lost, and has been given another tube since; an endpoint has only a name.
TEST_F(StoreCheckSalvage, NoLostTubeGetsTheNameOfAnother) {
  constexpr std::uint32_t kTubes = 900;
  const std::string marker = "q7Zx0vKp2Lw9sTfB4mNc";
  {
    DiskStore store(data(), {});
    Changes changes{.jobs = {}, .tubes = {}, .watermarks = Watermarks{.next_id = kTubes + 1}};
    for (std::uint32_t tube = 1; tube <= kTubes; ++tube) {
      changes.jobs.push_back({{}, job_of(tube, tube), "body"});
      changes.tubes.push_back({.number = tube,
                               .name = tube == 502 ? marker : "tube" + std::to_string(tube),
                               .scheduled = 1});
    }
    changes.schedules.push_back(
        {.name = "nightly",
         .after = ScheduleRecord{.name = "nightly",
                                 .schedule = {.tube = "tube501", .cron = "@daily"},
                                 .last_job = 500,
                                 .last_tube = 500}});
    changes.endpoints.push_back(
        {.name = "hook", .after = Endpoint{.url = "http://a/", .tube = "tube503"}});
    store.append(changes);
    store.close();
  }
  fs::copy(data(), copy());
  ASSERT_EQ(damage(".sst", marker), 1);
  const StoreReport report = salvage();
  SCOPED_TRACE(testing::PrintToString(report.left_out));
  EXPECT_EQ(report.jobs, kTubes);
  EXPECT_TRUE(tells(report.left_out,
                    "Its jobs are in 'salvaged-500': check them, and move them where they belong; "
                    "the schedule 'nightly' put its last job there, and puts the next "
                    "one into 'tube501'"));
  EXPECT_TRUE(tells(report.left_out, "Its jobs are in 'salvaged-501'"));
  EXPECT_TRUE(
      tells(report.left_out, "the tube 'tube501', which the schedule 'nightly' names, has no"));
  EXPECT_TRUE(
      tells(report.left_out, "the tube 'tube503', which the endpoint 'hook' names, has no"));
  const std::vector<TubeRecord> tubes = DiskStore(saved(), {}).recover().tubes;
  ASSERT_EQ(tubes.size(), kTubes);
  EXPECT_EQ(tubes[499].name, "salvaged-500");
  EXPECT_EQ(tubes[500].name, "salvaged-501");
}

TEST_F(StoreCheckSalvage, ADamagedManifestNeedsABackup) {
  DiskStore(data(), {}).close();
  fs::copy(data(), copy());
  for (const auto& file : fs::directory_iterator(copy())) {
    if (!file.path().filename().string().starts_with("MANIFEST-")) continue;
    flip(file.path(), 20);
  }
  const StoreReport found = check(copy());
  EXPECT_FALSE(found.can_be_salvaged);
  ASSERT_EQ(found.damages.size(), 1u);
  EXPECT_TRUE(contains(found.damages[0], "only a backup helps")) << found.damages[0];
  const std::string why = complaint([this] { salvage(); });
  EXPECT_TRUE(contains(why, "only a backup helps")) << why;
}

// The record that cannot be read has a put and a delete.
TEST_F(StoreCheckSalvage, WhatALostChangeDidIsSaidToBeUnknown) {
  DiskStore store(data(), {});
  const auto append = [&store](const Changes& changes) {
    store.append(changes);
    store.sync();
  };
  for (JobId id = 1; id <= 4; ++id)
    append({.jobs = {{{}, job_of(id, 1), "body"}},
            .tubes = {{1, "default", id, 0}},
            .watermarks = {}});
  const std::string unlike_others = body_of(5, 200);
  append({.jobs = {{{}, job(5, 200), unlike_others}, {job_of(2, 1), {}, {}}},
          .tubes = {{1, "default", 4, 0}},
          .watermarks = {}});
  append({.jobs = {{job_of(3, 1), {}, {}}}, .tubes = {{1, "default", 3, 0}}, .watermarks = {}});
  append({.jobs = {{{}, job_of(6, 1), "body"}}, .tubes = {{1, "default", 4, 0}}, .watermarks = {}});
  copy_open();
  ASSERT_EQ(damage(".data", unlike_others), 1);
  const StoreReport report = salvage();
  EXPECT_EQ(report.lost_changes,
            (std::vector<std::string>{
                "change 5 of the log is lost: jobs that they put are not there, and jobs that they "
                "deleted or moved are as they were before"}));
  std::vector<JobId> there;
  for (const JobRecord& record : DiskStore(saved(), {}).scan_due(1, {}, 100))
    there.push_back(record.id);
  EXPECT_EQ(there, (std::vector<JobId>{1, 2, 4, 6}));
  EXPECT_TRUE(lost_.empty());
  const StoreReport found = check(copy());
  EXPECT_EQ(found.lost_changes, report.lost_changes);
}

// The last record of the log raises the bound of the ids, and it is lost.
TEST_F(StoreCheckSalvage, NoIdThatALostChangeGaveIsGivenAgain) {
  DiskStore store(data(), {});
  const auto append = [&store](JobId id, JobId next_id, std::uint64_t next_burial) {
    const std::string body = body_of(id, 200);
    store.append({.jobs = {{{}, job(id, 200), body}},
                  .tubes = {{1, "default", 1, 0}},
                  .watermarks = Watermarks{.next_id = next_id, .next_burial = next_burial}});
    store.sync();
  };
  append(1, 1'001, 1'001);
  append(1'500, 2'001, 2'001);
  copy_open();
  ASSERT_EQ(damage(".data", body_of(1'500, 200)), 1);
  const StoreReport report = salvage();
  ASSERT_EQ(report.lost_changes.size(), 1u);
  EXPECT_TRUE(contains(report.lost_changes[0], "change 2 of the log and those behind it may be"))
      << report.lost_changes[0];
  const Watermarks marks = DiskStore(saved(), {}).recover().watermarks;
  EXPECT_GT(marks.next_id, 1'500u);
  EXPECT_GT(marks.next_burial, 2'000u);
}

TEST_F(StoreCheckSalvage, TokensOfBatchesAreNoTube) {
  {
    DiskStore store(data(), {});
    const KeyRecord token{.tube = kTokens,
                          .key = "once",
                          .id = 1,
                          .until = 2'000'000'000'000,
                          .batch = detail::Rare(BatchAnswer{.fingerprint = "f"})};
    store.append({.jobs = {{{}, job_of(1, 1), "body"}},
                  .keys = {{{}, token}},
                  .tubes = {{1, "default", 1, 0}},
                  .watermarks = Watermarks{.next_id = 2}});
    store.close();
  }
  fs::copy(data(), copy());
  salvage();
  const DiskStore store(saved(), {});
  EXPECT_TRUE(store.find_key(kTokens, "once").has_value());
  const std::vector<TubeRecord> tubes = store.recover().tubes;
  ASSERT_EQ(tubes.size(), 1u);
  EXPECT_EQ(tubes[0].name, "default");
}

TEST_F(StoreCheckSalvage, IntoWhatExistsReadsNothing) {
  DiskStore(data(), {}).close();
  fs::create_directory(saved());
  int calls = 0;
  const auto progress = [&calls](std::uint64_t, std::uint64_t) { return ++calls > 0; };
  const std::string why =
      complaint([&] { salvage_store(data(), saved(), progress, [](const LostJob&) {}); });
  EXPECT_TRUE(contains(why, "exists; name a directory that does not exist")) << why;
  EXPECT_EQ(calls, 0);
}

// A salvage needs no directory for temporary files, and leaves nothing beside its own.
TEST_F(StoreCheckSalvage, WithoutTemporaryFilesACheckSaysSo) {
  DiskStore(data(), {}).close();
  fs::copy(data(), copy());
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nonexistent", 1);
  const std::string why = complaint([&] { check(copy()); });
  const std::string salvaging = complaint([&] { salvage(); });
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
  EXPECT_TRUE(contains(why, "name one in TMPDIR")) << why;
  EXPECT_EQ(salvaging, "");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"copy", "data", "saved"}));
}

// A table in the place of a damaged one takes no room.
TEST_F(StoreCheckSalvage, AnEmptyTableIsSparse) {
  std::vector<std::string> tables;
  {
    RocksState state(data(), {});
    std::string bytes;
    for (JobId id = 1; id <= 20'000; ++id) {
      bytes.clear();
      const std::string body = body_of(id, 100);
      encode_changes({.jobs = {{{}, job(id), body}}, .tubes = {}, .watermarks = {}}, bytes);
      state.apply(bytes, state.number() + 1);
    }
    state.flush({});
  }
  std::uint64_t largest = 0;
  for (const auto& file : fs::directory_iterator(data())) {
    if (file.path().extension() != ".sst") continue;
    tables.push_back(file.path().filename());
    largest = std::max<std::uint64_t>(largest, file.file_size());
  }
  ASSERT_GT(largest, 1'000'000u);
  const std::string work = directory_ / "work";
  const OfflineState state(data(), work, tables);
  for (const std::string& name : tables) {
    struct stat status {};
    ASSERT_EQ(::lstat(std::string(work).append("/").append(name).c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), fs::file_size(data() + "/" + name));
    EXPECT_LE(status.st_blocks * 512, 64 << 10);
  }
  EXPECT_FALSE(state.scan(kIndex)->Valid());
}

}  // namespace
}  // namespace carillon::queue
