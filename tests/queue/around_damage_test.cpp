// Bits that are flipped in real files of the state: what is whole is read, and the rest is named.

#include "queue/store/around_damage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "queue/file_bytes.h"
#include "queue/numbered_jobs.h"
#include "queue/seed.h"
#include "queue/store/change_codec.h"
#include "queue/store/due_index.h"
#include "queue/store/record_keys.h"
#include "queue/store/rocks_state.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

namespace fs = std::filesystem;

constexpr JobId kJobsThere = 18'000;

// Whether the file is a table of the family. Its properties say so, and are not compressed.
bool is_of(const std::string& family, const fs::path& file) {
  return file.extension() == ".sst" && contains(contents(file), "name" + family);
}

class AroundDamageTest : public testing::Test {
 public:
  static void flip(const fs::path& file, std::size_t at) {
    std::string bytes = contents(file);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write(file, bytes);
  }

 protected:
  // Made once: the tests damage copies.
  static void SetUpTestSuite() {
    made_ = std::make_unique<TemporaryDirectory>();
    RocksState state(*made_ / "data", {.recent = 2 << 20});
    std::string bytes;
    for (JobId id = 1; id <= kJobsThere; ++id) {
      bytes.clear();
      const std::string body = body_of(id, id % 1'500 == 0 ? 6'000 : 20);
      encode_changes(
          {.jobs = {{.before = {}, .after = job(id), .body = body}}, .tubes = {}, .watermarks = {}},
          bytes);
      state.apply(bytes, state.number() + 1);
      if (id % 6'000 == 0) state.flush(0);
    }
  }
  static void TearDownTestSuite() { made_.reset(); }

  static std::map<std::string, std::string> all(const RocksState& state, Family family) {
    std::map<std::string, std::string> found;
    const rocksdb::Slice end("\xff");
    const auto at = state.scan_around(family, "", end);
    for (; at->Valid(); at->Next()) found.emplace(at->key().ToString(), at->value().ToString());
    EXPECT_TRUE(at->status().ok()) << at->status().ToString();
    return found;
  }

  // Opens a copy in which one bit of the file is flipped, and compares what it has with the whole.
  // Returns how many records it lacks, and how many other entries; none if it is refused.
  std::optional<std::array<std::size_t, 2>> lost_by(const fs::path& name, std::size_t at) {
    const TemporaryDirectory copy;
    fs::copy(*made_ / "data", copy / "data");
    flip(copy / "data" / name, at);
    std::unique_ptr<RocksState> state;
    const std::string refused =
        complaint([&] { state = std::make_unique<RocksState>(copy / "data", DiskStoreOptions{}); });
    if (!refused.empty()) {
      EXPECT_TRUE(contains(refused, "cannot be opened: Corruption") ||
                  contains(refused, "cannot be read: Corruption"))
          << refused;
      return std::nullopt;
    }
    std::array<std::size_t, 2> lost{};
    for (const Family family : {kJobs, kIndex, kBodies}) {
      const auto there = all(*state, family);
      for (const auto& [key, value] : whole_[family]) {
        const auto found = there.find(key);
        const bool is_damaged = state->damages().behind(family, key).has_value();
        const bool is_found = found != there.end();
        EXPECT_TRUE(is_found || is_damaged) << "family " << family << " key " << hex(key);
        EXPECT_TRUE(!is_found || found->second == value);
        if (!is_found) ++lost[family == kIndex ? 0 : 1];
        if (HasFailure()) return lost;
      }
    }
    for (const Damage& damage : state->damages().all()) {
      const std::string part = name.extension() == ".sst" ? name.string() : "lob";
      EXPECT_TRUE(contains(damage.why, part)) << damage.why;
    }
    return lost;
  }

  void SetUp() override {
    {
      const RocksState state(*made_ / "data", {});
      for (const Family family : {kJobs, kIndex, kBodies}) {
        whole_[family] = all(state, family);
        ASSERT_EQ(whole_[family].size(), kJobsThere);
      }
      EXPECT_EQ(state.damages().count(), 0u);
    }  // closed, it deletes no more files
    for (const auto& file : fs::directory_iterator(*made_ / "data")) {
      const std::string ending = file.path().extension();
      if (ending == ".sst" || ending == ".blob") files_.push_back(file.path().filename());
    }
    std::sort(files_.begin(), files_.end());
  }

  static std::unique_ptr<TemporaryDirectory> made_;
  std::map<Family, std::map<std::string, std::string>> whole_;
  std::vector<fs::path> files_;
};

std::unique_ptr<TemporaryDirectory> AroundDamageTest::made_;

// In each file: the data, and the end, where index, filters, properties and footer are.
TEST_F(AroundDamageTest, WhatIsWholeIsRead) {
  const std::uint64_t seed = seed_or(std::random_device()());
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::size_t refused = 0;
  std::size_t gone_around = 0;
  for (const fs::path& name : files_) {
    const std::size_t size = fs::file_size(*made_ / "data" / name);
    for (int round = 0; round < 2 && !HasFailure(); ++round) {
      const std::size_t near_end = std::min<std::size_t>(size, 8'000);
      const std::size_t at = round == 0 ? random() % size : size - 1 - random() % near_end;
      SCOPED_TRACE(name.string() + " byte " + std::to_string(at));
      const auto lost = lost_by(name, at);
      refused += lost ? 0u : 1u;
      if (!lost) continue;
      gone_around += (*lost)[0] + (*lost)[1] > 0 ? 1u : 0u;
      constexpr std::size_t kBlock = 500;  // entries, at most
      EXPECT_LE((*lost)[0], kBlock);
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(gone_around, 0u);
}

// Of the large bodies RocksDB does not say which one is damaged.
TEST_F(AroundDamageTest, EachLargeBodyIsReadForItself) {
  const TemporaryDirectory copy;
  fs::copy(*made_ / "data", copy / "data");
  for (const fs::path& name : files_) {
    if (name.extension() != ".blob") continue;
    for (const std::size_t at : {3'000u, 15'000u}) flip(copy / "data" / name, at);
  }
  const RocksState state(copy / "data", {});
  EXPECT_EQ(all(state, kBodies).size(), kJobsThere - 6);
  EXPECT_EQ(state.damages().count(), 6u);
}

// An index of due times that is damaged in the middle: the jobs behind the damage are due, too.
TEST_F(AroundDamageTest, AStoreHandsOutTheJobsBehindIt) {
  const TemporaryDirectory copy;
  fs::copy(*made_ / "data", copy / "data");
  for (const fs::path& name : files_) {
    const fs::path file = copy / "data" / name;
    if (is_of("index", file)) flip(file, fs::file_size(file) / 2);
  }
  const RocksState state(copy / "data", {});
  const std::vector<JobRecord> jobs = scan_due_of_each(state, {1}, kJobsThere + 1'001, kJobsThere);
  ASSERT_FALSE(jobs.empty());
  const auto damages = state.damages().all();
  ASSERT_EQ(damages.size(), 3u);
  EXPECT_GT(jobs.size(), kJobsThere - 3 * 500);
  EXPECT_LT(jobs.size(), kJobsThere);
  EXPECT_EQ(jobs.front(), job(1));
  EXPECT_EQ(jobs.back(), job(kJobsThere));
}

// A table with few entries lies above one with many. Its damaged block spans thousands of jobs of
// the other, of which every hundredth was erased there and every hundredth changed.
class SparseTable : public testing::Test {
 protected:
  static constexpr JobId kJobsBeneath = 10'000;

  SparseTable() {
    RocksState state(directory_ / "data", {});
    for (JobId id = 1; id <= kJobsBeneath; ++id)
      apply(state, {.before = {}, .after = job(id), .body = "body"});
    state.flush(0);
    for (JobId id = 50; id <= kJobsBeneath; id += 100) {
      apply(state, {.before = job(id), .after = {}, .body = {}});
      apply(state, {.before = job(id + 1), .after = changed(id + 1), .body = {}});
    }
    state.flush(0);
    fs::path sparse;
    for (const auto& file : fs::directory_iterator(directory_ / "data")) {
      if (!is_of("index", file.path())) continue;
      if (sparse.empty() || file.file_size() < fs::file_size(sparse)) sparse = file.path();
    }
    AroundDamageTest::flip(sparse, 40);
  }

  static JobRecord changed(JobId id) {
    JobRecord record = job(id);
    record.priority = 7;
    return record;
  }
  static void apply(RocksState& state, const JobChange& change) {
    std::string bytes;
    encode_changes({.jobs = {change}, .tubes = {}, .watermarks = {}}, bytes);
    state.apply(bytes, state.number() + 1);
  }
  static std::vector<JobRecord> due(const RocksState& state) {
    return scan_due_of_each(state, {1}, 2'000'000, 2 * kJobsBeneath);
  }

  const TemporaryDirectory directory_;
};

TEST_F(SparseTable, HidesNoJobOfOthersAndBringsNoErasedOneBack) {
  const RocksState state(directory_ / "data", {});
  const std::vector<JobRecord> jobs = due(state);
  std::size_t old = 0;
  JobId next = 1;
  for (const JobRecord& found : jobs) {
    if (next % 100 == 50) ++next;
    ASSERT_EQ(found.id, next++);
    EXPECT_EQ(found.due, job(found.id).due);
    if (found.id % 100 == 51 && found.priority == 0) ++old;
  }
  EXPECT_EQ(next, kJobsBeneath + 1);
  EXPECT_GT(old, 0u);  // in the damaged block
  ASSERT_EQ(state.damages().count(), 1u);
  const std::string to = state.damages().all().front().to.substr(0, sizeof(IndexKey));
  JobRecord last;
  ASSERT_TRUE(set_job_of_key(to, last));
  EXPECT_GT(last.due, 2'000u);
}

TEST_F(SparseTable, HidesNoJobThatIsPutOrMovedOrEndsLater) {
  RocksState state(directory_ / "data", {});
  ASSERT_GT(due(state).size(), 0u);
  ASSERT_EQ(state.damages().count(), 1u);
  JobRecord late = job(kJobsBeneath + 1);
  late.due = job(1'000).due;
  JobRecord moved = job(200);
  moved.due = job(900).due;
  apply(state, {.before = {}, .after = late, .body = "body"});
  apply(state, {.before = job(200), .after = moved, .body = {}});
  apply(state, {.before = job(300), .after = {}, .body = {}});
  for (const bool is_flushed : {false, true}) {
    if (is_flushed) state.flush(0);
    const std::vector<JobRecord> jobs = due(state);
    EXPECT_EQ(jobs.size(), kJobsBeneath - kJobsBeneath / 100);
    const auto has = [&](const JobRecord& record) {
      return std::count(jobs.begin(), jobs.end(), record) == 1;
    };
    EXPECT_TRUE(has(late));
    EXPECT_TRUE(has(moved));
    EXPECT_FALSE(has(job(200)));
    EXPECT_FALSE(has(job(300)));
  }
}

// Then it cannot be known whether a job is still there: it is left out, and that is said.
TEST_F(SparseTable, LeavesOutWhatNoPointerVouchesFor) {
  for (const auto& file : fs::directory_iterator(directory_ / "data")) {
    if (is_of("jobs", file.path()) && file.file_size() > 50'000)
      AroundDamageTest::flip(file.path(), 40);
  }
  const RocksState state(directory_ / "data", {});
  const std::vector<JobRecord> jobs = due(state);
  const std::size_t whole = kJobsBeneath - kJobsBeneath / 100;
  EXPECT_LT(jobs.size(), whole);
  EXPECT_EQ(jobs.size() + state.damages().count() - 1, whole);
}

}  // namespace
}  // namespace carillon::queue
