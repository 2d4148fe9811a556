// What every Store promises, literally and against a reference: one suite over all of them.

#include "carillon/queue/store.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/memory_store.h"
#include "carillon/queue/rocks_store.h"
#include "queue/store_model.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {

// Readable failures.
void PrintTo(const JobRecord& job, std::ostream* out) {
  *out << "job " << job.id << " of tube " << job.tube << " due " << job.due << " burial "
       << job.burial << " priority " << job.priority;
}

namespace {

// Small enough that a random test flushes and compacts files many times.
constexpr RocksStoreOptions kSmall{
    .write_buffer = 512 << 10, .read_cache = 1 << 20, .large_body = 1 << 10};

struct InMemory {
  MemoryStore store;
  void reopen() {}
};

struct OnDisk {
  RocksStoreOptions options = kSmall;
  TemporaryDirectory directory;
  std::unique_ptr<RocksStore> opened;

  explicit OnDisk(bool journal = false) {
    options.journal_bytes = journal ? kSmallestJournal : 0;
    reopen();
  }
  void reopen() {
    opened.reset();
    opened = std::make_unique<RocksStore>(directory / "data", options);
  }
};

struct WithJournal : OnDisk {
  WithJournal() : OnDisk(true) {}
};

Store& store_of(InMemory& medium) {
  return medium.store;
}
Store& store_of(OnDisk& medium) {
  return *medium.opened;
}

JobRecord job(JobId id, std::uint32_t tube, UtcMs due) {
  return {.id = id,
          .tube = tube,
          .priority = 100,
          .due = due,
          .ttr = 60'000,
          .created = 1'000,
          .history = {}};
}

JobRecord buried(JobRecord job, std::uint64_t burial) {
  job.burial = burial;
  return job;
}

std::vector<JobId> ids(const std::vector<JobRecord>& jobs) {
  std::vector<JobId> ids;
  for (const JobRecord& job : jobs) ids.push_back(job.id);
  return ids;
}

using Ids = std::vector<JobId>;

template <class Medium>
class StoreTest : public testing::Test {
 protected:
  Store& store() { return store_of(medium_); }
  void reopen() { medium_.reopen(); }

  Sequence put(const JobRecord& job, std::string_view body = "body") {
    return store().append({.jobs = {{{}, job, body}}, .tubes = {}, .watermarks = {}});
  }
  Sequence move(const JobRecord& before, const JobRecord& after) {
    return store().append({.jobs = {{before, after, {}}}, .tubes = {}, .watermarks = {}});
  }
  Sequence erase(const JobRecord& before) {
    return store().append({.jobs = {{before, {}, {}}}, .tubes = {}, .watermarks = {}});
  }

 private:
  Medium medium_;
};

using Media = testing::Types<InMemory, OnDisk, WithJournal>;
TYPED_TEST_SUITE(StoreTest, Media);

TYPED_TEST(StoreTest, IsEmptyAtFirst) {
  const Recovered recovered = this->store().recover();
  EXPECT_TRUE(recovered.tubes.empty());
  EXPECT_EQ(recovered.watermarks, (Watermarks{.next_id = 1, .next_burial = 1, .time = 0}));
  EXPECT_EQ(this->store().find(1), std::nullopt);
  EXPECT_TRUE(this->store().scan_due(1, {}, 10).empty());
  EXPECT_TRUE(this->store().scan_buried(1, 0, 10).empty());
  EXPECT_EQ(this->store().sync(), 0u);
}

TYPED_TEST(StoreTest, ShowsAPutAtOnce) {
  JobRecord put = job(7, 3, 5'000);
  put.priority = 1'024;
  put.delay = 4'000;
  put.body_bytes = 5;
  put.history = {.reserves = 1, .timeouts = 2, .releases = 3, .buries = 4, .kicks = 5};
  this->put(put, "hello");
  EXPECT_EQ(this->store().find(7), put);
  EXPECT_EQ(this->store().body(7), "hello");
  EXPECT_EQ(this->store().scan_due(3, {}, 10), std::vector<JobRecord>{put});
  EXPECT_TRUE(this->store().scan_buried(3, 0, 10).empty());
}

TYPED_TEST(StoreTest, CountsAppends) {
  EXPECT_EQ(this->put(job(1, 1, 10)), 1u);
  EXPECT_EQ(this->put(job(2, 1, 10)), 2u);
  EXPECT_EQ(this->store().sync(), 2u);
  EXPECT_EQ(this->store().append({}), 3u);
  EXPECT_EQ(this->store().sync(), 3u);
  EXPECT_EQ(this->store().sync(), 3u);
}

TYPED_TEST(StoreTest, ScansInOrderOfDueTimeThenId) {
  for (const JobRecord& each :
       {job(4, 1, 20), job(2, 1, 30), job(9, 1, 10), job(3, 1, 20), job(1, 1, 300)})
    this->put(each);
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 100)), (Ids{9, 3, 4, 2, 1}));
  EXPECT_EQ(ids(this->store().scan_due(1, {20, 0}, 100)), (Ids{3, 4, 2, 1}));
  EXPECT_EQ(ids(this->store().scan_due(1, {20, 3}, 100)), (Ids{3, 4, 2, 1}));
  EXPECT_EQ(ids(this->store().scan_due(1, {20, 4}, 100)), (Ids{4, 2, 1}));
  EXPECT_EQ(ids(this->store().scan_due(1, {20, 5}, 100)), (Ids{2, 1}));
  EXPECT_EQ(ids(this->store().scan_due(1, {301, 0}, 100)), Ids{});
}

TYPED_TEST(StoreTest, ScansNoMoreThanAskedFor) {
  for (JobId id = 1; id <= 5; ++id) this->put(job(id, 1, 10 * id));
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 0)), Ids{});
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 1)), Ids{1});
  EXPECT_EQ(ids(this->store().scan_due(1, {20, 0}, 3)), (Ids{2, 3, 4}));
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 5)), (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 6)), (Ids{1, 2, 3, 4, 5}));
}

TYPED_TEST(StoreTest, ScansBuriedJobsInOrderOfBurial) {
  this->put(buried(job(1, 1, 10), 300));
  this->put(buried(job(2, 1, 5), 20));
  this->put(job(3, 1, 1));
  this->put(buried(job(4, 1, 7), 100));
  EXPECT_EQ(ids(this->store().scan_buried(1, 0, 10)), (Ids{2, 4, 1}));
  EXPECT_EQ(ids(this->store().scan_buried(1, 100, 10)), (Ids{4, 1}));
  EXPECT_EQ(ids(this->store().scan_buried(1, 101, 10)), (Ids{1}));
  EXPECT_EQ(ids(this->store().scan_buried(1, 1, 2)), (Ids{2, 4}));
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 10)), (Ids{3}));
}

TYPED_TEST(StoreTest, KeepsTubesApart) {
  constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t tube : {0u, 1u, 255u, 256u, kLast}) {
    this->put(job(2 * (tube + JobId{1}), tube, 10));
    this->put(buried(job(2 * (tube + JobId{1}) + 1, tube, 10), 5));
  }
  for (const std::uint32_t tube : {0u, 1u, 255u, 256u, kLast}) {
    EXPECT_EQ(ids(this->store().scan_due(tube, {}, 10)), (Ids{2 * (tube + JobId{1})}));
    EXPECT_EQ(ids(this->store().scan_buried(tube, 0, 10)), (Ids{2 * (tube + JobId{1}) + 1}));
  }
  EXPECT_EQ(ids(this->store().scan_due(2, {}, 10)), Ids{});
}

TYPED_TEST(StoreTest, MovesAJobAndLeavesItsBodyAlone) {
  this->put(job(1, 1, 10), "one");
  this->move(job(1, 1, 10), job(1, 1, 70));
  EXPECT_EQ(this->store().find(1), job(1, 1, 70));
  EXPECT_EQ(this->store().scan_due(1, {}, 10), std::vector<JobRecord>{job(1, 1, 70)});
  this->move(job(1, 1, 70), buried(job(1, 1, 70), 3));
  EXPECT_EQ(this->store().find(1), buried(job(1, 1, 70), 3));
  EXPECT_TRUE(this->store().scan_due(1, {}, 10).empty());
  EXPECT_EQ(ids(this->store().scan_buried(1, 0, 10)), Ids{1});
  this->move(buried(job(1, 1, 70), 3), job(1, 1, 5));
  EXPECT_EQ(this->store().scan_due(1, {}, 10), std::vector<JobRecord>{job(1, 1, 5)});
  EXPECT_TRUE(this->store().scan_buried(1, 0, 10).empty());
  EXPECT_EQ(this->store().body(1), "one");
}

TYPED_TEST(StoreTest, ChangesARecordInItsPlace) {
  this->put(job(1, 1, 10), "one");
  JobRecord after = job(1, 1, 10);
  after.priority = 0;
  after.history.releases = 1;
  this->move(job(1, 1, 10), after);
  EXPECT_EQ(this->store().find(1), after);
  EXPECT_EQ(this->store().scan_due(1, {}, 10), std::vector<JobRecord>{after});
  EXPECT_EQ(this->store().body(1), "one");
}

TYPED_TEST(StoreTest, ErasesAJobWithItsBody) {
  this->put(job(1, 1, 10));
  this->put(buried(job(2, 1, 10), 1));
  this->erase(job(1, 1, 10));
  this->erase(buried(job(2, 1, 10), 1));
  for (const JobId id : {1u, 2u}) {
    EXPECT_EQ(this->store().find(id), std::nullopt);
    EXPECT_THROW(this->store().body(id), StoreError);
  }
  EXPECT_TRUE(this->store().scan_due(1, {}, 10).empty());
  EXPECT_TRUE(this->store().scan_buried(1, 0, 10).empty());
}

TYPED_TEST(StoreTest, AppliesAllOfManyChanges) {
  this->put(job(1, 1, 10), "one");
  this->put(job(2, 1, 20), "two");
  const TubeRecord tube{.number = 1, .name = "default", .scheduled = 2, .buried = 0};
  const Watermarks marks{.next_id = 1'000, .next_burial = 2'000, .time = 3'000};
  this->store().append({.jobs = {{job(1, 1, 10), {}, {}},
                                 {{}, job(3, 1, 5), "three"},
                                 {job(2, 1, 20), job(2, 1, 6), {}}},
                        .tubes = {tube},
                        .watermarks = marks});
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 10)), (Ids{3, 2}));
  EXPECT_EQ(this->store().body(3), "three");
  EXPECT_EQ(this->store().recover().tubes, std::vector<TubeRecord>{tube});
  EXPECT_EQ(this->store().recover().watermarks, marks);
}

TYPED_TEST(StoreTest, ForgetsATubeWithoutJobs) {
  const TubeRecord first{.number = 1, .name = "first", .scheduled = 1, .buried = 0};
  const TubeRecord second{.number = 2, .name = std::string(200, 'x'), .scheduled = 0, .buried = 1};
  this->store().append({.jobs = {}, .tubes = {first, second}, .watermarks = {}});
  EXPECT_EQ(this->store().recover().tubes.size(), 2u);
  this->store().append({.jobs = {}, .tubes = {{.number = 1, .name = "first"}}, .watermarks = {}});
  EXPECT_EQ(this->store().recover().tubes, std::vector<TubeRecord>{second});
}

TYPED_TEST(StoreTest, KeepsTheLargestValues) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint32_t kLast32 = std::numeric_limits<std::uint32_t>::max();
  JobRecord largest{.id = kLast - 1,
                    .tube = kLast32,
                    .priority = kLast32,
                    .due = kLastDue,
                    .burial = 0,
                    .ttr = kLast,
                    .delay = kLast,
                    .created = kLast,
                    .body_bytes = kLast32,
                    .history = {kLast32, kLast32, kLast32, kLast32, kLast32}};
  this->put(largest);
  EXPECT_EQ(this->store().find(kLast - 1), largest);
  EXPECT_EQ(this->store().scan_due(kLast32, {kLastDue, 0}, 10), std::vector<JobRecord>{largest});
  const JobRecord below = buried(largest, kLast - 1);
  this->move(largest, below);
  EXPECT_EQ(this->store().scan_buried(kLast32, kLast - 1, 10), std::vector<JobRecord>{below});
  const Watermarks marks{kLast, kLast, kLast};
  this->store().append({.jobs = {}, .tubes = {}, .watermarks = marks});
  this->reopen();
  EXPECT_EQ(this->store().find(kLast - 1), below);
  EXPECT_EQ(this->store().recover().watermarks, marks);
}

TYPED_TEST(StoreTest, KeepsBodiesByteForByte) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  std::string large(3'000'000, '\0');
  std::mt19937_64 random(1);
  for (char& byte : large) byte = static_cast<char>(random());
  const std::vector<std::string> bodies = {"",
                                           "\r\n",
                                           all_bytes,
                                           std::string(1'023, 'a'),
                                           std::string(1'024, 'b'),
                                           std::string(65'536, 'c'),
                                           large};
  for (JobId id = 1; id <= bodies.size(); ++id) this->put(job(id, 1, id), bodies[id - 1]);
  for (JobId id = 1; id <= bodies.size(); ++id)
    EXPECT_TRUE(this->store().body(id) == bodies[id - 1]) << id;
  this->reopen();
  for (JobId id = 1; id <= bodies.size(); ++id)
    EXPECT_TRUE(this->store().body(id) == bodies[id - 1]) << id;
}

// What is erased at the head is passed over by later scans; what is put there again must not be.
TYPED_TEST(StoreTest, SeesWhatIsPutBeforeWhatWasErased) {
  for (JobId id = 1; id <= 50; ++id) this->put(job(id, 1, 100 + id));
  for (JobId id = 1; id <= 40; ++id) {
    EXPECT_EQ(ids(this->store().scan_due(1, {}, 1)), Ids{id});
    this->erase(job(id, 1, 100 + id));
  }
  EXPECT_EQ(ids(this->store().scan_due(1, {120, 0}, 1)), Ids{41});
  this->put(job(60, 1, 110));
  EXPECT_EQ(ids(this->store().scan_due(1, {111, 0}, 1)), Ids{41});
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 2)), (Ids{60, 41}));
  this->put(job(61, 1, 0));
  EXPECT_EQ(ids(this->store().scan_due(1, {1, 0}, 2)), (Ids{60, 41}));
  EXPECT_EQ(ids(this->store().scan_due(1, {}, 2)), (Ids{61, 60}));
}

TYPED_TEST(StoreTest, SeesWhatIsBuriedInATubeThatWasEmptied) {
  for (int round = 0; round < 3; ++round) {
    this->put(buried(job(1, 1, 10), 1));
    this->put(job(2, 1, 10));
    EXPECT_EQ(ids(this->store().scan_buried(1, 1, 10)), Ids{1});
    EXPECT_EQ(ids(this->store().scan_due(1, {}, 10)), Ids{2});
    this->erase(buried(job(1, 1, 10), 1));
    this->erase(job(2, 1, 10));
    EXPECT_EQ(ids(this->store().scan_buried(1, 1, 10)), Ids{});
    EXPECT_EQ(ids(this->store().scan_due(1, {}, 10)), Ids{});
    const TubeRecord empty{.number = 1, .name = "default"};
    this->store().append({.jobs = {}, .tubes = {empty}, .watermarks = {}});
  }
}

// Random changes beside the model's.
template <class Medium>
class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed) : random_(seed) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      append_something();
      if (chance(10)) look();
      if (chance(3)) sync();
      if (chance(1)) reopen();
    }
    reopen();
    look_at_all();
  }

 private:
  Store& store() { return store_of(medium_); }
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

  void sync() { EXPECT_EQ(store().sync(), appended_); }

  void append_something() {
    std::vector<std::string> bodies(1 + below(3));
    Changes changes;
    StoreModel after = model_;
    for (std::string& body : bodies) {
      changes.jobs.push_back(some_change(after, body));
      after.apply({.jobs = {changes.jobs.back()}, .tubes = {}, .watermarks = {}});
    }
    for (const JobChange& change : changes.jobs) {
      const std::uint32_t tube = change.before ? change.before->tube : change.after->tube;
      std::erase_if(changes.tubes, [&](const TubeRecord& record) { return record.number == tube; });
      changes.tubes.push_back(after.count(tube));
    }
    if (chance(5))
      changes.watermarks = Watermarks{below(1'000'000), below(1'000'000), below(1'000'000)};
    EXPECT_EQ(store().append(changes), ++appended_);
    model_.apply(changes);
  }

  // A new job, or another state of one that is not yet in this append. `body` must outlive the
  // change.
  JobChange some_change(const StoreModel& now, std::string& body) {
    const auto known = now.jobs.empty() ? now.jobs.end() : now.jobs.lower_bound(below(next_id_));
    const bool fresh = known != now.jobs.end() && !model_.jobs.contains(known->first);
    const bool touched = known != now.jobs.end() && !fresh &&
                         !(model_.jobs.at(known->first).record == known->second.record);
    if (known == now.jobs.end() || fresh || touched || chance(now.jobs.size() < 300 ? 60 : 20)) {
      body =
          std::string(chance(2) ? below(20'000) : below(300), static_cast<char>('a' + below(26)));
      JobRecord record = job(next_id_++, static_cast<std::uint32_t>(below(5)), below(1'000));
      record.body_bytes = static_cast<std::uint32_t>(body.size());
      if (chance(10)) record.burial = ++burials_;
      return {std::nullopt, record, body};
    }
    const JobRecord before = known->second.record;
    if (chance(50)) return {before, std::nullopt, {}};
    JobRecord changed = before;
    changed.priority = static_cast<Priority>(below(5'000));
    if (chance(60)) changed.due = below(1'000);
    if (chance(50)) changed.burial = chance(50) ? ++burials_ : 0;
    changed.history.releases += 1;
    return {before, changed, {}};
  }

  void look() {
    const auto tube = static_cast<std::uint32_t>(below(6));
    const DueKey from = chance(50) ? DueKey{} : DueKey{below(1'000), below(next_id_)};
    const std::size_t limit = below(50);
    EXPECT_EQ(store().scan_due(tube, from, limit), model_.scan_due(tube, from, limit))
        << tube << ' ' << from.due;
    const std::uint64_t burial = chance(50) ? 1 : below(burials_ + 1);
    EXPECT_EQ(store().scan_buried(tube, burial, limit), model_.scan_buried(tube, burial, limit))
        << tube;
    look_at(below(next_id_));
  }

  void look_at(JobId id) {
    const auto known = model_.jobs.find(id);
    if (known == model_.jobs.end()) {
      EXPECT_EQ(store().find(id), std::nullopt) << id;
      return;
    }
    EXPECT_EQ(store().find(id), known->second.record);
    EXPECT_EQ(store().body(id), known->second.body);
  }

  void look_at_all() {
    for (std::uint32_t tube = 0; tube < 6; ++tube) {
      EXPECT_EQ(store().scan_due(tube, {}, 1'000'000), model_.scan_due(tube, {}, 1'000'000));
      EXPECT_EQ(store().scan_buried(tube, 0, 1'000'000), model_.scan_buried(tube, 0, 1'000'000));
    }
    for (JobId id = 0; id < next_id_; ++id) look_at(id);
    Recovered recovered = store().recover();
    std::sort(
        recovered.tubes.begin(), recovered.tubes.end(),
        [](const TubeRecord& left, const TubeRecord& right) { return left.number < right.number; });
    std::vector<TubeRecord> tubes;
    for (const auto& [number, record] : model_.tubes) tubes.push_back(record);
    EXPECT_EQ(recovered.tubes, tubes);
    EXPECT_EQ(recovered.watermarks, model_.watermarks);
  }

  void reopen() {
    medium_.reopen();
    if (store().sync() == 0) appended_ = 0;  // counts anew
  }

  std::mt19937_64 random_;
  Medium medium_;
  StoreModel model_;
  JobId next_id_ = 1;
  std::uint64_t burials_ = 0;
  Sequence appended_ = 0;
};

TYPED_TEST(StoreTest, IsAsItsModelIs) {
  const char* given = std::getenv("CARILLON_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "CARILLON_SEED=" << seed << std::endl;
  RandomHistory<TypeParam>(seed).run(5'000);
}

}  // namespace
}  // namespace carillon::queue
