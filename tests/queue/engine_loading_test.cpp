// Far jobs stay in the store, and near jobs are in memory.
// Row Q23 of the product's table.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

std::uint64_t loaded(VirtualQueue& queue) {
  return queue.engine().stats().jobs.loaded;
}

// Product example D2: a job due in 40 days is on disk only; one due in 5 s is in the wheel; after a
// restart both still fire on time.
TEST(EngineLoading, D2_AJobDueIn40DaysIsInTheStoreOnlyAndOneDueIn5SecondsIsInTheWheel) {
  VirtualQueue queue;
  ClientId client = queue.engine().connect();
  queue.put(client, "in 40 days", {.due_in = 40 * kDay});
  EXPECT_EQ(loaded(queue), 0u);
  queue.put(client, "in 5 s", {.due_in = 5'000});
  EXPECT_EQ(loaded(queue), 1u);

  queue.crash(1'000);
  client = queue.engine().connect();
  queue.engine().advance(queue.now());
  EXPECT_EQ(loaded(queue), 1u);
  EXPECT_EQ(queue.engine().stats().jobs.delayed, 2u);
  queue.wait(client);
  queue.pass(3'999);
  EXPECT_TRUE(queue.deliveries().empty());
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), std::vector<std::string>{"1:in 5 s"});

  queue.wait(client);
  queue.pass(40 * kDay - 5'000 - 60'001);
  EXPECT_EQ(loaded(queue), 1u)
      << "the first job is ready again, as its ttr is over; the far job is 60.001 s away";
  queue.pass(1);
  EXPECT_EQ(loaded(queue), 2u) << "loaded a minute before it is due";
  queue.engine().check_invariants();
}

TEST(EngineLoading, ANearJobPutAfterAFarOneComesFirst) {
  VirtualQueue queue({.load_ahead = 1'000});
  const ClientId client = queue.engine().connect();
  queue.put(client, "far", {.due_in = 10'000});
  queue.pass(5'000);
  queue.put(client, "near", {.due_in = 2'000});
  queue.put(client, "nearer", {.due_in = 100});
  EXPECT_EQ(loaded(queue), 1u);
  queue.engine().check_invariants();
  for (const auto& [ms, body] : {std::pair{100u, "nearer"}, {1'900u, "near"}, {3'000u, "far"}}) {
    queue.wait(client);
    queue.pass(ms);
    EXPECT_EQ(queue.deliveries(), std::vector<std::string>{std::string("1:") + body});
  }
}

TEST(EngineLoading, DelayedJobsMakeRoomForReadyOnesAndStillFireOnTime) {
  VirtualQueue queue({.load_ahead = 60'000, .max_loaded_per_tube = 8, .step = 4});
  const ClientId client = queue.engine().connect();
  for (int i = 1; i <= 20; ++i)
    queue.put(client, "later", {.due_in = static_cast<Millis>(1'000 * i)});
  for (int i = 0; i < 8; ++i) queue.put(client, "now");
  EXPECT_EQ(loaded(queue), 8u);
  EXPECT_EQ(queue.engine().stats().jobs.ready, 8u);
  queue.engine().check_invariants();
  for (int i = 0; i < 8; ++i) {
    const auto got = queue.engine().reserve(client, queue.now(), 0);
    ASSERT_EQ(queue.word(*got), "now");
    ASSERT_TRUE(queue.engine().remove(client, queue.now(), got->job.id).done);
  }
  for (int i = 1; i <= 20; ++i) {
    queue.wait(client);
    queue.pass(999);
    ASSERT_TRUE(queue.deliveries().empty()) << i;
    queue.pass(1);
    ASSERT_EQ(queue.engine().take_deliveries().size(), 1u) << i;
    queue.engine().check_invariants();
  }
}

// Tubes that came later have taken what was free, so the first one has too many jobs.
TEST(EngineLoading, AJobThatMakesRoomDropsAFewOthersAtOnceAndTheRestLater) {
  VirtualQueue queue({.max_loaded = 1'000, .step = 100});
  Engine& engine = queue.engine();
  const ClientId client = engine.connect();
  for (const char* tube : {"a", "b", "c", "d"}) {
    engine.use(client, tube);
    for (int i = 0; i < 600; ++i) queue.put(client, "x", {.due_in = 50'000});
  }
  const auto in_memory = [&] { return engine.tube_stats(queue.now(), "a")->jobs.loaded; };
  const std::uint64_t before = in_memory();
  ASSERT_GT(before, 400u);
  engine.use(client, "a");
  queue.put(client, "now");
  EXPECT_GE(in_memory() + 16 + 64, before) << "16 by the put, and a command's part of the rest";
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t last = in_memory();
    queue.pass(0);
    EXPECT_GE(in_memory() + 100 + 64, last);
    engine.check_invariants();
  }
  EXPECT_LT(in_memory(), 350u);
  EXPECT_GT(*engine.next_wakeup(), queue.now().mono_ns) << "there is no more to do";
}

TEST(EngineLoading, WhileMemoryIsShortATubeLoadsOneJob) {
  bool is_short = true;
  VirtualQueue queue({.load_ahead = 1, .memory_is_short = [&is_short] { return is_short; }});
  Engine& engine = queue.engine();
  const ClientId client = engine.connect();
  for (int i = 0; i < 100; ++i) queue.put(client, "far", {.due_in = 1'000});
  for (int i = 0; i < 100; ++i) queue.put(client, "later", {.due_in = kDay});
  queue.pass(1'000);
  EXPECT_EQ(loaded(queue), 1u);
  EXPECT_EQ(engine.stats().jobs.ready, 100u);
  EXPECT_EQ(kick_all(engine, client, queue.now(), 50), 50u);
  EXPECT_EQ(loaded(queue), 1u);
  EXPECT_EQ(engine.stats().jobs.ready, 150u);
  for (int i = 0; i < 10; ++i) {
    const auto got = engine.reserve(client, queue.now(), 0);
    ASSERT_EQ(got->kind, Delivery::Kind::kReserved) << i;
    ASSERT_TRUE(engine.remove(client, queue.now(), got->job.id).done);
    queue.pass(100);
    engine.check_invariants();
    EXPECT_EQ(loaded(queue), 1u);
  }
  is_short = false;
  ASSERT_EQ(engine.reserve(client, queue.now(), 0)->kind, Delivery::Kind::kReserved);
  queue.pass(100);
  EXPECT_EQ(loaded(queue), 140u) << "139 and the reserved one";
}

TEST(EngineLoading, AStartReadsNoJobsButTheNearOnes) {
  class CountingStore : public MemoryStore {
   public:
    std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                    std::size_t limit) const override {
      auto records = MemoryStore::scan_due(tube, from, limit);
      read += records.size();
      return records;
    }
    mutable std::size_t read = 0;
  };
  CountingStore store;
  const Now now{.utc_ns = 1'700'000'000'000 * kMs, .mono_ns = 0};
  {
    Engine engine(store, {}, now);
    const ClientId client = engine.connect();
    for (int i = 0; i < 5'000; ++i) engine.put(client, now, {.due_in = 40 * kDay}, "far");
    for (int i = 0; i < 10; ++i) engine.put(client, now, {.due_in = 5'000}, "near");
  }
  store.read = 0;
  Engine engine(store, {}, now);
  engine.advance(now);
  EXPECT_EQ(engine.stats().jobs.loaded, 10u);
  EXPECT_EQ(engine.stats().jobs.delayed, 5'010u);
  EXPECT_LE(store.read, 16u) << "one short scan, past the near ones";
}

TEST(EngineLoading, AFarJobIsLoadedAfterABacklogThatLeftByDeletes) {
  VirtualQueue queue({.max_loaded_per_tube = 2, .step = 10});
  const ClientId client = queue.engine().connect();
  std::vector<JobId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(queue.put(client, "backlog", {.due_in = 10'000}));
  for (auto id = ids.rbegin(); id != ids.rend(); ++id)
    queue.engine().remove(client, queue.now(), *id);
  queue.put(client, "tomorrow", {.due_in = kDay});
  queue.engine().check_invariants();
  queue.pass(kDay);
  EXPECT_EQ(queue.reserve(client), "tomorrow");
}

TEST(EngineLoading, AJobThatWasFarComesBeforeATimeOutThatIsLater) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  const ClientId worker = queue.engine().connect();
  queue.put(client, "job", {.due_in = 120'000});
  queue.wait(worker, 180'000);
  queue.pass(200'000);
  EXPECT_EQ(queue.deliveries(), std::vector<std::string>{"2:job"})
      << "the process was stopped for 200 s";
}

TEST(EngineOptionsTest, OptionsOutOfRangeAreRefused) {
  MemoryStore store;
  EXPECT_THROW(Engine(store, {.step = 0}, Now{}), std::invalid_argument);
  EXPECT_THROW(Engine(store, {.max_loaded_per_tube = 0}, Now{}), std::invalid_argument);
  EXPECT_THROW(Engine(store, {.load_ahead = UINT64_MAX}, Now{}), std::invalid_argument);
}

}  // namespace
}  // namespace carillon::queue
