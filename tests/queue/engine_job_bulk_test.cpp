// Changes of many jobs (job_bulk.h).
// Row Q14 of the product's table.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "carillon/queue/retry.h"
#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

using Action = JobBulk::Action;

JobBulk bulk_of(Action action, const JobFilter& filter = {}, const std::string& to = {}) {
  return {.action = action, .list = {.tube = "default", .filter = filter}, .to = to};
}

class JobBulks : public EngineTest {
 protected:
  // Carries out all of it. Returns how many jobs were changed.
  std::uint64_t run(JobBulk bulk) {
    while (!bulk.ended()) engine.change_jobs(queue.now(), bulk);
    left = bulk.left;
    return bulk.changed;
  }
  bool is_there(JobId id) { return engine.job_stats(queue.now(), id).has_value(); }
  std::string tube_of(JobId id) { return engine.job_stats(queue.now(), id)->tube; }

  std::uint64_t left = 0;
};

TEST_F(JobBulks, CancelsWhatIsNotReserved) {
  for (Millis i = 0; i < 100; ++i) queue.put(producer, "far", {.due_in = kHour + i});
  queue.put(producer, "ready");
  queue.put(producer, "ready too");
  queue.reserve(worker);
  EXPECT_EQ(run(bulk_of(Action::kCancel, {.states = kDelayed})), 100U);
  EXPECT_EQ(counts().delayed, 0U);
  EXPECT_EQ(run(bulk_of(Action::kCancel)), 1U);
  EXPECT_EQ(left, 1U);
  EXPECT_TRUE(is_there(101));
  EXPECT_FALSE(is_there(102));
}

TEST_F(JobBulks, ARetryBeginsTheAttemptsAnewAlsoOfADelayedJob) {
  const JobId id = queue.put(producer, "a", {.retry = {.max_attempts = 3, .backoff = kHour}});
  EXPECT_EQ(queue.reserve(worker), "a");
  engine.fail(worker, queue.now(), id, {});
  EXPECT_EQ(state(id), JobState::kDelayed);
  EXPECT_EQ(run(bulk_of(Action::kRetry, {.states = kDelayed})), 1U);
  EXPECT_EQ(state(id), JobState::kReady);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->record.extras->attempts, 0U);
  EXPECT_EQ(engine.story(queue.now(), id)->size(), 1U) << "its story goes on";
}

TEST_F(JobBulks, AStepIsOneAppend) {
  for (Millis i = 0; i < 100; ++i) queue.put(producer, "far", {.due_in = kHour + i});
  JobBulk bulk = bulk_of(Action::kCancel);
  const Sequence before = engine.last_sequence();
  engine.change_jobs(queue.now(), bulk);
  EXPECT_EQ(bulk.changed, kBulkStep);
  EXPECT_EQ(bulk.durable_at, before + 1);
  EXPECT_EQ(engine.last_sequence(), before + 1);
  queue.store().faults.appends = true;
  EXPECT_THROW(engine.change_jobs(queue.now(), bulk), StoreError);
  EXPECT_EQ(bulk.changed, kBulkStep);
  queue.store().faults.appends = false;
  queue.restart();
  while (!bulk.ended()) queue.engine().change_jobs(queue.now(), bulk);
  EXPECT_EQ(bulk.changed, 100U);
  EXPECT_EQ(queue.engine().stats(queue.now()).jobs.delayed, 0U);
}

TEST_F(JobBulks, ADryRunChangesNothing) {
  for (Millis i = 0; i < 100; ++i) queue.put(producer, "far", {.due_in = kHour + i});
  const Sequence before = engine.last_sequence();
  JobBulk dry = bulk_of(Action::kCancel, {.due_from = queue.utc() + kHour + 50});
  dry.dry_run = true;
  EXPECT_EQ(run(dry), 50U);
  EXPECT_EQ(engine.last_sequence(), before);
  EXPECT_EQ(counts().delayed, 100U);
}

TEST_F(JobBulks, StopsAtItsBoundAndGoesOn) {
  for (Millis i = 0; i < 100; ++i) queue.put(producer, "far", {.due_in = kHour + i});
  JobBulk bulk = bulk_of(Action::kCancel);
  bulk.bound = 40;
  EXPECT_EQ(run(bulk), 40U);
  while (!bulk.ended()) engine.change_jobs(queue.now(), bulk);
  EXPECT_FALSE(bulk.list.done);
  EXPECT_EQ(counts().delayed, 20U);
  JobBulk more = bulk_of(Action::kCancel);
  more.list.next = *to_cursor(to_text(bulk.list.next));
  EXPECT_EQ(run(more), 20U);
}

TEST_F(JobBulks, ARetryRevivesTheDead) {
  queue.put(producer, "dies", {.retry = {.max_attempts = 1}});
  queue.put(producer, "is buried");
  for (int i = 0; i < 2; ++i) queue.reserve(worker);
  engine.fail(worker, queue.now(), 1, {.error = "no"});
  engine.bury(worker, queue.now(), 2, 0);
  EXPECT_EQ(run(bulk_of(Action::kRetry, {.states = kDeadJobs})), 1U);
  EXPECT_EQ(state(1), JobState::kReady);
  EXPECT_EQ(engine.job_stats(queue.now(), 1)->record.extras->attempts, 0U);
  EXPECT_EQ(state(2), JobState::kBuried);
  EXPECT_EQ(run(bulk_of(Action::kRetry)), 1U);
  EXPECT_EQ(state(2), JobState::kReady);
}

// Each of them, and those that were buried for another reason stay.
TEST_F(JobBulks, ARetryOfThoseThatFailedForAReason) {
  const auto die = [this](std::string_view error) {
    queue.put(producer, "dies", {.retry = {.max_attempts = 1}});
    const auto got = engine.reserve(worker, queue.now(), 0);
    engine.fail(worker, queue.now(), got->job.id, {.error = error});
  };
  for (int i = 0; i < 40; ++i) die("no paper\ntray 2");
  for (int i = 0; i < 5; ++i) die("no ink");
  queue.put(producer, "is buried");  // 46
  queue.reserve(worker);
  engine.bury(worker, queue.now(), 46, 0);
  JobBulk bulk = bulk_of(Action::kRetry);
  bulk.reason = "no paper";
  queue.store().faults.story = 7;
  EXPECT_THROW(run(bulk), StoreError);
  queue.store().faults.story = 0;
  EXPECT_EQ(run(bulk), 40U);
  EXPECT_EQ(counts().buried, 6U);
  bulk.reason = "buried";
  EXPECT_EQ(run(bulk), 1U);
  EXPECT_EQ(state(46), JobState::kReady);
}

TEST_F(JobBulks, AReasonIsTheFirstLineThatWasSaid) {
  JobRecord job;
  job.burial = 1;
  EXPECT_EQ(reason_of(job, {}), "buried");
  std::vector<Attempt> story;
  const auto fail = [&](Ending ending, const std::string& error) {
    story.push_back({.at = 1, .ending = ending, .worker = "host-7", .error = error});
  };
  fail(Ending::kFailed, "first");
  fail(Ending::kFailed, "no paper\r\ntray 2");
  EXPECT_EQ(reason_of(job, story), "no paper");
  fail(Ending::kFailed, std::string(1'000, 'x'));
  EXPECT_EQ(reason_of(job, story), std::string(kMaxReason, 'x'));
  fail(Ending::kFailed, std::string(kMaxReason - 1, 'x') + "\u00e4");
  EXPECT_EQ(reason_of(job, story), std::string(kMaxReason - 1, 'x')) << "no half of a letter";
  fail(Ending::kTimedOut, "");
  EXPECT_EQ(reason_of(job, story), "timed out");
  JobExtras extras;
  extras.death = Death::kExpired;
  job.extras = detail::Rare(extras);
  EXPECT_EQ(reason_of(job, story), "expired");
}

class JobSpreads : public JobBulks {
 protected:
  // Spreads the jobs of the minute that begins in an hour.
  JobBulk spread(Millis over) {
    JobBulk bulk = bulk_of(Action::kSpread, {.due_from = begin, .due_before = begin + 60'000});
    bulk.over = over;
    return bulk;
  }
  UtcMs due(JobId id) { return engine.job_stats(queue.now(), id)->record.due; }

  const UtcMs begin = queue.utc() + kHour;
};

TEST_F(JobSpreads, DealsAStormOutEvenly) {
  for (int i = 0; i < 6'000; ++i) queue.put(producer, "x", {.due_in = kHour});
  const std::uint64_t changed = run(spread(kHour));
  EXPECT_GE(changed, 5'890U);  // each minute keeps one of its jobs
  EXPECT_LE(changed, 5'910U);
  std::map<UtcMs, int> minutes;
  for (JobId id = 1; id <= 6'000; ++id) {
    ASSERT_GE(due(id), begin);
    ++minutes[(due(id) - begin) / 60'000];
  }
  ASSERT_EQ(minutes.size(), 60U);
  for (const auto& [minute, jobs] : minutes) {
    EXPECT_GE(jobs, 95) << minute;
    EXPECT_LE(jobs, 105) << minute;
  }
  engine.check_invariants();
}

TEST_F(JobSpreads, ARepeatedSpreadChangesNothing) {
  for (Millis i = 0; i < 200; ++i) queue.put(producer, "x", {.due_in = kHour + 100 * i});
  JobBulk first = spread(kHour);
  for (int steps = 0; steps < 3; ++steps) engine.change_jobs(queue.now(), first);
  EXPECT_FALSE(first.ended());
  queue.restart();  // in the midst of it
  JobBulk again = spread(kHour);
  std::map<JobId, UtcMs> dues;
  while (!again.ended()) queue.engine().change_jobs(queue.now(), again);
  EXPECT_GT(again.changed, 0U);
  for (JobId id = 1; id <= 200; ++id)
    dues[id] = queue.engine().job_stats(queue.now(), id)->record.due;
  JobBulk third = spread(kHour);
  while (!third.ended()) queue.engine().change_jobs(queue.now(), third);
  EXPECT_EQ(third.changed, 0U);
  for (JobId id = 1; id <= 200; ++id) {
    EXPECT_EQ(queue.engine().job_stats(queue.now(), id)->record.due, dues[id]);
    EXPECT_GE(dues[id], begin + 100 * (id - 1)) << "never earlier";
    EXPECT_LT(dues[id], begin + kHour);
  }
  queue.engine().check_invariants();
}

TEST_F(JobSpreads, MeansDelayedJobsOfTheWindowAlone) {
  queue.put(producer, "before", {.due_in = kHour - 1});                             // 1
  queue.put(producer, "after", {.due_in = kHour + 60'000});                         // 2
  queue.put(producer, "ready");                                                     // 3
  queue.put(producer, "expires", {.due_in = kHour, .expires_in = kHour + 90'000});  // 4
  queue.put(producer, "far", {.due_in = kHour, .expires_in = 2 * kHour});           // 5
  EXPECT_EQ(run(spread(kHour)), 1U);
  EXPECT_EQ(left, 1U);
  EXPECT_EQ(due(1), begin - 1);
  EXPECT_EQ(due(2), begin + 60'000);
  EXPECT_EQ(state(3), JobState::kReady);
  EXPECT_EQ(due(4), begin);
  EXPECT_GT(due(5), begin + 60'000);
}

TEST_F(JobSpreads, JobsOfGroupsStayInThem) {
  for (int i = 0; i < 60; ++i)
    queue.put(producer, "x", {.due_in = kHour, .group = i % 3 == 0 ? "a" : "b"});
  EXPECT_EQ(run(spread(kHour)), 59U);
  EXPECT_EQ(engine.group_stats(queue.now(), "default", "a")->jobs.delayed, 20U);
  EXPECT_EQ(engine.group_stats(queue.now(), "default", "b")->jobs.delayed, 40U);
  EXPECT_EQ(due(34), begin);
  engine.check_invariants();
}

TEST_F(JobSpreads, WhatCannotBeDoneIsRefused) {
  EXPECT_THROW(run(spread(60'000)), std::invalid_argument);
  EXPECT_THROW(run(spread(kLongestSpread + 1)), std::invalid_argument);
  JobBulk open = bulk_of(Action::kSpread, {.due_from = begin});
  open.over = kHour;
  EXPECT_EQ(open.fault(),
            "say which jobs are spread: those due from one moment on, and before a later one");
  EXPECT_EQ(spread(1'000).fault(),
            "a time of 1000 ms is not longer than the one in which the jobs "
            "are due, of 60000 ms");
}

// A worker buries the jobs as fast as they are retried.
TEST_F(JobBulks, ARetryEnds) {
  for (int i = 0; i < 40; ++i) queue.put(producer, "x");
  const auto bury_all = [this] {
    while (const auto got = engine.reserve(worker, queue.now(), 0)) {
      if (got->kind != Delivery::Kind::kReserved) break;
      engine.bury(worker, queue.now(), got->job.id, 0);
    }
  };
  bury_all();
  JobBulk bulk = bulk_of(Action::kRetry, {.states = kBuried});
  for (int steps = 0; !bulk.ended(); ++steps) {
    ASSERT_LT(steps, 10);
    bulk.list.next = *to_cursor(to_text(bulk.list.next));
    engine.change_jobs(queue.now(), bulk);
    bury_all();
  }
  EXPECT_EQ(bulk.changed, 40U);
  EXPECT_EQ(counts().buried, 40U);
}

TEST_F(JobBulks, AMoveChangesOnlyTheTube) {
  queue.put(producer, "far", {.due_in = 5 * kHour, .key = "k"});               // 1
  queue.put(producer, "ready", {.priority = 7});                               // 2
  queue.put(producer, "dies", {.priority = 1, .retry = {.max_attempts = 1}});  // 3
  queue.put(producer, "near", {.due_in = 1'000});                              // 4
  engine.reserve_job(worker, queue.now(), 3);
  engine.fail(worker, queue.now(), 3, {.error = "no"});
  engine.reserve_job(other, queue.now(), 2);
  engine.disconnect(other, queue.now());  // job 2 counts a lost reservation, in memory only
  std::map<JobId, JobStats> before;
  for (JobId id = 1; id <= 4; ++id) before[id] = *engine.job_stats(queue.now(), id);
  EXPECT_EQ(run(bulk_of(Action::kMove, {}, "mail")), 4U);
  for (JobId id = 1; id <= 4; ++id) {
    JobStats now = *engine.job_stats(queue.now(), id);
    EXPECT_EQ(now.tube, "mail");
    EXPECT_EQ(now.state, before[id].state);
    now.record.tube = before[id].record.tube;
    EXPECT_EQ(now.record, before[id].record);
  }
  EXPECT_EQ(engine.story(queue.now(), 3)->size(), 1U);
  EXPECT_FALSE(engine.job_with_key(producer, "k"));
  engine.use(producer, "mail");
  EXPECT_EQ(engine.job_with_key(producer, "k"), 1U);
  engine.watch(worker, "mail");
  EXPECT_EQ(queue.reserve(worker), "ready");
  queue.pass(1'000);
  EXPECT_EQ(queue.reserve(worker), "near");
}

TEST_F(JobBulks, AMoveLeavesJobsWhoseKeyIsTaken) {
  queue.put(producer, "a", {.key = "k"});
  queue.put(producer, "b", {.key = "l"});
  engine.use(producer, "mail");
  queue.put(producer, "c", {.key = "k"});
  EXPECT_EQ(run(bulk_of(Action::kMove, {}, "mail")), 1U);
  EXPECT_EQ(left, 1U);
  EXPECT_EQ(tube_of(1), "default");
  EXPECT_EQ(tube_of(2), "mail");
}

TEST_F(JobBulks, AMoveThatFailsLeavesNoTube) {
  queue.put(producer, "a", {.key = "k"});
  JobBulk bulk = bulk_of(Action::kMove, {}, "mail");
  queue.store().faults.appends = true;
  EXPECT_THROW(engine.change_jobs(queue.now(), bulk), StoreError);
  queue.store().faults.appends = false;
  EXPECT_EQ(engine.tubes(), Words{"default"});
  EXPECT_EQ(run(bulk), 1U);
}

}  // namespace
}  // namespace carillon::queue
