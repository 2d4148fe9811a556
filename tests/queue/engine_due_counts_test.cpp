// What is due when (due_counts.h).

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "carillon/queue/due_counts.h"
#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

constexpr Millis kMinute = 60'000;

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
};

DueCounts count(Engine& engine, Now now, DueCounts counts) {
  while (!counts.done) engine.count_due(now, counts);
  return counts;
}

class DueCountsTest : public EngineTest {
 protected:
  DueCounts count(Millis width, std::size_t spans) {
    return queue::count(engine, queue.now(), {.tube = "default", .width = width, .spans = spans});
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
  EXPECT_EQ(counts.start_of(1) % kMinute, 0U);
  EXPECT_EQ(counts.start_of(1) - queue.utc(), 40'000U);
}

TEST_F(DueCountsTest, NoTubeNoJobs) {
  const DueCounts none = queue::count(engine, queue.now(), {.tube = "none"});
  EXPECT_TRUE(none.jobs.empty());
  EXPECT_EQ(count(kMinute, 2).jobs, (std::vector<std::uint64_t>{0, 0}));
  DueCounts wrong{.tube = "default", .spans = kMostSpans + 1};
  EXPECT_THROW(engine.count_due(queue.now(), wrong), std::invalid_argument);
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
  const DueCounts counts = count(queue.engine(), queue.now(), {.tube = "default", .spans = 2});
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
  const DueCounts counts =
      count(engine, now, {.tube = "default", .width = kMinute, .spans = 20, .budget = 1'000});
  EXPECT_LE(store.read, 1'100U);
  EXPECT_LE(store.asked, 25U);
  EXPECT_NE(counts.exact_until, UINT64_MAX);
  EXPECT_EQ(counts.jobs.at(0), 400U);  // 40 s
  for (std::size_t span = 1; span < 20; ++span)
    EXPECT_NEAR(static_cast<double>(counts.jobs.at(span)), 600, 2) << span;
  const std::uint64_t sum = std::accumulate(counts.jobs.begin(), counts.jobs.end(), counts.later);
  EXPECT_EQ(sum, 20'000U);
  const DueCounts exact =
      count(engine, now, {.tube = "default", .width = kMinute, .spans = 20, .budget = 100'000});
  EXPECT_EQ(exact.exact_until, UINT64_MAX);
  EXPECT_EQ(exact.jobs.at(7), 600U);
  EXPECT_EQ(exact.later, counts.later);
}

}  // namespace
}  // namespace carillon::queue
