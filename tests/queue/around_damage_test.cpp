// Bits that are flipped in real files of the state: what is whole is read, and the rest is named.

#include "queue/store/damage/around_damage.h"

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
#include "queue/store/log/change_codec.h"
#include "queue/store/state/due_index.h"
#include "queue/store/state/record_keys.h"
#include "queue/store/state/rocks_state.h"
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
      if (id % 6'000 == 0) state.flush({});
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
  const std::uint64_t seed = seed_or(1);
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

// RocksDB does not say which of the large bodies is damaged.
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

TEST(DamageListTest, KnowsAllDamageAndJoinsNeighbours) {
  constexpr int kPlaces = 3 * static_cast<int>(DamageList::kMost);
  const auto key = [](int n) { return std::string(view(job_key(static_cast<JobId>(n)))); };
  DamageList apart;
  DamageList neighbours;
  for (int n = 0; n < kPlaces; ++n) {
    EXPECT_TRUE(apart.add({kIndex, key(3 * n), key(3 * n + 2), "why"}));
    EXPECT_TRUE(neighbours.add({kIndex, key(n), key(n + 1), "why"}));
  }
  for (int n = 0; n < kPlaces; ++n) {
    ASSERT_EQ(apart.behind(kIndex, key(3 * n + 1)), key(3 * n + 2));
    ASSERT_EQ(apart.behind(kIndex, key(3 * n + 2)), std::nullopt);
    ASSERT_EQ(apart.behind(kJobs, key(3 * n + 1)), std::nullopt);
  }
  EXPECT_EQ(apart.ranges().size(), static_cast<std::size_t>(kPlaces));
  EXPECT_EQ(apart.all().size(), DamageList::kMost);
  EXPECT_EQ(apart.count(), static_cast<std::size_t>(kPlaces));
  ASSERT_EQ(neighbours.ranges().size(), 1u);
  EXPECT_EQ(neighbours.behind(kIndex, key(7)), key(kPlaces));
  neighbours.add({kIndex, key(5), key(kPlaces + 9), "wider"});
  apart.add({kIndex, key(1), key(3 * kPlaces), "all"});
  EXPECT_EQ(neighbours.behind(kIndex, key(0)), key(kPlaces + 9));
  EXPECT_EQ(apart.ranges().size(), 1u);
}

// Counts the Seeks of the iterator that it has.
class Counted final : public rocksdb::Iterator {
 public:
  Counted(std::unique_ptr<rocksdb::Iterator> at, std::size_t& seeks)
      : at_(std::move(at)), seeks_(seeks) {}
  bool Valid() const override { return at_->Valid(); }
  rocksdb::Slice key() const override { return at_->key(); }
  rocksdb::Slice value() const override { return at_->value(); }
  rocksdb::Status status() const override { return at_->status(); }
  void Next() override { at_->Next(); }
  void Seek(const rocksdb::Slice& target) override {
    ++seeks_;
    at_->Seek(target);
  }
  void SeekToFirst() override { at_->SeekToFirst(); }
  void SeekToLast() override { at_->SeekToLast(); }
  void SeekForPrev(const rocksdb::Slice& target) override { at_->SeekForPrev(target); }
  void Prev() override { at_->Prev(); }

 private:
  const std::unique_ptr<rocksdb::Iterator> at_;
  std::size_t& seeks_;
};

// Keys of clients are long, and differ in their first bytes, or far behind them.
TEST(LongKeysTest, AreGoneAroundInAFewHundredSeeks) {
  for (const std::string prefix :
       {"", "https://example.org/orders/",
        "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
        "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"}) {
    SCOPED_TRACE(prefix);
    const TemporaryDirectory directory;
    constexpr JobId kKeys = 5'000;
    const std::string path = directory / "data";
    const rocksdb::Slice end("l");
    std::vector<std::string> whole;
    {
      RocksState state(path, {});
      std::string bytes;
      for (JobId id = 1; id <= kKeys; ++id) {
        bytes.clear();
        const std::string key = prefix + hex(body_of(id, 8));
        encode_changes({.jobs = {},
                        .keys = {{{}, KeyRecord{.tube = 1, .key = key, .id = id}}},
                        .tubes = {},
                        .watermarks = {}},
                       bytes);
        state.apply(bytes, state.number() + 1);
      }
      state.flush({});
      for (const auto at = state.scan(queue::kKeys, "k", end); at->Valid(); at->Next())
        whole.push_back(at->key().ToString());
    }
    ASSERT_EQ(whole.size(), kKeys);
    int damaged = 0;
    for (const auto& file : fs::directory_iterator(path)) {
      if (!is_of("keys", file.path())) continue;
      flip(file.path(), fs::file_size(file.path()) / 2);
      ++damaged;
    }
    ASSERT_EQ(damaged, 1);
    const RocksState state(path, {});
    for (const std::size_t from : {std::size_t{0}, whole.size() / 2}) {
      std::size_t seeks = 0;
      DamageList damages;
      const auto make = [&] {
        return std::make_unique<Counted>(state.scan(queue::kKeys, "k", end), seeks);
      };
      AroundDamage at(queue::kKeys, make, damages);
      std::vector<std::string> found;
      for (at.Seek(whole[from]); at.Valid(); at.Next()) found.push_back(at.key().ToString());
      ASSERT_TRUE(at.status().ok()) << at.status().ToString();
      ASSERT_EQ(damages.count(), 1u);
      const Damage damage = damages.all().front();
      std::vector<std::string> expected;
      for (const std::string& key : whole) {
        if (key >= whole[from] && (key < damage.from || key >= damage.to)) expected.push_back(key);
      }
      EXPECT_TRUE(found == expected);
      EXPECT_GT(found.size(), kKeys - from - 400);
      EXPECT_LT(seeks, prefix.size() < 100 ? 1'000u : 4'000u);
      for (std::size_t i = from; i < whole.size(); ++i) {
        const auto alone = state.scan(queue::kKeys, whole[i], end);
        const bool is_there = alone->Valid() && alone->key() == whole[i];
        ASSERT_EQ(std::binary_search(found.begin(), found.end(), whole[i]), is_there) << i;
      }
    }
  }
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
    state.flush({});
    for (JobId id = 50; id <= kJobsBeneath; id += 100) {
      apply(state, {.before = job(id), .after = {}, .body = {}});
      apply(state, {.before = job(id + 1), .after = changed(id + 1), .body = {}});
    }
    state.flush({});
    fs::path sparse;
    for (const auto& file : fs::directory_iterator(directory_ / "data")) {
      if (!is_of("index", file.path())) continue;
      if (sparse.empty() || file.file_size() < fs::file_size(sparse)) sparse = file.path();
    }
    flip(sparse, 40);
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
    if (is_flushed) state.flush({});
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
    if (is_of("jobs", file.path()) && file.file_size() > 50'000) flip(file.path(), 40);
  }
  const RocksState state(directory_ / "data", {});
  const std::vector<JobRecord> jobs = due(state);
  const std::size_t whole = kJobsBeneath - kJobsBeneath / 100;
  EXPECT_LT(jobs.size(), whole);
  EXPECT_EQ(jobs.size() + state.damages().count() - 1, whole);
}

}  // namespace
}  // namespace carillon::queue
