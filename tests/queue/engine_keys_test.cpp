// Jobs that have keys: what a put with a key meets, look-ups, cancel and patch, and keys that count
// though their jobs are gone.
// Rows Q1, Q2 and Q3 of the product's table.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

using Result = PutOutcome::Result;
using Changed = ChangeOutcome::Result;

class EngineKeysTest : public EngineTest {
 protected:
  PutOutcome put(std::string_view key, std::string_view body, OnConflict on_conflict = {},
                 Millis due_in = 0, Millis window = 0) {
    return engine.put(
        producer, queue.now(),
        {.due_in = due_in, .key = key, .on_conflict = on_conflict, .key_window = window}, body);
  }
  std::string body(JobId id) { return queue.body(engine.peek(queue.now(), id)); }
  UtcMs due(JobId id) { return engine.job_stats(queue.now(), id)->record.due; }
  bool remove(JobId id) { return engine.remove(worker, queue.now(), id).done; }
};

TEST_F(EngineKeysTest, TheSecondPutGetsTheIdOfTheFirst) {
  EXPECT_EQ(put("invoice-7", "a").id, 1U);
  const PutOutcome second = put("invoice-7", "b");
  EXPECT_EQ(second.result, Result::kExists);
  EXPECT_EQ(second.id, 1U);
  EXPECT_EQ(body(1), "a");
  EXPECT_EQ(put("invoice-8", "c").id, 2U);
  EXPECT_EQ(engine.job_with_key(producer, "invoice-7"), 1U);
  EXPECT_EQ(engine.job_with_key(producer, "invoice-9"), std::nullopt);
  EXPECT_EQ(counts().ready, 2U);
}

TEST_F(EngineKeysTest, AnAnswerOfAJobThatIsNotDurableWaitsForIt) {
  const PutOutcome first = put("k", "a");
  EXPECT_EQ(put("k", "b").durable_at, first.durable_at);
}

TEST_F(EngineKeysTest, EachTubeHasItsOwnKeys) {
  put("k", "a");
  engine.use(producer, "other");
  EXPECT_EQ(put("k", "b").result, Result::kInserted);
  EXPECT_EQ(engine.job_with_key(producer, "k"), 2U);
  EXPECT_EQ(engine.job_with_key(worker, "k"), 1U);
}

TEST_F(EngineKeysTest, AttributesStayWithTheirJob) {
  engine.put(producer, queue.now(), {.key = "k", .attributes = "a=1"}, "x");
  queue.restart();
  const ClientId again = queue.engine().connect();
  EXPECT_EQ(queue.engine().job_stats(queue.now(), 1)->record.extras->attributes, "a=1");
  const auto put = [&](std::string_view text) {
    return queue.engine().put(again, queue.now(),
                              {.key = "k", .on_conflict = OnConflict::kReplace, .attributes = text},
                              "y");
  };
  EXPECT_EQ(put("b=2").result, Result::kReplaced);
  const auto now = [&] { return queue.engine().job_stats(queue.now(), 1)->record.extras; };
  EXPECT_EQ(now()->attributes, "b=2");
  queue.engine().patch(queue.now(), 1, {.priority = 3});
  EXPECT_EQ(now()->attributes, "b=2");
  queue.engine().patch(queue.now(), 1, {.attributes = "c=3"});
  EXPECT_EQ(now()->attributes, "c=3");
  EXPECT_EQ(put("").result, Result::kReplaced);
  EXPECT_EQ(now()->attributes, "");
  const std::string large(kMaxAttributes + 1, 'x');
  EXPECT_THROW(put(large), std::invalid_argument);
  EXPECT_THROW(queue.engine().patch(queue.now(), 1, {.attributes = large}), std::invalid_argument);
}

TEST_F(EngineKeysTest, AKeyIsFreeWhenItsJobIsGone) {
  put("k", "a");
  EXPECT_TRUE(remove(1));
  EXPECT_EQ(engine.job_with_key(producer, "k"), std::nullopt);
  EXPECT_EQ(put("k", "b").result, Result::kInserted);
}

TEST_F(EngineKeysTest, AKeyCountsForItsWindowWhenItsJobIsGone) {
  put("k", "a", {}, 0, 5'000);
  EXPECT_TRUE(remove(1));
  EXPECT_EQ(engine.job_with_key(producer, "k"), std::nullopt);
  queue.pass(4'999);
  EXPECT_EQ(put("k", "b").result, Result::kExists);
  EXPECT_EQ(put("k", "b", OnConflict::kIgnore).id, 1U);
  queue.pass(1);
  EXPECT_EQ(put("k", "b").result, Result::kInserted);
}

// A producer that puts the job again must not be told that it is there.
TEST_F(EngineKeysTest, AJobThatWasNotDoneLeavesNoWindow) {
  constexpr Millis kWindow = 60'000;
  const auto is_free = [&] {
    return put("k", "b", {}, 60'000, kWindow).result == Result::kInserted;
  };
  put("k", "a", {}, 60'000, kWindow);
  EXPECT_EQ(engine.cancel(queue.now(), 1).result, Changed::kDone);
  EXPECT_TRUE(is_free()) << "cancelled while it was delayed";
  engine.kick_job(queue.now(), 2);
  EXPECT_EQ(engine.cancel(queue.now(), 2).result, Changed::kDone);
  EXPECT_TRUE(is_free()) << "cancelled while it was ready";
  EXPECT_TRUE(remove(3));
  EXPECT_TRUE(is_free()) << "deleted while it was delayed";
  EXPECT_EQ(engine.bury_job(queue.now(), 4).result, Changed::kDone);
  EXPECT_TRUE(remove(4));
  EXPECT_TRUE(is_free()) << "deleted while it was buried";
  JobBulk bulk{.action = JobBulk::Action::kCancel, .list = {.tube = "default"}};
  while (!bulk.ended()) engine.change_jobs(queue.now(), bulk);
  EXPECT_EQ(bulk.changed, 1U);
  EXPECT_TRUE(is_free()) << "cancelled with others";
  EXPECT_EQ(queue.store().scan_ended_keys(0, 9).size(), 0U);
  queue.restart(0);
  queue.engine().check_invariants();
}

TEST_F(EngineKeysTest, AJobThatHasExpiredLeavesNoWindow) {
  const PutOrder order{.key = "k", .key_window = 60'000, .expires_in = 1'000};
  engine.put(producer, queue.now(), order, "a");
  queue.pass(2'000);
  EXPECT_FALSE(engine.peek(queue.now(), 1));
  EXPECT_EQ(put("k", "b").result, Result::kInserted);
}

TEST_F(EngineKeysTest, AJobWhoseCancelWasAskedForIsGoneHoweverItEndsAndLeavesNoWindow) {
  using End = std::function<void(JobId)>;
  const std::vector<std::pair<const char*, End>> ends = {
      {"release", [&](JobId id) { engine.release(worker, queue.now(), id, 0, 0); }},
      {"bury", [&](JobId id) { engine.bury(worker, queue.now(), id, 0); }},
      {"fail", [&](JobId id) { engine.fail(worker, queue.now(), id, {}); }},
      {"delete", [&](JobId id) { engine.remove(worker, queue.now(), id); }},
      {"delete of many", [&](JobId id) { engine.remove_all(worker, queue.now(), {{id}}); }},
      {"release of many",
       [&](JobId id) { engine.release_all(worker, queue.now(), {{id}}, std::nullopt, 0); }},
      {"give back", [&](JobId id) { engine.give_back(worker, queue.now(), id); }},
      {"ttr", [&](JobId) { queue.pass(120'000); }},
      {"lost worker",
       [&](JobId) {
         engine.disconnect(worker, queue.now());
         worker = engine.connect();
       }},
  };
  for (const auto& [name, end] : ends) {
    const PutOutcome first = put("k", "a", {}, 0, 600'000);
    ASSERT_EQ(first.result, Result::kInserted) << name;
    EXPECT_EQ(queue.reserve(worker), "a");
    EXPECT_EQ(engine.cancel(queue.now(), first.id, true).result, Changed::kAsked);
    end(first.id);
    EXPECT_FALSE(engine.peek(queue.now(), first.id)) << name;
  }
  const PutOutcome last = put("k", "b");
  EXPECT_EQ(last.result, Result::kInserted);
  EXPECT_EQ(queue.reserve(worker), "b");
  EXPECT_EQ(engine.cancel(queue.now(), last.id, true).result, Changed::kAsked);
  queue.restart();
  queue.pass(1);
  EXPECT_FALSE(queue.engine().peek(queue.now(), last.id)) << "the server was started anew";
}

// What a client that does not hold the job deletes may have been done: by a worker whose time has
// run out.
TEST_F(EngineKeysTest, AReadyJobThatIsDeletedCountsAsDone) {
  put("k", "a", {}, 0, 600'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  queue.pass(61'000);
  EXPECT_TRUE(remove(1));
  EXPECT_EQ(put("k", "b").owner, KeyOwner::kDone);
}

TEST_F(EngineKeysTest, APutIsToldTheStateOfTheJobThatHasItsKey) {
  const auto owner = [&] {
    const PutOutcome put = this->put("k", "b");
    EXPECT_EQ(put.result, Result::kExists);
    return put.owner;
  };
  engine.put(producer, queue.now(),
             {.due_in = 1'000, .key = "k", .key_window = 60'000, .retry = {.max_attempts = 1}},
             "a");
  EXPECT_EQ(owner(), KeyOwner::kDelayed);
  queue.pass(1'000);
  EXPECT_EQ(owner(), KeyOwner::kReady);
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(owner(), KeyOwner::kReserved);
  EXPECT_EQ(put("k", "b", OnConflict::kReplace).owner, KeyOwner::kReserved);
  engine.bury(worker, queue.now(), 1, 0);
  EXPECT_EQ(owner(), KeyOwner::kBuried);
  engine.kick_job(queue.now(), 1);
  EXPECT_EQ(queue.reserve(worker), "a");
  engine.fail(worker, queue.now(), 1, {});
  EXPECT_EQ(owner(), KeyOwner::kDead);
  EXPECT_EQ(put("l", "b").owner, KeyOwner::kNone);
  engine.kick_job(queue.now(), 1);
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_TRUE(remove(1));
  EXPECT_EQ(owner(), KeyOwner::kDone);
}

// It is deleted whatever comes of the attempt: its producer must not believe that it will run.
TEST_F(EngineKeysTest, AJobWhoseCancelWasAskedForDoesNotStandForAnother) {
  put("k", "a", {}, 0, 600'000);
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(put("k", "b").result, Result::kExists);
  EXPECT_EQ(engine.cancel(queue.now(), 1, true).result, Changed::kAsked);
  for (const OnConflict how : {OnConflict::kReject, OnConflict::kIgnore, OnConflict::kReplace})
    EXPECT_EQ(put("k", "b", how).result, Result::kReserved);
  queue.restart();
  const ClientId again = queue.engine().connect();
  EXPECT_EQ(queue.engine().put(again, queue.now(), {.key = "k"}, "b").result, Result::kInserted);
}

// A clock that was just set forward says that it has expired, and is perhaps wrong.
TEST_F(EngineKeysTest, AJobThatHasExpiredAndIsNotGoneYetDoesNotStandForAnother) {
  engine.put(producer, queue.now(), {.key = "k", .expires_at = queue.utc() + 3'600'000}, "a");
  EXPECT_EQ(put("k", "b").result, Result::kExists);
  queue.step_wall_clock(2 * Step::kHour);
  queue.pass(0);
  queue.pass(1);
  EXPECT_EQ(put("k", "b").result, Result::kReserved);
  queue.step_wall_clock(-2 * Step::kHour);
  queue.pass(0);
  queue.pass(1);
  EXPECT_EQ(put("k", "b").result, Result::kExists);
}

TEST_F(EngineKeysTest, ABatchIsAnsweredAgainWithTheStatesOfThen) {
  put("k", "a", {}, 60'000);
  const NewJob job{.order = {.key = "k", .on_conflict = OnConflict::kIgnore}, .body = "b"};
  const BatchOrder once{.once = "token"};
  EXPECT_EQ(engine.put_all(producer, queue.now(), {&job, 1}, once).jobs.front().owner,
            KeyOwner::kDelayed);
  engine.cancel(queue.now(), 1);
  queue.restart(0);
  const ClientId again = queue.engine().connect();
  const BatchOutcome answer = queue.engine().put_all(again, queue.now(), {&job, 1}, once);
  EXPECT_EQ(answer.result, BatchOutcome::Result::kAlready);
  EXPECT_EQ(answer.jobs.front().owner, KeyOwner::kDelayed);
}

TEST_F(EngineKeysTest, KeysThatHaveEndedAreForgottenSoonAndTheirTubesToo) {
  engine.use(producer, "mail");
  for (int n = 0; n < 300; ++n) {
    const JobId id = put("k" + std::to_string(n), "a", {}, 0, 2'000).id;
    EXPECT_TRUE(remove(id));
  }
  engine.use(producer, "default");
  EXPECT_TRUE(engine.tube_stats(queue.now(), "mail")) << "its keys still count";
  queue.restart(1'000);
  queue.engine().check_invariants();
  EXPECT_TRUE(queue.engine().tube_stats(queue.now(), "mail"));
  while (queue.engine().next_wakeup() && queue.utc() < 1'700'000'010'000) queue.pass(100);
  EXPECT_EQ(queue.store().scan_ended_keys(0, 999).size(), 0U);
  EXPECT_FALSE(queue.engine().tube_stats(queue.now(), "mail"));
  EXPECT_EQ(queue.engine().next_wakeup(), std::nullopt) << "an engine with nothing to do sleeps";
}

TEST_F(EngineKeysTest, AReplacementKeepsTheIdAndGetsAllElseAnew) {
  put("k", "a", {}, 60'000);
  EXPECT_EQ(state(1), JobState::kDelayed);
  queue.pass(10);
  const PutOutcome second = put("k", "b", OnConflict::kReplace);
  EXPECT_EQ(second.result, Result::kReplaced);
  EXPECT_EQ(second.id, 1U);
  EXPECT_EQ(state(1), JobState::kReady);
  EXPECT_EQ(queue.reserve(worker), "b");
  EXPECT_EQ(put("k", "c", OnConflict::kReplace).result, Result::kReserved);
  EXPECT_EQ(engine.job_with_key(producer, "k"), 1U);
  EXPECT_TRUE(remove(1));
  EXPECT_EQ(queue.store().bytes(), 0U) << "no body is left";
}

TEST_F(EngineKeysTest, AReplacementMayKeepTheDueTime) {
  put("k", "a", {}, 60'000);
  const UtcMs before = due(1);
  queue.pass(10);
  put("k", "b", OnConflict::kKeepDue, 1'000);
  EXPECT_EQ(due(1), before);
  EXPECT_EQ(body(1), "b");
}

TEST_F(EngineKeysTest, ADebounceIsDueNoEarlierThanBefore) {
  put("k", "a", {}, 60'000);
  const UtcMs before = due(1);
  queue.pass(10);
  put("k", "b", OnConflict::kDebounce, 1'000);
  EXPECT_EQ(due(1), before);
  put("k", "c", OnConflict::kDebounce, 60'000);
  EXPECT_EQ(due(1), before + 10);
  EXPECT_EQ(body(1), "c");
}

TEST_F(EngineKeysTest, AFarJobIsReplacedToo) {
  put("k", "a", {}, kDay);
  put("k", "b", OnConflict::kReplace, 2 * kDay);
  EXPECT_EQ(engine.stats().jobs.loaded, 0U);
  EXPECT_EQ(body(1), "b");
  put("k", "c", OnConflict::kReplace, 10);
  EXPECT_EQ(engine.stats().jobs.loaded, 1U);
  queue.pass(11);
  EXPECT_EQ(queue.reserve(worker), "c");
}

TEST_F(EngineKeysTest, ALargeBodyTakesThePlaceOfAnother) {
  const std::string large(3 * kBodyPiece, 'l');
  put("k", "a");
  EXPECT_EQ(put("k", large).result, Result::kExists);
  EXPECT_EQ(put("k", large, OnConflict::kReplace).result, Result::kReplaced);
  const JobView view = *engine.peek(queue.now(), 1);
  EXPECT_EQ(whole_body(queue.store(), view.body_id, view.body_bytes), large);
  put("k", "b", OnConflict::kReplace);
  EXPECT_EQ(body(1), "b");
  EXPECT_TRUE(remove(1));
  EXPECT_EQ(queue.store().bytes(), 0U);
}

TEST_F(EngineKeysTest, AFailedAppendLeavesTheKeyAsItWas) {
  put("k", "a");
  queue.store().faults.appends = true;
  EXPECT_THROW(put("k", "b", OnConflict::kReplace), StoreError);
  EXPECT_THROW(put("l", "b"), StoreError);
  queue.store().faults.appends = false;
  EXPECT_EQ(body(1), "a");
  EXPECT_EQ(engine.job_with_key(producer, "l"), std::nullopt);
  EXPECT_EQ(put("l", "c").result, Result::kInserted);
}

TEST_F(EngineKeysTest, ADebounceKnowsHowLateAJobIsWhileTheClockWasWrong) {
  queue.step_wall_clock(3'600'000);
  put("k", "a", {}, 600'000);  // in 10 minutes
  queue.step_wall_clock(-3'600'000);
  put("k", "b", OnConflict::kDebounce, 1'200'000);
  queue.pass(1'199'999);
  EXPECT_EQ(queue.reserve(worker), "TIMED_OUT");
  queue.pass(1);
  EXPECT_EQ(queue.reserve(worker), "b");
}

TEST_F(EngineKeysTest, WhatIsTooLargeIsRefused) {
  EXPECT_THROW(put(std::string(kMaxKey + 1, 'k'), "a"), std::invalid_argument);
  EXPECT_EQ(put(std::string(kMaxKey, 'k'), "a").id, 1U);
  const std::string large(kBodyPiece + 1, 'l');
  EXPECT_THROW(engine.patch(queue.now(), 1, {.body = large}), std::invalid_argument);
  const std::vector<NewJob> jobs{{.order = {}, .body = large}};
  EXPECT_THROW(engine.put_all(producer, queue.now(), jobs), std::invalid_argument);
}

// --- Cancel and patch.

TEST_F(EngineKeysTest, AJobIsCancelledUnlessItIsReserved) {
  put("k", "a", {}, 60'000);
  put("l", "b");
  EXPECT_EQ(engine.cancel(queue.now(), 1).result, Changed::kDone);
  EXPECT_EQ(engine.cancel(queue.now(), 1).result, Changed::kNone);
  EXPECT_EQ(queue.reserve(worker), "b");
  EXPECT_EQ(engine.cancel(queue.now(), 2).result, Changed::kReserved);
  EXPECT_EQ(state(2), JobState::kReserved);
}

TEST_F(EngineKeysTest, APatchChangesWhatItNames) {
  put("k", "a", {}, 60'000);
  EXPECT_EQ(engine.patch(queue.now(), 1, {.priority = 7}).result, Changed::kDone);
  const auto stats = *engine.job_stats(queue.now(), 1);
  EXPECT_EQ(stats.record.priority, 7U);
  EXPECT_EQ(stats.record.due, queue.utc() + 60'000);
  EXPECT_EQ(body(1), "a");

  EXPECT_EQ(engine.patch(queue.now(), 1, {.due_in = 0, .body = "b"}).result, Changed::kDone);
  EXPECT_EQ(state(1), JobState::kReady);
  EXPECT_EQ(body(1), "b");
  EXPECT_EQ(engine.job_with_key(producer, "k"), 1U);
  EXPECT_EQ(engine.patch(queue.now(), 1, {.due_at = kLastDue + 1}).result, Changed::kTooFar);
  EXPECT_EQ(queue.reserve(worker), "b");
  EXPECT_EQ(engine.patch(queue.now(), 1, {.priority = 8}).result, Changed::kReserved);
  EXPECT_EQ(engine.patch(queue.now(), 2, {.priority = 8}).result, Changed::kNone);
}

TEST_F(EngineKeysTest, BuryOfAJobThatNobodyHas) {
  put("k", "a");
  put("far", "b", {}, 3'600'000);
  put("held", "c");
  EXPECT_EQ(queue.reserve(worker), "a");
  EXPECT_EQ(engine.bury_job(queue.now(), 1).result, Changed::kReserved);
  EXPECT_EQ(engine.bury_job(queue.now(), 2).result, Changed::kDone) << "it is in the store alone";
  EXPECT_EQ(engine.bury_job(queue.now(), 3, 7).result, Changed::kDone);
  EXPECT_EQ(engine.bury_job(queue.now(), 3, 8).result, Changed::kDone) << "it is buried";
  EXPECT_EQ(engine.bury_job(queue.now(), 4).result, Changed::kNone);
  EXPECT_EQ(counts().buried, 2U);
  const JobRecord record = engine.job_stats(queue.now(), 3)->record;
  EXPECT_EQ(record.priority, 7U);
  EXPECT_EQ(record.history, (JobHistory{.buries = 1}));
  EXPECT_EQ(engine.job_with_key(producer, "far"), 2U);
  EXPECT_TRUE(engine.kick_job(queue.now(), 2).done);
  EXPECT_EQ(queue.reserve(worker), "b");
  engine.check_invariants();
}

TEST_F(EngineKeysTest, ATubeThatIsDrainedTakesNoJobs) {
  put("k", "a", {}, 0, 1'000);
  engine.set_tube(queue.now(), "default", {.refuses_puts = true});
  EXPECT_EQ(put("k", "b").result, Result::kExists) << "it may be the first put, once more";
  EXPECT_EQ(put("k", "b", OnConflict::kReplace).result, Result::kDraining);
  EXPECT_EQ(put("l", "b").result, Result::kDraining);
  EXPECT_EQ(put("", "b").result, Result::kDraining);
  const NewJob job{.order = {}, .body = "c"};
  const BatchOutcome batch = engine.put_all(producer, queue.now(), {&job, 1});
  EXPECT_EQ(batch.result, BatchOutcome::Result::kRefused);
  EXPECT_EQ(batch.jobs.front().result, Result::kDraining);
  EXPECT_EQ(body(1), "a");
  queue.restart(0);
  Engine& again = queue.engine();
  const ClientId client = again.connect();
  EXPECT_EQ(again.put(client, queue.now(), {}, "b").result, Result::kDraining) << "it is stored";
  again.set_tube(queue.now(), "default", {});
  EXPECT_EQ(again.put(client, queue.now(), {}, "b").result, Result::kInserted);
}

}  // namespace
}  // namespace carillon::queue
