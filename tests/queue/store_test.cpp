// What every Store promises, in literal cases: one suite over all of them. The simulator's
// worlds have the random cases.

#include "carillon/queue/store.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "queue/store_media.h"

namespace carillon::queue {

namespace {

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

TYPED_TEST(StoreTest, ScansManyTubesAtOnce) {
  constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
  this->put(job(1, 1, 10));
  this->put(job(2, 1, 20));
  this->put(job(3, 1, 30));
  this->put(buried(job(4, 2, 10), 5));
  this->put(job(5, 3, 30));
  this->put(job(6, 3, 40));
  this->put(job(7, 4, 10));
  for (JobId id = 8; id < 13; ++id) this->put(job(id, 300, 10));
  this->put(job(13, kLast, 19));
  const Store& store = this->store();
  const auto scan = [&store](const std::vector<std::uint32_t>& tubes, UtcMs end,
                             std::size_t limit) {
    return ids(store.scan_due_of_each(tubes, end, limit));
  };
  // What is due at 20 or later comes once for each tube.
  EXPECT_EQ(scan({1, 2, 3, 300, kLast}, 20, 3), (Ids{1, 2, 5, 8, 9, 10, 13}));
  EXPECT_EQ(scan({1, 3, 4}, 0, 10), (Ids{1, 5, 7}));
  EXPECT_EQ(scan({1, 3, 4}, 100, 10), (Ids{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(scan({0, 2, 5, 299, 301}, 100, 10), Ids{});
  EXPECT_EQ(scan({0, 2, 4, 299, 300}, 100, 1), (Ids{7, 8}));
  EXPECT_EQ(scan({}, 100, 10), Ids{});
  EXPECT_EQ(scan({1, 3}, 100, 0), Ids{});
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

TYPED_TEST(StoreTest, ChangesARecordWhoseKeyStaysTheSame) {
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

TYPED_TEST(StoreTest, KeepsTheSettingsOfATube) {
  const TubeSettings settings{
      .retry = {.max_attempts = 1, .backoff = 2, .backoff_max = 3, .jitter = 4, .lost_fails = true},
      .refuses_puts = true,
      .limits = {.max_running = 5, .rate = 6, .period = 7, .burst = 8}};
  const TubeRecord tube{.number = 1, .name = "api", .settings = detail::Rare(settings)};
  this->store().append({.jobs = {}, .tubes = {tube}, .watermarks = {}});
  this->reopen();
  EXPECT_EQ(this->store().recover().tubes, std::vector<TubeRecord>{tube});
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
  const auto expect_all = [&] {
    for (JobId id = 1; id <= bodies.size(); ++id) {
      const std::string& body = bodies[id - 1];
      const auto bytes = static_cast<std::uint32_t>(body.size());
      EXPECT_TRUE(whole_body(this->store(), id, bytes) == body) << id;
    }
  };
  for (JobId id = 1; id <= bodies.size(); ++id) this->put(job(id, 1, id), bodies[id - 1]);
  expect_all();
  this->reopen();
  expect_all();
}

// Later scans skip what was erased at the head. They must not skip what is put there again.
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

}  // namespace
}  // namespace carillon::queue
