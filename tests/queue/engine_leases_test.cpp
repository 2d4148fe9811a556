// Leases: reservations that survive a restart of the engine.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/disk_store.h"
#include "queue/seed.h"
#include "queue/temporary_directory.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

class EngineLeases : public testing::Test {
 protected:
  Engine& engine() { return queue.engine(); }
  // Puts a job, reserves it, and makes a lease of `time` ms of it.
  JobId lease(Millis time, const std::string& secret = "s", PutOrder order = {}) {
    const ClientId client = engine().connect();
    const JobId id = queue.put(client, "body", order);
    EXPECT_EQ(queue.reserve(client), "body");
    EXPECT_EQ(engine().lease(client, queue.now(), {&id, 1}, secret, time).jobs.size(), 1U);
    return id;
  }
  std::string reserve() { return queue.reserve(engine().connect()); }
  // The client that holds the leases with this secret since before the start.
  ClientId former(const std::string& secret = "s") {
    const auto& all = engine().former_workers();
    const auto found = std::find_if(all.begin(), all.end(), [&](const FormerWorker& former) {
      return former.secret == secret;
    });
    return found == all.end() ? 0 : found->client;
  }
  std::size_t stored() { return queue.store().recover().leases.size(); }

  VirtualQueue queue;
};

TEST_F(EngineLeases, GoOnOverARestartUntilTheirTimeIsOver) {
  const JobId id = lease(10'000);
  queue.restart(4'000);
  EXPECT_EQ(engine().holder_of(id), former());
  EXPECT_EQ(reserve(), "TIMED_OUT");
  queue.pass(5'999);
  EXPECT_EQ(reserve(), "TIMED_OUT") << "not a millisecond early";
  queue.pass(2);
  EXPECT_EQ(reserve(), "body");
}

TEST_F(EngineLeases, GoOnOverACrashOfTheMachine) {
  const JobId id = lease(60'000);
  queue.crash(10'000);
  EXPECT_EQ(engine().holder_of(id), former());
  EXPECT_TRUE(engine().remove(former(), queue.now(), id).done);
  EXPECT_EQ(stored(), 0U);
}

TEST_F(EngineLeases, WithOneSecretAreOneWorkersAfterARestart) {
  const JobId one = lease(60'000);
  const JobId two = lease(60'000);
  const JobId other = lease(60'000, "t");
  queue.restart();
  EXPECT_EQ(engine().former_workers().size(), 2U);
  EXPECT_EQ(engine().holder_of(one), former());
  EXPECT_EQ(engine().holder_of(two), former());
  EXPECT_EQ(engine().holder_of(other), former("t"));
}

TEST_F(EngineLeases, BeginAnewWhenTheyAreExtended) {
  const JobId id = lease(10'000);
  queue.pass(8'000);
  queue.restart();
  EXPECT_EQ(engine().lease(former(), queue.now(), {&id, 1}, "s", 10'000).jobs.size(), 1U);
  queue.pass(9'000);
  queue.restart();
  EXPECT_EQ(engine().holder_of(id), former());
  queue.pass(1'002);
  EXPECT_EQ(reserve(), "body");
}

TEST_F(EngineLeases, EndWithTheWorkAndLeaveNothing) {
  const JobId done = lease(60'000);
  const JobId released = lease(60'000);
  const JobId failed = lease(60'000);
  const JobId buried = lease(60'000);
  EXPECT_EQ(stored(), 4U);
  queue.restart();
  const ClientId worker = former();
  EXPECT_TRUE(engine().remove(worker, queue.now(), done).done);
  EXPECT_TRUE(engine().release(worker, queue.now(), released, 0, kHour).done);
  EXPECT_EQ(engine().fail(worker, queue.now(), failed, {.delay = kHour}).result,
            FailOutcome::Result::kAgain);
  EXPECT_TRUE(engine().bury(worker, queue.now(), buried, 0).done);
  EXPECT_EQ(stored(), 0U);
  EXPECT_FALSE(engine().holds_jobs(worker));
  queue.restart();
  EXPECT_TRUE(engine().former_workers().empty());
  engine().check_invariants();
}

TEST_F(EngineLeases, CountAsRunningAfterARestart) {
  engine().set_tube(queue.now(), "default", {.limits = {.max_running = 1}});
  lease(60'000);
  queue.put(engine().connect(), "next");
  queue.restart();
  EXPECT_EQ(reserve(), "TIMED_OUT") << "one runs";
  queue.pass(60'001);
  EXPECT_NE(reserve(), "TIMED_OUT");
}

// The attempt fails when the server finds out, and once.
TEST_F(EngineLeases, ThatRanOutMeanwhileAreOneFailedAttempt) {
  engine().set_tube(queue.now(), "default", {.retry = {.max_attempts = 5}});
  const JobId id = lease(10'000);
  for (int n = 0; n < 3; ++n) {
    queue.restart(20'000);
    queue.pass(1);
    EXPECT_EQ(engine().job_stats(queue.now(), id)->record.extras->attempts, 1U) << n;
  }
  EXPECT_EQ(reserve(), "body");
  EXPECT_EQ(stored(), 0U);
}

TEST_F(EngineLeases, ThatRanOutWithoutAPolicyMakeTheJobReady) {
  lease(10'000);
  queue.restart(20'000);
  queue.pass(1);
  EXPECT_EQ(reserve(), "body");
}

// What the store has of the lease goes with the next append, before the job may become another.
TEST_F(EngineLeases, ThatRanOutSayNothingOfTheJobLater) {
  const JobId id = lease(10'000);
  queue.pass(10'001);
  engine().set_tube(queue.now(), "default", {.retry = {.max_attempts = 1}});
  EXPECT_EQ(stored(), 0U);
  EXPECT_EQ(engine().patch(queue.now(), id, {.due_in = kDay}).result, ChangeOutcome::Result::kDone);
  queue.restart();
  queue.pass(1);
  const auto stats = engine().job_stats(queue.now(), id);
  EXPECT_EQ(stats->state, JobState::kDelayed);
  EXPECT_EQ(stats->record.extras->attempts, 0U);
}

TEST_F(EngineLeases, ThatAreGivenBackAreNotStoredLonger) {
  const JobId id = lease(kHour);
  EXPECT_TRUE(engine().give_back(*engine().holder_of(id), queue.now(), id));
  queue.put(engine().connect(), "another");
  EXPECT_EQ(stored(), 0U);
  EXPECT_EQ(reserve(), "body");
}

// For a minute after a boot nobody knows how long the machine was off.
TEST_F(EngineLeases, TakenRightAfterABootLastNoLongerThanTheirTime) {
  queue.put(engine().connect(), "later", {.due_in = 30 * kDay});
  queue.crash(3 * kDay);
  const JobId id = lease(60'000);
  queue.restart();
  EXPECT_TRUE(engine().holder_of(id));
  queue.pass(60'001);
  EXPECT_FALSE(engine().holder_of(id));
}

TEST_F(EngineLeases, AreNotMadeOfWhatTheClientDoesNotHold) {
  const JobId mine = lease(60'000);
  const ClientId other = engine().connect();
  EXPECT_TRUE(engine().lease(other, queue.now(), {&mine, 1}, "t", {}).jobs.empty());
  queue.restart();
  EXPECT_EQ(engine().holder_of(mine), former("s"));
}

TEST_F(EngineLeases, AFailedAppendMakesNone) {
  const ClientId client = engine().connect();
  const JobId id = queue.put(client, "body");
  EXPECT_EQ(queue.reserve(client), "body");
  queue.store().faults.appends = true;
  EXPECT_THROW(engine().lease(client, queue.now(), {&id, 1}, "s", {}), StoreError);
  queue.store().faults.appends = false;
  queue.restart();
  EXPECT_TRUE(engine().former_workers().empty());
  EXPECT_EQ(reserve(), "body");
}

TEST_F(EngineLeases, EndACancelledJobWhenTheyAreOver) {
  const JobId id = lease(60'000);
  EXPECT_EQ(engine().cancel(queue.now(), id, true).result, ChangeOutcome::Result::kAsked);
  queue.restart();
  EXPECT_TRUE(engine().cancel_asked(former(), id));
  queue.pass(60'001);
  EXPECT_EQ(reserve(), "TIMED_OUT");
  EXPECT_EQ(stored(), 0U);
}

struct Held {
  std::string secret;
  UtcMs until = 0;
};
using Model = std::map<JobId, std::optional<Held>>;

// An append leaves no lease in the store that does not go on.
void expect_stored(VirtualQueue& queue, const Model& model) {
  std::map<JobId, std::string> stored;
  for (const LeaseRecord& lease : queue.store().recover().leases) stored[lease.job] = lease.secret;
  std::map<JobId, std::string> held;
  for (const auto& [id, lease] : model)
    if (lease) held[id] = lease->secret;
  EXPECT_EQ(stored, held);
}

// Against a plain model: which jobs are held and by whom, and what is stored, over restarts at any
// time.
TEST(EngineLeasesAtRandom, AgreeWithAModel) {
  std::mt19937_64 random(seed_or(1));
  const auto pick = [&random](std::uint64_t n) { return random() % n; };
  for (int trial = 0; trial < 200; ++trial) {
    VirtualQueue queue;
    Model model;
    std::uint64_t secrets = 0;
    const auto client_of = [&](const std::string& secret, JobId id) {
      const auto holder = queue.engine().holder_of(id);
      EXPECT_TRUE(holder) << secret << " does not hold " << id;
      return holder.value_or(0);
    };
    for (int step = 0; step < 100; ++step) {
      for (auto& [id, held] : model)
        if (held && held->until < queue.utc()) held.reset();
      // At the very millisecond both are right.
      const bool is_even = std::none_of(model.begin(), model.end(), [&](const auto& each) {
        return each.second && each.second->until == queue.utc();
      });
      const ClientId client = queue.engine().connect();
      const std::uint64_t what = is_even ? pick(7) : 6;
      if (what == 0) {
        model[queue.put(client, "b")];
        expect_stored(queue, model);
      }
      if (what == 1) {
        const auto got = queue.engine().reserve(client, queue.now(), 0);
        ASSERT_TRUE(got);
        const bool any =
            std::any_of(model.begin(), model.end(), [](const auto& each) { return !each.second; });
        ASSERT_EQ(got->kind == Delivery::Kind::kReserved, any);
        if (any) {
          ASSERT_FALSE(model.at(got->job.id)) << "job " << got->job.id << " is held";
          const Millis time = 1'000 + pick(20'000);
          const std::string secret = std::to_string(++secrets);
          queue.engine().lease(client, queue.now(), {&got->job.id, 1}, secret, time);
          model.at(got->job.id) = Held{.secret = secret, .until = queue.utc() + time};
          continue;  // the client stays
        }
      }
      if (what >= 2 && what <= 4 && !model.empty()) {
        auto at = model.begin();
        std::advance(at, pick(model.size()));
        if (at->second) {
          const JobId id = at->first;
          const ClientId holder = client_of(at->second->secret, id);
          if (what == 2) {
            ASSERT_TRUE(queue.engine().remove(holder, queue.now(), id).done);
            model.erase(at);
          } else if (what == 3) {
            ASSERT_TRUE(queue.engine().release(holder, queue.now(), id, 0, 0).done);
            at->second.reset();
          } else {
            const Millis time = 1'000 + pick(20'000);
            queue.engine().lease(holder, queue.now(), {&id, 1}, at->second->secret, time);
            at->second->until = queue.utc() + time;
          }
        }
      }
      if (what == 5) queue.restart(pick(3) == 0 ? pick(30'000) : 0);
      if (what == 6) queue.pass(1 + pick(5'000));
      if (what != 5) queue.engine().disconnect(client, queue.now());
      queue.engine().advance(queue.now());
    }
    queue.engine().check_invariants();
  }
}

TEST(LeasesOnDisk, AreFoundAgain) {
  const TemporaryDirectory directory;
  const LeaseRecord lease{
      .job = 7, .secret = std::string("a\0b", 3), .worker = "w", .until = 99, .time = 5};
  {
    DiskStore store(directory / "data", {});
    store.append({.jobs = {}, .leases = {{7, lease}, {8, lease}}, .tubes = {}, .watermarks = {}});
    store.append({.jobs = {}, .leases = {{8, {}}}, .tubes = {}, .watermarks = {}});
    store.sync();
  }
  EXPECT_EQ(DiskStore(directory / "data", {}).recover().leases, std::vector{lease});
}

TEST(LeasesOnDisk, ThatCannotBeReadDoNotKeepAStartFromTheOthers) {
  const TemporaryDirectory directory;
  const LeaseRecord whole{.job = 8, .secret = "s", .worker = "w", .until = 99, .time = 5};
  {
    DiskStore store(directory / "data", {});
    const LeaseRecord no_secret{.job = 7};
    store.append(
        {.jobs = {}, .leases = {{7, no_secret}, {8, whole}}, .tubes = {}, .watermarks = {}});
    store.sync();
  }
  EXPECT_EQ(DiskStore(directory / "data", {}).recover().leases, std::vector{whole});
}

}  // namespace
}  // namespace carillon::queue
