// What is due when (due_counts.h).

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "carillon/queue/due_counts.h"
#include "carillon/queue/memory_store.h"
#include "queue/engine_fixture.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

// A store that can estimate: it counts.
class EstimatingStore final : public MemoryStore, public DueEstimates {
 public:
  mutable std::uint64_t read = 0;
  mutable std::uint64_t asked = 0;

  std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                  std::size_t limit) const override {
    auto jobs = MemoryStore::scan_due(tube, from, limit);
    read += jobs.size();
    return jobs;
  }
  std::vector<double> estimate_due(std::uint32_t tube,
                                   std::span<const UtcMs> bounds) const override {
    std::vector<double> counts(bounds.size() - 1, 0);
    for (const JobRecord& job : MemoryStore::scan_due(tube, {bounds.front(), 0}, SIZE_MAX)) {
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        if (job.due >= bounds[i] && job.due < bounds[i + 1]) counts[i] += 3;  // any unit will do
      }
    }
    asked += counts.size();
    return counts;
  }
  InMemory scan_due_in_memory(std::uint32_t, DueKey, std::size_t) const override { return {}; }
};

DueCounts count(Engine& engine, Now now, DueCounts counts) {
  while (!counts.done) engine.count_due(now, counts);
  return counts;
}

class DueCountsTest : public EngineTest {
 protected:
  DueCounts count(Millis width, std::size_t spans) {
    return queue::count(engine, queue.now(),
                        {.tube = "default", .bounds = bounds_of(queue.utc(), width, spans)});
  }
};

// The clock starts at 22:13:20.
TEST_F(DueCountsTest, ByMinute) {
  queue.put(producer, "ready");
  queue.put(producer, "buried");
  engine.reserve_job(worker, queue.now(), 2);
  engine.bury(worker, queue.now(), 2, 0);
  for (const Millis in : {1ULL, 39'999ULL, 40'000ULL, 100'000ULL, 5 * 60'000ULL})
    queue.put(producer, "x", {.due_in = in});
  const DueCounts counts = count(kMinute, 3);
  EXPECT_EQ(counts.jobs, (std::vector<std::uint64_t>{2, 1, 1}));
  EXPECT_EQ(counts.later, 1U);
  EXPECT_EQ(counts.delayed, 5U);
  EXPECT_EQ(counts.exact_until, UINT64_MAX);
  EXPECT_EQ(counts.bounds[1] % kMinute, 0U);
  EXPECT_EQ(counts.bounds[1] - queue.utc(), 40'000U);
}

TEST_F(DueCountsTest, NoTubeNoJobs) {
  const DueCounts none = queue::count(
      engine, queue.now(), {.tube = "none", .bounds = bounds_of(queue.utc(), kMinute, 60)});
  EXPECT_TRUE(none.jobs.empty());
  EXPECT_EQ(count(kMinute, 2).jobs, (std::vector<std::uint64_t>{0, 0}));
  for (const auto& bounds :
       {std::vector<UtcMs>{}, {1}, {2, 2}, {2, 1}, bounds_of(0, kMinute, kMostSpans + 1)}) {
    DueCounts wrong{.tube = "default", .bounds = bounds};
    EXPECT_THROW(engine.count_due(queue.now(), wrong), std::invalid_argument);
  }
}

TEST_F(DueCountsTest, JobsThatAreReservedEarlyAreNotDelayed) {
  queue.put(producer, "x", {.due_in = 1'000});
  queue.put(producer, "y", {.due_in = 2'000});
  engine.reserve_job(worker, queue.now(), 1);
  EXPECT_EQ(count(kMinute, 1).jobs.at(0), 1U);
}

// Records follow a step of the clock in small steps. Until then they say when the delay would have
// been over by the clock before.
TEST(DueCountsAfterAStep, AreAllOfTheDelayedJobs) {
  VirtualQueue queue({.step = 10});
  const ClientId client = queue.engine().connect();
  for (int n = 0; n < 100; ++n) queue.put(client, "x", {.due_in = 30'000});
  queue.step_wall_clock(3'600'000);
  const DueCounts counts = count(queue.engine(), queue.now(),
                                 {.tube = "default", .bounds = bounds_of(queue.utc(), kMinute, 2)});
  EXPECT_EQ(counts.delayed, 100u);
  EXPECT_EQ(counts.jobs.at(0) + counts.jobs.at(1), 100u);
  EXPECT_GT(counts.jobs.at(0), 0u);
}

TEST(DueCountsOfMany, ReadNoMoreThanTheirBudget) {
  EstimatingStore store;
  const Now now{.utc_ns = 1'700'000'000'000 * 1'000'000ULL, .mono_ns = 5};
  Engine engine(store, {.load_ahead = 0}, now);
  const ClientId producer = engine.connect();
  for (Millis i = 0; i < 20'000; ++i) engine.put(producer, now, {.due_in = 1 + i * 100}, "x");
  store.read = 0;
  const auto bounds = bounds_of(now.utc_ns / 1'000'000, kMinute, 20);
  const DueCounts counts =
      count(engine, now, {.tube = "default", .bounds = bounds, .budget = 1'000});
  EXPECT_LE(store.read, 1'100U);
  EXPECT_LE(store.asked, 25U);
  EXPECT_NE(counts.exact_until, UINT64_MAX);
  EXPECT_EQ(counts.jobs.at(0), 400U);  // 40 s
  for (std::size_t span = 1; span < 20; ++span)
    EXPECT_NEAR(static_cast<double>(counts.jobs.at(span)), 600, 2) << span;
  const std::uint64_t sum = std::accumulate(counts.jobs.begin(), counts.jobs.end(), counts.later);
  EXPECT_EQ(sum, 20'000U);
  const DueCounts exact =
      count(engine, now, {.tube = "default", .bounds = bounds, .budget = 100'000});
  EXPECT_EQ(exact.exact_until, UINT64_MAX);
  EXPECT_EQ(exact.jobs.at(7), 600U);
  EXPECT_EQ(exact.later, counts.later);
}

// A tube on disk, of whose jobs only the first ones are counted one by one.
class DueCountsOnDisk : public testing::Test {
 protected:
  static constexpr std::size_t kSpans = 20;

  DueCountsOnDisk() { open(); }

  // Puts 1'000 jobs a span, evenly, into the spans from `first` on and before `end`.
  void put_jobs(std::size_t first, std::size_t end, std::string_view group = {}) {
    const ClientId producer = engine_->connect();
    for (Millis in = first * kMinute; in < end * kMinute; in += 60)
      engine_->put(producer, kNow, {.due_in = 1 + in, .group = group}, "x");
    engine_->disconnect(producer, kNow);
  }
  void put_and_delete(std::size_t jobs) {
    const ClientId producer = engine_->connect();
    for (std::size_t n = 0; n < jobs; ++n) {
      const auto put = engine_->put(producer, kNow, {.due_in = 10 * kMinute}, "x");
      engine_->remove(producer, kNow, put.id);
    }
    engine_->disconnect(producer, kNow);
  }
  void reserve_every(JobId nth) {
    worker_ = engine_->connect();
    for (JobId id = nth; engine_->reserve_job(worker_, kNow, id); id += nth) continue;
  }
  void delete_jobs(JobId first, JobId end) {
    const ClientId producer = engine_->connect();
    for (JobId id = first; id < end; ++id) engine_->remove(producer, kNow, id);
    engine_->disconnect(producer, kNow);
  }
  DueEstimates::InMemory::End scan_all_in_memory() {
    constexpr std::uint32_t kDefaultTube = 1;
    return store_->scan_due_in_memory(kDefaultTube, {}, SIZE_MAX).end;
  }
  // What was put before is in files then.
  void reopen() {
    engine_.reset();
    store_.reset();
    open();
  }
  DueCounts count_some() {
    const UtcMs utc = kNow.utc_ns / 1'000'000;
    DueCounts counts =
        count(*engine_, kNow,
              {.tube = "default", .bounds = bounds_of(utc, kMinute, kSpans), .budget = 500});
    EXPECT_LT(counts.exact_until, utc + 2 * kMinute);
    EXPECT_EQ(std::accumulate(counts.jobs.begin(), counts.jobs.end(), counts.later),
              counts.delayed);
    return counts;
  }
  // Looks for 1'000 jobs in the spans from `first` on, and for `before` in those before.
  void expect_about(std::size_t first, std::uint64_t before) {
    const DueCounts counts = count_some();
    for (std::size_t span = 1; span < kSpans; ++span) {
      const auto expected = static_cast<double>(span < first ? before : 1'000);
      EXPECT_NEAR(static_cast<double>(counts.jobs.at(span)), expected, 250) << span;
    }
  }

 private:
  // The first span is a whole one.
  static constexpr Now kNow{.utc_ns = 28'333'334 * kMinute * 1'000'000ULL, .mono_ns = 5};

  void open() {
    store_ = std::make_unique<DiskStore>(directory_ / "data");
    engine_ = std::make_unique<Engine>(*store_, EngineOptions{.load_ahead = 0}, kNow);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<DiskStore> store_;
  std::unique_ptr<Engine> engine_;
  ClientId worker_ = 0;
};

TEST_F(DueCountsOnDisk, CountsJobsInMemory) {
  put_jobs(0, kSpans);
  expect_about(0, 0);
}

TEST_F(DueCountsOnDisk, CountsJobsThatAreReservedEarly) {
  put_jobs(0, kSpans);
  reserve_every(10);
  expect_about(0, 0);
}

TEST_F(DueCountsOnDisk, CountsJobsInFiles) {
  put_jobs(0, kSpans);
  reopen();
  expect_about(0, 0);
}

TEST_F(DueCountsOnDisk, CountsJobsInFilesAndInMemory) {
  put_jobs(0, 8);
  reopen();
  put_jobs(8, kSpans);
  expect_about(0, 0);
}

TEST_F(DueCountsOnDisk, CountsAStorePartlyInMemory) {
  put_jobs(0, kSpans);
  reopen();
  put_jobs(0, 10);
  expect_about(10, 2'000);
}

TEST_F(DueCountsOnDisk, CountsGroupsThatAreDueLaterThanTheOthers) {
  put_jobs(5, 6);
  put_jobs(10, 19, "g");
  const DueCounts counts = count_some();
  for (std::size_t span = 0; span < kSpans; ++span) {
    const bool has_jobs = span == 5 || (span >= 10 && span < 19);
    EXPECT_EQ(counts.jobs.at(span), has_jobs ? 1'000U : 0U) << span;
  }
}

// A scan that passed over all of them at once would stop the other clients.
TEST_F(DueCountsOnDisk, BehindVeryManyErasedJobs) {
  put_jobs(0, kSpans);
  reopen();
  EXPECT_EQ(scan_all_in_memory(), DueEstimates::InMemory::End::kNoMore);
  delete_jobs(5'000, 15'000);
  put_jobs(15, kSpans);
  EXPECT_EQ(scan_all_in_memory(), DueEstimates::InMemory::End::kErased);
  const DueCounts counts = count_some();
  EXPECT_EQ(counts.delayed, 15'000U);
  for (std::size_t span = 15; span < kSpans; ++span)
    EXPECT_GE(counts.jobs.at(span), 1'000U) << span;
}

// What comes and goes in memory says nothing of what is in files.
TEST_F(DueCountsOnDisk, WhileManyJobsComeAndGo) {
  put_jobs(0, 10);
  reopen();
  put_and_delete(30'000);
  put_jobs(10, kSpans);
  expect_about(0, 0);
}

}  // namespace
}  // namespace carillon::queue
