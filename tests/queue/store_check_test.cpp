// Checks of a data directory: a whole one, one in use, and damaged tables with few entries.
// Random bits: salvage_random_test.cpp.

#include "carillon/queue/store_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/salvage_fixture.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr JobId kJobsThere = 6'000;

std::size_t size_of(JobId id) {
  return id % 500 == 0 ? 6'000 : id % 700 == 0 ? 600'000 : 30;
}

class StoreCheck : public SalvageTest {
 protected:
  StoreCheck() {
    DiskStore store(data(), {.recent = 1 << 20});
    for (JobId id = 1; id <= kJobsThere; ++id) {
      put_job(store, id);
      if (id % 3'000 == 0) store.sync();
    }
    for (JobId id = 10; id <= kJobsThere; id += 10) erase_job(store, id);
    store.append({.jobs = {},
                  .tubes = {{1, "default", there(), 0}},
                  .watermarks = Watermarks{.next_id = kJobsThere + 1}});
    store.close();
  }

  static std::uint64_t there() { return kJobsThere - kJobsThere / 10; }

  static JobRecord record(JobId id) { return job(id, size_of(id)); }
  static void put_job(DiskStore& store, JobId id) {
    const std::string body = body_of(id, size_of(id));
    if (body.size() > kBodyPiece) {
      const UnfinishedBody begun{.id = id, .bytes = record(id).body_bytes};
      for (std::uint32_t n = 0; n < pieces_of(begun.bytes); ++n) {
        Changes piece{
            .jobs = {},
            .piece = BodyPiece{id, n, std::string_view(body).substr(n * kBodyPiece, kBodyPiece)},
            .tubes = {},
            .watermarks = {}};
        if (n == 0) piece.begun = begun;
        store.append(piece);
      }
      store.append({.jobs = {{{}, record(id), {}}}, .tubes = {}, .watermarks = {}});
    } else {
      store.append({.jobs = {{{}, record(id), body}},
                    .keys = {{{}, KeyRecord{.tube = 1, .key = "k" + std::to_string(id), .id = id}}},
                    .tubes = {{1, "default", id, 0}},
                    .watermarks = {}});
    }
  }
  static void erase_job(DiskStore& store, JobId id) {
    store.append({.jobs = {{record(id), {}, {}}}, .tubes = {}, .watermarks = {}});
  }

  // Every job that was not erased is in the new store, whole, or listed as lost; no other is.
  void expect_saved_or_listed() {
    const DiskStore store(saved(), {});
    std::set<JobId> there;
    for (const JobRecord& job : store.scan_due(1, {}, 2 * kJobsThere)) {
      there.insert(job.id);
      EXPECT_EQ(job, record(job.id));
      EXPECT_TRUE(whole_body(store, job.id, job.body_bytes) == body_of(job.id, size_of(job.id)));
      EXPECT_EQ(store.find(job.id), record(job.id));
    }
    for (JobId id = 1; id <= kJobsThere; ++id) {
      const bool was_there = id % 10 != 0;
      EXPECT_EQ(there.count(id) + lost_.count(id), was_there ? 1u : 0u) << id;
      const bool has_key = store.find_key(1, "k" + std::to_string(id)).has_value();
      EXPECT_FALSE(lost_.count(id) > 0 && has_key) << id;
      if (HasFailure()) return;
    }
    const Recovered recovered = store.recover();
    if (there.empty()) return;
    ASSERT_EQ(recovered.tubes.size(), 1u);
    EXPECT_EQ(recovered.tubes[0].scheduled, there.size());
    EXPECT_GT(recovered.watermarks.next_id, *there.rbegin());
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(data())) {
      if (fs::file_size(file.path()) > 0) files.push_back(file.path().filename());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  void damage(const fs::path& name, std::size_t at) {
    make_copy(data());
    flip(copy() + "/" + name.string(), at, 2);
  }
};

TEST_F(StoreCheck, AWholeStoreIsWhole) {
  EXPECT_EQ(check(data()).damages, std::vector<std::string>());
  EXPECT_GT(check(data()).files, 5u);
  fs::copy(data(), copy());
  const StoreReport report = salvage();
  EXPECT_EQ(report.damages, std::vector<std::string>());
  EXPECT_EQ(report.jobs, there());
  EXPECT_EQ(report.lost_jobs, 0u);
  expect_saved_or_listed();
}

TEST_F(StoreCheck, AStoreInUseIsRefused) {
  const DiskStore store(data(), {});
  EXPECT_TRUE(contains(complaint([&] { check(data()); }), "is in use"));
  fs::remove(data() + "/owner.pid");
  EXPECT_TRUE(contains(complaint([&] { check(data()); }), "is in use"));
}

TEST_F(StoreCheck, NoStoreIsRefused) {
  fs::create_directory(copy());
  EXPECT_TRUE(contains(complaint([&] { check(copy()); }), "has no store in it"));
}

TEST_F(StoreCheck, AnOpenStoreGoesAroundDamageAndSaysSoOnce) {
  fs::copy(data(), copy());
  int damaged = 0;
  for (const fs::path& name : files()) {
    const std::string bytes = contents(data() + "/" + name.string());
    if (name.extension() != ".sst" || !contains(bytes, "nameindex") || bytes.size() < 10'000)
      continue;
    flip(copy() + "/" + name.string(), bytes.size() / 2, 2);
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  std::size_t told = 0;
  DiskStore store(copy(), {});
  store.on_damage([&told](const std::string& line) {
    EXPECT_TRUE(contains(line, "gone around from now on")) << line;
    EXPECT_FALSE(contains(line, "since 1970")) << line;
    ++told;
  });
  std::vector<JobRecord> jobs = store.scan_due(1, {}, 2 * kJobsThere);
  const std::size_t told_first = told;
  EXPECT_EQ(store.scan_due(1, {}, 2 * kJobsThere), jobs);
  EXPECT_EQ(told, told_first);
  EXPECT_GT(told, 0U);
  EXPECT_LT(jobs.size(), there());
  constexpr std::size_t kBlock = 500;  // records, at most
  EXPECT_GT(jobs.size() + kBlock * told, there());
  EXPECT_EQ(jobs.back(), record(kJobsThere - 1));
}

// Also the number up to which the log is not needed is lost then.
TEST_F(StoreCheck, TubesThatAreLostComeFromTheLogOrFromTheirJobs) {
  for (const bool has_log : {true, false}) {
    make_copy(data());
    for (const fs::path& name : files()) {
      const std::string bytes = contents(data() + "/" + name.string());
      if (!has_log && name.extension() == ".data") fs::remove(copy() + "/" + name.string());
      if (name.extension() != ".sst" || !contains(bytes, "namedefault")) continue;
      flip(copy() + "/" + name.string(), 20, 2);
    }
    const StoreReport report = salvage();
    EXPECT_EQ(report.jobs, there());
    EXPECT_FALSE(report.damages.empty());
    expect_saved_or_listed();
    EXPECT_EQ(DiskStore(saved(), {}).recover().tubes.at(0).name,
              has_log ? "default" : "salvaged-1");
  }
}

// A table with few entries, most of them erasures, lies above the others: one for each family.
class SparseStore : public StoreCheck {
 protected:
  static constexpr JobId kLater = kJobsThere + 20;  // ids of jobs that are put later

  SparseStore() {
    const std::vector<fs::path> before = files();
    {
      DiskStore store(data(), {});
      for (JobId id = 5; id <= kJobsThere; id += 100) erase_job(store, id);
      for (JobId id = kJobsThere + 1; id <= kLater; ++id) put_job(store, id);
      store.close();
    }
    for (const fs::path& name : files()) {
      if (name.extension() != ".sst" || std::count(before.begin(), before.end(), name) > 0)
        continue;
      constexpr std::size_t kFewEntries = 20'000;  // bytes; others were merged
      if (fs::file_size(data() + "/" + name.string()) < kFewEntries) sparse_.push_back(name);
    }
  }

  static bool was_erased(JobId id) {
    return id % 10 == 0 ? id <= kJobsThere : id <= kJobsThere && id % 100 == 5;
  }

  // Each job is saved or listed. If `exact`, no other is listed.
  void expect_nothing_hidden(bool exact) {
    const DiskStore store(saved(), {});
    std::set<JobId> saved;
    for (const JobRecord& job : store.scan_due(1, {}, 2 * kJobsThere)) {
      saved.insert(job.id);
      EXPECT_EQ(job, record(job.id));
    }
    for (JobId id = 1; id <= kLater && !HasFailure(); ++id) {
      if (was_erased(id)) {
        EXPECT_EQ(saved.count(id) + (exact ? lost_.count(id) : 0), 0u) << id;
      } else {
        EXPECT_EQ(saved.count(id) + lost_.count(id), 1u) << id;
      }
    }
    EXPECT_TRUE(!exact || saved.size() > kJobsThere * 8 / 10);
  }

  std::vector<fs::path> sparse_;
};

TEST_F(SparseStore, ADamagedTableHidesNothing) {
  ASSERT_GE(sparse_.size(), 3u);
  for (const fs::path& name : sparse_) {
    const std::size_t size = fs::file_size(data() + "/" + name.string());
    for (const std::size_t at : {std::size_t{40}, size / 3, size - 10}) {
      SCOPED_TRACE(name.string() + " of " + std::to_string(size) + ", byte " + std::to_string(at));
      damage(name, at);
      const StoreReport report = salvage();
      SCOPED_TRACE(testing::PrintToString(report.damages));
      expect_nothing_hidden(true);
      EXPECT_LE(lost_.size(), 20u);
      if (HasFailure()) return;
    }
  }
}

// If two families are damaged, it may be that nobody knows whether a job is still there.
TEST_F(SparseStore, TwoDamagedTablesBringNoErasedJobBack) {
  int pairs = 0;
  for (const fs::path& one : sparse_) {
    for (const fs::path& other : sparse_) {
      if (other <= one) continue;
      const bool at_end = ++pairs % 2 == 0;  // so that the table cannot be opened
      SCOPED_TRACE(one.string() + " and " + other.string());
      damage(one, at_end ? fs::file_size(data() + "/" + one.string()) - 10 : 40);
      flip(copy() + "/" + other.string(), 40, 2);
      const StoreReport report = salvage();
      SCOPED_TRACE(testing::PrintToString(report.damages));
      expect_nothing_hidden(false);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace carillon::queue
