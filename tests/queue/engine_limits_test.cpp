// The limits of what an engine has in memory: loaded jobs, reserved jobs, tubes and watches.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/memory_store.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

class EngineLimits : public ::testing::Test {
 protected:
  void make(const EngineOptions& options) {
    engine = std::make_unique<Engine>(store, options, now);
  }
  void pass(std::uint64_t ms) {
    now.utc_ns += ms * 1'000'000;
    now.mono_ns += ms * 1'000'000;
    for (int i = 0; i < 1'000; ++i) engine->advance(now);
  }
  void put(const std::string& tube, int jobs, Millis delay) {
    const ClientId client = engine->connect();
    engine->use(client, tube);
    for (int i = 0; i < jobs; ++i) engine->put(client, now, {.due_in = delay}, "x");
    engine->disconnect(client, now);
  }
  JobCounts jobs() const { return engine->stats().jobs; }
  std::uint64_t queued() const { return jobs().loaded - jobs().reserved; }
  // Reserves and deletes all that is ready, and returns how many jobs that were.
  int drain(ClientId worker) {
    int drained = 0;
    for (auto got = engine->reserve(worker, now, 0); got->kind == Delivery::Kind::kReserved;
         got = engine->reserve(worker, now, 0)) {
      EXPECT_TRUE(engine->remove(worker, now, got->job.id).done);
      ++drained;
      pass(0);
      engine->check_invariants();
    }
    return drained;
  }

  MemoryStore store;
  Now now{.utc_ns = 1'800'000'000'000'000'000, .mono_ns = 5'000'000'000};
  std::unique_ptr<Engine> engine;
};

TEST_F(EngineLimits, OneTubeHasHalfOfTheMemoryAndTwoAThirdEach) {
  make({.max_loaded = 300});
  put("a", 1'000, 0);
  EXPECT_NEAR(static_cast<double>(queued()), 150, 2);
  put("b", 1'000, 0);
  EXPECT_GT(queued(), 200u);
  EXPECT_LE(queued(), 301u);
  engine->check_invariants();
}

TEST_F(EngineLimits, EachOfManyTubesHasOneJobInMemory) {
  make({.max_loaded = 10});
  for (int i = 0; i < 50; ++i) put("tube" + std::to_string(i), 4, 500);
  EXPECT_LE(queued(), 10u + 50u);
  pass(501);
  const ClientId worker = engine->connect();
  for (int i = 0; i < 50; ++i) engine->watch(worker, "tube" + std::to_string(i));
  EXPECT_EQ(drain(worker), 200);
}

TEST_F(EngineLimits, AStartKeepsToThem) {
  make({});
  put("a", 500, 0);
  put("b", 500, 0);
  engine.reset();
  make({.max_loaded = 100});
  EXPECT_LE(queued(), 101u);
  const ClientId worker = engine->connect();
  engine->watch(worker, "a");
  engine->watch(worker, "b");
  EXPECT_EQ(drain(worker), 1'000);
}

TEST_F(EngineLimits, AClientWithManyReservedJobsWaits) {
  make({.max_reserved = 100});
  put("default", 300, 0);
  const ClientId hog = engine->connect();
  while (true) {
    const auto got = engine->reserve(hog, now, 0);
    if (got->kind != Delivery::Kind::kReserved) break;
  }
  EXPECT_EQ(jobs().reserved, 50u) << "half of them, as it is alone";
  const ClientId other = engine->connect();
  ASSERT_EQ(engine->reserve(other, now, 0)->kind, Delivery::Kind::kReserved);
  EXPECT_EQ(engine->reserve(hog, now, std::nullopt), std::nullopt);
  EXPECT_THROW(engine->reserve_job(hog, now, 300), OverLimit);
  EXPECT_EQ(jobs().reserved, 51u);
  EXPECT_EQ(engine->stats().waiting, 1u);
  pass(1'000);
  EXPECT_TRUE(engine->take_deliveries().empty());
  engine->check_invariants();
}

TEST_F(EngineLimits, AClientThatWaitedIsServedWhenItsJobsAreGone) {
  make({.max_reserved = 10});
  put("default", 30, 0);
  const ClientId hog = engine->connect();
  while (engine->reserve(hog, now, 0)->kind == Delivery::Kind::kReserved) {
  }
  // The first ttr of 60 s is over: then the hog is a client that holds no jobs. In the last second
  // before, its reserve would be answered with DEADLINE_SOON.
  pass(59'500);
  ASSERT_EQ(engine->reserve(hog, now, std::nullopt)->kind, Delivery::Kind::kDeadlineSoon);
  pass(501);
  EXPECT_EQ(jobs().reserved, 0u);
  EXPECT_EQ(engine->reserve(hog, now, 0)->kind, Delivery::Kind::kReserved);
}

TEST_F(EngineLimits, AWaitEndsWhenOthersHaveFewer) {
  make({.max_reserved = 10});
  put("default", 30, 0);
  const ClientId hog = engine->connect();
  std::vector<JobId> held;
  for (auto got = engine->reserve(hog, now, 0); got->kind == Delivery::Kind::kReserved;
       got = engine->reserve(hog, now, 0))
    held.push_back(got->job.id);
  const ClientId waiter = engine->connect();
  std::vector<JobId> few;
  for (int i = 0; i < 3; ++i) few.push_back(engine->reserve(waiter, now, 0)->job.id);
  ASSERT_EQ(engine->reserve(waiter, now, std::nullopt), std::nullopt);
  for (const JobId id : held) EXPECT_TRUE(engine->remove(hog, now, id).done);
  pass(200);
  const std::vector<Delivery> delivered = engine->take_deliveries();
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered.front().client, waiter);
  EXPECT_EQ(delivered.front().kind, Delivery::Kind::kReserved);
  engine->check_invariants();
}

TEST_F(EngineLimits, AWaitThatIsOverShareTimesOutAndEndsWithItsClient) {
  make({.max_reserved = 2});
  put("default", 5, 0);
  const ClientId hog = engine->connect();
  ASSERT_EQ(engine->reserve(hog, now, 0)->kind, Delivery::Kind::kReserved);
  ASSERT_EQ(engine->reserve(hog, now, 1'000), std::nullopt);
  pass(1'001);
  const std::vector<Delivery> delivered = engine->take_deliveries();
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered.front().kind, Delivery::Kind::kTimedOut);
  ASSERT_EQ(engine->reserve(hog, now, 1'000), std::nullopt);
  engine->disconnect(hog, now);
  engine->check_invariants();
  EXPECT_EQ(engine->stats().waiting, 0u);
}

TEST_F(EngineLimits, TubesBeyondTheMostAreRefused) {
  make({.max_tubes = 3});
  const ClientId client = engine->connect();
  engine->use(client, "a");
  engine->watch(client, "b");
  EXPECT_THROW(engine->use(client, "c"), OverLimit);
  EXPECT_THROW(engine->watch(client, "c"), OverLimit);
  EXPECT_EQ(engine->tube_in_use(client), "a");
  engine->use(client, "b");  // "a" is gone
  engine->use(client, "c");
}

TEST_F(EngineLimits, WatchesCountToo) {
  make({.max_tubes = 60});
  const ClientId first = engine->connect();
  for (int i = 0; i < 40; ++i) engine->watch(first, "tube" + std::to_string(i));
  const auto watches_of_next = [&] {
    const ClientId client = engine->connect();
    try {
      for (int i = 0; i < 40; ++i) engine->watch(client, "tube" + std::to_string(i));
    } catch (const OverLimit&) {
    }
    return engine->watched(client).size();
  };
  EXPECT_EQ(watches_of_next(), 41u);
  for (int clients = 0; clients < 10; ++clients) watches_of_next();
  EXPECT_EQ(watches_of_next(), 16u);
}

}  // namespace
}  // namespace carillon::queue
