// Restarts of the engine.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "carillon/queue/memory_store.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

TEST(EngineRestart, IdsGoOnAfterACrashAndWithoutAGapAfterAClose) {
  VirtualQueue queue;
  EXPECT_EQ(queue.put(queue.engine().connect(), "a"), 1u);
  queue.crash();
  const JobId after_crash = queue.put(queue.engine().connect(), "b");
  EXPECT_GT(after_crash, 1u);
  queue.engine().close();
  queue.crash();
  EXPECT_EQ(queue.put(queue.engine().connect(), "c"), after_crash + 1);
}

// The append that gives an id tells the store of it: a crash right after it may lose all else,
// but not the watermark.
TEST(EngineRestart, EveryIdAndBurialIsBelowAWatermarkOfItsOwnAppendOrOneBefore) {
  VirtualQueue queue;
  const ClientId client = queue.engine().connect();
  for (int n = 1; n <= 3'500; ++n) {
    const JobId id = queue.put(client, "x");
    ASSERT_GT(queue.store().recover().watermarks.next_id, id);
    if (n < 1'500) continue;
    ASSERT_TRUE(queue.engine().reserve_job(client, queue.now(), id));
    ASSERT_TRUE(queue.engine().bury(client, queue.now(), id, 0).done);
    const std::uint64_t burial = queue.store().find(id)->burial;
    ASSERT_GT(queue.store().recover().watermarks.next_burial, burial);
  }
}

// An id has 43 bits, because the number of a shard will stand above them.
TEST(EngineRestart, AfterTheLastIdEveryPutIsRefusedAndNothingElse) {
  constexpr JobId kLast = 8'796'093'022'207;
  MemoryStore store;
  constexpr Now kNow{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1};
  store.append({.jobs = {},
                .tubes = {},
                .watermarks = Watermarks{.next_id = kLast - 1, .next_burial = 1, .time = 0}});
  for (int life = 0; life < 2; ++life) {
    Engine engine(store, {}, kNow);
    const ClientId client = engine.connect();
    if (life == 0) {
      EXPECT_EQ(engine.put(client, kNow, {}, "a").id, kLast - 1);
      EXPECT_EQ(engine.put(client, kNow, {}, "b").id, kLast);
    }
    for (int n = 0; n < 2; ++n) {
      try {
        engine.put(client, kNow, {}, "c");
        FAIL() << "it was put";
      } catch (const StoreError& error) {
        EXPECT_STREQ(error.what(), "the last id, 8796093022207, was given: no job can be put");
      }
    }
    EXPECT_EQ(store.body(engine.reserve(client, kNow, 0)->job.id), "a");
    EXPECT_EQ(store.body(engine.reserve(client, kNow, 0)->job.id), "b");
    engine.check_invariants();
  }
}

TEST(EngineRestart, StatesPrioritiesAndCountsAreKept) {
  VirtualQueue queue;
  ClientId client = queue.engine().connect();
  queue.engine().use(client, "work");
  queue.engine().watch(client, "work");
  const JobId buried = queue.put(client, "buried");
  ASSERT_EQ(queue.reserve(client), "buried");
  ASSERT_TRUE(queue.engine().bury(client, queue.now(), buried, 3).done);
  queue.put(client, "second", {.priority = 2});
  queue.put(client, "first", {.priority = 1});
  queue.put(client, "delayed", {.due_in = 1'000});
  const JobId reserved = queue.put(client, "reserved", {.priority = 0});
  ASSERT_EQ(queue.reserve(client), "reserved");

  queue.crash();
  client = queue.engine().connect();
  queue.engine().use(client, "work");
  queue.engine().watch(client, "work");
  queue.engine().advance(queue.now());
  const JobCounts jobs = queue.engine().tube_stats(queue.now(), "work")->jobs;
  EXPECT_EQ(jobs.ready, 3u);
  EXPECT_EQ(jobs.delayed, 1u);
  EXPECT_EQ(jobs.buried, 1u);
  EXPECT_EQ(queue.engine().job_stats(queue.now(), reserved)->state, JobState::kReady)
      << "its reservation ended with the server";
  const JobStats stats = *queue.engine().job_stats(queue.now(), buried);
  EXPECT_EQ(stats.state, JobState::kBuried);
  EXPECT_EQ(stats.record.priority, 3u);
  EXPECT_EQ(stats.record.history.reserves, 1u);
  for (const char* body : {"reserved", "first", "second"}) EXPECT_EQ(queue.reserve(client), body);
  queue.engine().check_invariants();
}

TEST(EngineRestart, AJobDueWhileTheServerWasDownIsReadyAtOnce) {
  VirtualQueue queue;
  queue.put(queue.engine().connect(), "job", {.due_in = 1'000});
  queue.crash(5'000);
  EXPECT_EQ(queue.reserve(queue.engine().connect()), "job");
}

// This holds however many jobs are ready, and however few a step loads.
TEST(EngineRestart, ReadyJobsAreThereForTheFirstCommandInTheirOrder) {
  VirtualQueue queue({.step = 10});
  ClientId client = queue.engine().connect();
  for (const std::string tube : {"a", "b", "c"}) {
    queue.engine().use(client, tube);
    for (int i = 0; i < 100; ++i) queue.put(client, tube, {.priority = 100});
    queue.put(client, tube + " urgent", {.priority = tube == "b" ? 0u : 1u});
    queue.put(client, tube + " soon", {.due_in = 30'000});
    queue.put(client, tube + " far", {.due_in = kDay});
  }
  queue.crash();
  client = queue.engine().connect();
  EXPECT_EQ(queue.engine().stats().jobs.ready, 303u);
  EXPECT_EQ(queue.engine().stats().jobs.delayed, 6u);
  for (const char* tube : {"a", "b", "c"}) queue.engine().watch(client, tube);
  EXPECT_EQ(queue.reserve(client), "b urgent");
  EXPECT_EQ(queue.reserve(client), "a urgent");
  EXPECT_EQ(queue.reserve(client), "c urgent");
  EXPECT_EQ(queue.reserve(client), "a");
  queue.engine().check_invariants();
}

// If one tube's jobs cannot be read, the engine reports it and tries again; other tubes work on.
TEST(EngineRestart, JobsThatCannotBeReadAtTheStartAreReportedAndTriedAgain) {
  class UnreadableTube : public MemoryStore {
   public:
    std::vector<JobRecord> scan_due(std::uint32_t tube, DueKey from,
                                    std::size_t limit) const override {
      if (tube == unreadable) throw StoreError("unreadable");
      return MemoryStore::scan_due(tube, from, limit);
    }
    std::uint32_t unreadable = 0;
  };
  UnreadableTube store;
  Now now{.utc_ns = 1'700'000'000'000 * kMs, .mono_ns = 0};
  {
    Engine engine(store, {}, now);
    const ClientId client = engine.connect();
    engine.put(client, now, {}, "in default");
    engine.use(client, "other");
    store.unreadable =
        engine.job_stats(now, engine.put(client, now, {}, "in other").id)->record.tube;
  }
  Engine engine(store, {}, now);
  const ClientId client = engine.connect();
  engine.watch(client, "other");
  EXPECT_EQ(store.body(engine.reserve(client, now, 0)->job.id), "in default");
  EXPECT_THROW(engine.advance(now), StoreError);
  store.unreadable = 0;
  now.utc_ns += 1'000 * kMs;
  now.mono_ns += 1'000 * kMs;
  engine.advance(now);
  EXPECT_EQ(store.body(engine.reserve(client, now, 0)->job.id), "in other");
  engine.check_invariants();
}

}  // namespace
}  // namespace carillon::queue
