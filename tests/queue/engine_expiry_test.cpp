// Jobs that expire, and jobs that are spread: what happens at the edges. The simulator's
// model knows the rest.
// Row Q12 of the product's table.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "carillon/queue/never_runs.h"
#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineExpiry : public EngineTest {
 protected:
  JobId put(std::string_view body, PutOrder order) { return queue.put(producer, body, order); }
  bool exists(JobId id) { return engine.peek(queue.now(), id).has_value(); }
};

TEST_F(EngineExpiry, AReadyJobGoesInTheMillisecondInWhichItExpires) {
  const JobId id = put("a", {.expires_in = 100});
  queue.pass(99);
  EXPECT_TRUE(exists(id));
  queue.pass(1);
  EXPECT_FALSE(exists(id));
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  EXPECT_EQ(counts().ready + counts().reserved + counts().delayed, 0U);
}

TEST_F(EngineExpiry, ADeadOneIsBuriedWithTheReason) {
  const JobId id = put("a", {.expires_in = 100, .at_expiry = AtExpiry::kDead});
  queue.pass(100);
  EXPECT_EQ(state(id), JobState::kBuried);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->record.extras->death, Death::kExpired);
}

// A patch gives a dead job another expiry, and a kick does not take it away.
TEST_F(EngineExpiry, AKickedOneExpiresWhenAPatchSaysSo) {
  const JobId id = put("a", {.expires_in = 100, .at_expiry = AtExpiry::kDead});
  queue.pass(100);
  engine.patch(queue.now(), id, {.expires_in = 1'000});
  ASSERT_TRUE(engine.kick_job(queue.now(), id).done);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->record.extras->expires, queue.utc() + 1'000);
  queue.pass(999);
  EXPECT_EQ(state(id), JobState::kReady);
  queue.pass(1);
  EXPECT_EQ(state(id), JobState::kBuried);
}

// Each way to say when it is due, with each way to say when it expires.
TEST_F(EngineExpiry, AJobThatWouldExpireBeforeItIsDueIsRefused) {
  int keys = 0;
  const auto is_refused = [this, &keys](const PutOrder& order) {
    const NewJob jobs[] = {{.order = {}, .body = "x"}, {.order = order, .body = "x"}};
    bool refused = false;
    try {
      engine.put_all(producer, queue.now(), jobs);
    } catch (const NeverRuns& error) {
      EXPECT_EQ(error.job, 1u);
      refused = true;
    }
    PutOrder one = order;
    const std::string key = std::to_string(keys++);
    one.key = key;
    try {
      engine.put(producer, queue.now(), one, "x");
      EXPECT_FALSE(refused);
    } catch (const NeverRuns&) {
      EXPECT_TRUE(refused);
    }
    return refused;
  };
  const UtcMs now = queue.utc();
  for (const Millis due : {Millis{2}, kHour}) {
    for (const PutOrder& order : {PutOrder{.due_in = due}, PutOrder{.due_at = now + due},
                                  PutOrder{.due_in = due - 1, .spread = 2}}) {
      for (const Millis end : {Millis{1}, due - 1, due, due + 1, 2 * due}) {
        PutOrder in = order;
        in.expires_in = end;
        EXPECT_EQ(is_refused(in), end <= due) << due << " " << end;
        PutOrder at = order;
        at.expires_at = now + end;
        EXPECT_EQ(is_refused(at), end <= due) << due << " " << end;
      }
    }
  }
  EXPECT_TRUE(is_refused({.due_in = kHour, .expires_at = 1}));
  // It is ready at once: it expires, and nobody is surprised.
  EXPECT_FALSE(is_refused({.expires_at = 1}));
  EXPECT_FALSE(is_refused({.due_at = 2, .expires_at = 1}));
  EXPECT_FALSE(is_refused({.due_in = kHour, .expires_at = kNeverExpires}));
  EXPECT_FALSE(is_refused({.due_in = kHour, .expires_in = 1, .buried = true}));
}

TEST_F(EngineExpiry, ARefusalSaysBothTimesAndChangesNothing) {
  const JobId id = put("a", {.key = "k"});
  const std::string why =
      "the job would expire in 1800000 ms, and be due in 3600000 ms: no worker would get it";
  const auto told = [](auto change) {
    try {
      change();
    } catch (const NeverRuns& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const UtcMs now = queue.utc();
  EXPECT_EQ(told([&] { put("b", {.due_in = kHour, .expires_in = kHour / 2}); }), why);
  EXPECT_EQ(told([&] { put("b", {.due_at = now + kHour, .expires_in = kHour / 2}); }), why);
  EXPECT_EQ(told([&] { put("b", {.due_in = 1, .expires_at = now + kHour / 2, .spread = kHour}); }),
            why);
  for (const Patch& patch : {Patch{.due_in = kHour, .expires_in = kHour / 2},
                             Patch{.due_at = now + kHour, .expires_in = kHour / 2},
                             Patch{.due_in = kHour, .expires_at = now + kHour / 2}})
    EXPECT_EQ(told([&] { engine.patch(queue.now(), id, patch); }), why);
  EXPECT_EQ(state(id), JobState::kReady);
  EXPECT_EQ(counts().ready + counts().delayed, 1u);
}

// A worker released them to after that.
TEST_F(EngineExpiry, APutThatIsRepeatedTooLateLearnsThatItsJobIsThere) {
  PutOrder order{.due_in = 10 * kMinute, .key = "k", .expires_at = queue.utc() + 15 * kMinute};
  put("a", order);
  queue.pass(6 * kMinute);
  const PutOutcome again = engine.put(producer, queue.now(), order, "a");
  EXPECT_EQ(again.result, PutOutcome::Result::kExists);
  EXPECT_EQ(again.id, 1U);
  order.on_conflict = OnConflict::kReplace;
  EXPECT_THROW(engine.put(producer, queue.now(), order, "a"), NeverRuns);
  engine.check_invariants();
}

TEST_F(EngineExpiry, ADelayedOneIsGoneWhenItIsDue) {
  const auto released = [this](std::string_view body, Millis delay) {
    const JobId id = put(body, {.expires_in = 100});
    EXPECT_EQ(queue.reserve(worker), body);
    EXPECT_TRUE(engine.release(worker, queue.now(), id, 0, delay).done);
    return id;
  };
  const JobId near = released("a", 200);
  const JobId far = released("b", 86'400'000);
  queue.wait(worker);
  queue.pass(199);
  EXPECT_TRUE(exists(near));
  EXPECT_FALSE(engine.reserve_job(other, queue.now(), near)) << "no worker gets it";
  queue.pass(1);
  EXPECT_FALSE(exists(near));
  queue.pass(86'399'800);
  EXPECT_FALSE(exists(far));
  EXPECT_EQ(queue.deliveries(), Words{});
}

TEST_F(EngineExpiry, AWorkerKeepsTheJobAndItGoesWhenItComesBack) {
  const JobId id = put("a", {.ttr = 60'000, .expires_in = 100});
  EXPECT_EQ(queue.reserve(worker), "a");
  queue.pass(200);
  EXPECT_TRUE(engine.touch(worker, queue.now(), id).done);
  EXPECT_TRUE(engine.release(worker, queue.now(), id, 0, 0).done);
  queue.pass(1);
  EXPECT_FALSE(exists(id));
}

TEST_F(EngineExpiry, NoWorkerGetsOneOfAStormThatExpires) {
  for (int i = 0; i < 1'000; ++i) put("old", {.priority = 0, .expires_in = 100});
  put("new", {.priority = 1});
  queue.add_ns(100 * kMs);
  EXPECT_EQ(queue.reserve(worker), "new") << "though it is behind many";
  while (engine.next_wakeup() && *engine.next_wakeup() <= queue.now().mono_ns) queue.pass(0);
  EXPECT_EQ(counts().ready, 0U);
  EXPECT_EQ(counts().reserved, 1U);
}

TEST_F(EngineExpiry, NothingIsReadyBehindAStormThatExpires) {
  for (int i = 0; i < 1'000; ++i) put("old", {.priority = 0, .expires_in = 100});
  put("later", {.priority = 1, .due_in = 1'000});
  queue.add_ns(100 * kMs);
  EXPECT_EQ(engine.reserve_next(other, queue.now(), 1'000), std::nullopt) << "it never waits";
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  EXPECT_EQ(counts().ready, 0U);
}

// A wait that ends meanwhile goes on until it is known that there is nothing.
TEST_F(EngineExpiry, AWaitThatEndsInAStormThatExpiresGetsWhatIsReady) {
  for (int i = 0; i < 1'000; ++i) put("old", {.priority = 0, .expires_in = 100});
  put("new", {.priority = 1});
  engine.pause(queue.now(), "default", 100);
  queue.wait(worker, 100);
  queue.add_ns(100 * kMs);
  for (int i = 0; i < 100; ++i) queue.pass(0);
  EXPECT_EQ(queue.deliveries(), Words{"2:new"});
}

TEST_F(EngineExpiry, AWaitingClientIsServedBehindAStormThatExpires) {
  engine.pause(queue.now(), "default", 200);
  for (int i = 0; i < 1'000; ++i) put("old", {.priority = 0, .expires_in = 200});
  put("new", {.priority = 1});
  queue.wait(worker);
  queue.add_ns(200 * kMs);
  for (int i = 0; i < 100; ++i) queue.pass(0);
  EXPECT_EQ(queue.deliveries(), Words{"2:new"});
}

// 64 of them are taken away by their timers, and the next 16 by the reserve itself.
TEST_F(EngineExpiry, AReserveLooksBehindTheLastOneThatItTakesAway) {
  for (int i = 0; i < 64 + 16; ++i) put("old", {.priority = 0, .expires_in = 100});
  put("new", {.priority = 1});
  queue.add_ns(100 * kMs);
  const auto got = engine.reserve(worker, queue.now(), {});
  ASSERT_TRUE(got) << "it waits, and no timer is left that would end that";
  EXPECT_EQ(queue.word(*got), "new");
}

TEST_F(EngineExpiry, MoreHaveExpiredThanMayBeInMemoryAtOnce) {
  for (int i = 0; i < 30'000; ++i) put("a", {.expires_in = 100});
  const JobId id = put("b", {});
  queue.restart(200);
  EXPECT_LE(queue.engine().stats().jobs.loaded, 11'000U);
  for (int i = 0; i < 4'000; ++i) queue.pass(10);
  const ClientId client = queue.engine().connect();
  EXPECT_EQ(queue.engine().reserve(client, queue.now(), 0)->job.id, id);
  EXPECT_EQ(queue.engine().stats().jobs.loaded, 1U);
}

TEST_F(EngineExpiry, WhatCannotBeStoredIsTriedAgain) {
  const JobId id = put("a", {.expires_in = 100});
  queue.store().faults.appends = true;
  EXPECT_THROW(queue.pass(100), StoreError);
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  queue.store().faults = {};
  queue.pass(1'000);
  EXPECT_FALSE(exists(id));
}

TEST_F(EngineExpiry, BothEndWithTheYear9999) {
  const auto put_it = [&](const PutOrder& order) {
    return engine.put(producer, queue.now(), order, "a").result;
  };
  EXPECT_EQ(put_it({.expires_at = kLastDue}), PutOutcome::Result::kInserted);
  EXPECT_EQ(put_it({.expires_at = kLastDue + 1}), PutOutcome::Result::kTooFar);
  EXPECT_EQ(put_it({.expires_in = kLastDue}), PutOutcome::Result::kTooFar);
  EXPECT_EQ(put_it({.due_at = kLastDue, .spread = kLastDue}), PutOutcome::Result::kTooFar);
  EXPECT_EQ(put_it({.due_in = UINT64_MAX, .spread = UINT64_MAX}), PutOutcome::Result::kTooFar);
}

// --- Spread

TEST_F(EngineExpiry, SpreadJobsAreDueEvenlyAndNeverEarly) {
  std::map<UtcMs, int> due;
  for (int i = 0; i < 1'000; ++i) {
    const JobId id = put("a", {.due_in = 1'000, .spread = 10'000});
    const UtcMs at = engine.job_stats(queue.now(), id)->record.due - queue.utc();
    EXPECT_GE(at, 1'000U);
    EXPECT_LT(at, 11'000U);
    ++due[at / 1'000];
  }
  for (const auto& [second, jobs] : due) EXPECT_NEAR(jobs, 100, 40) << second;
  EXPECT_EQ(due.size(), 10U);
}

}  // namespace
}  // namespace carillon::queue
