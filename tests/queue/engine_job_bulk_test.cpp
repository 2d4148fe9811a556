// Changes of many jobs (job_bulk.h).
// Row Q14 of the product's table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "carillon/queue/retry.h"
#include "queue/engine_fixture.h"
#include "queue/seed.h"

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

// The near ones are in memory, with a timer each.
TEST_F(JobSpreads, JobsFireAtTheirNewTimes) {
  for (int i = 0; i < 50; ++i) queue.put(producer, "x", {.due_in = 1'000});
  JobBulk bulk = bulk_of(Action::kSpread,
                         {.due_from = queue.utc() + 1'000, .due_before = queue.utc() + 2'000});
  bulk.over = 50'000;
  EXPECT_EQ(run(bulk), 49U);
  engine.check_invariants();
  queue.pass(25'000);
  for (int i = 0; i < 10; ++i) queue.pass(0);
  EXPECT_GE(counts().ready, 22U);
  EXPECT_LE(counts().ready, 27U);
  for (int i = 0; i < 10; ++i) queue.pass(3'000);
  EXPECT_EQ(counts().ready, 50U);
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

TEST_F(JobBulks, AWaitingClientGetsAJobThatMoves) {
  engine.watch(worker, "mail");
  engine.ignore(worker, "default");
  queue.put(producer, "ready");
  queue.wait(worker);
  EXPECT_EQ(run(bulk_of(Action::kMove, {}, "mail")), 1U);
  EXPECT_EQ(queue.deliveries(), Words{std::to_string(worker) + ":ready"});
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

// --- Random histories: a bulk changes exactly the jobs that are meant when it begins.

class BulkHistory {
 public:
  explicit BulkHistory(std::uint64_t seed) : random_(seed) {}

  void run() {
    for (int round = 0; round < 25; ++round) {
      for (int i = 0; i < 15; ++i) change();
      change_many();
      engine().check_invariants();
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  using Jobs = std::map<JobId, JobStats>;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Engine& engine() { return queue_.engine(); }
  JobId any() { return 1 + below(last_ + 1); }
  std::string any_tube() { return below(3) == 0 ? "mail" : "default"; }

  Jobs jobs() {
    Jobs jobs;
    for (JobId id = 1; id <= last_; ++id) {
      if (const auto stats = engine().job_stats(queue_.now(), id)) jobs[id] = *stats;
    }
    return jobs;
  }

  void change() {
    switch (below(8)) {
      case 0:
        engine().reserve(worker_, queue_.now(), 0);
        return;
      case 1:
        engine().bury(worker_, queue_.now(), any(), 0);
        return;
      case 2:
        engine().fail(worker_, queue_.now(), any(), {.error = "no"});
        return;
      case 3:
        engine().remove(worker_, queue_.now(), any());
        return;
      case 4:
        if (below(6) == 0) {
          queue_.restart(below(1'000));
          connect();
        }
        queue_.pass(below(20'000));
        return;
      default:
        return put();
    }
  }

  void put() {
    engine().use(producer_, any_tube());
    const std::string key = "k" + std::to_string(below(60));
    PutOrder order{.due_in = below(4) == 0 ? 0 : below(120'000)};
    if (below(3) > 0) order.key = key;
    order.key_window = below(2) * 10'000;
    order.retry.max_attempts = static_cast<std::uint32_t>(below(3));
    last_ = std::max(last_, engine().put(producer_, queue_.now(), order, "x").id);
  }

  void connect() {
    producer_ = engine().connect();
    worker_ = engine().connect();
    engine().watch(worker_, "mail");
  }

  bool is_meant(const JobBulk& bulk, const JobStats& job, const Jobs& all) {
    if (job.tube != bulk.list.tube || !bulk.list.filter.admits(job.record, job.state)) return false;
    if (job.state == JobState::kReserved) return false;
    if (bulk.action == Action::kRetry)
      return job.state == JobState::kBuried || job.state == JobState::kDelayed;
    const std::string& key = job.record.extras->key;
    if (bulk.action == Action::kCancel || key.empty()) return true;
    return std::none_of(all.begin(), all.end(), [&](const auto& other) {
      return other.second.tube == bulk.to && other.second.record.extras->key == key;
    });
  }

  void check_changed(const JobBulk& bulk, const JobStats& before, const Jobs& after, JobId id) {
    const auto now = after.find(id);
    if (bulk.action == Action::kCancel) {
      ASSERT_TRUE(now == after.end()) << "job " << id << " is there";
      return;
    }
    ASSERT_TRUE(now != after.end()) << "job " << id << " is gone";
    if (bulk.action == Action::kRetry) {
      ASSERT_EQ(now->second.state, JobState::kReady) << "job " << id;
      ASSERT_EQ(now->second.record.extras->attempts, 0U);
      return;
    }
    ASSERT_EQ(now->second.tube, bulk.to);
    ASSERT_EQ(now->second.state, before.state) << "job " << id;
    JobRecord record = now->second.record;
    record.tube = before.record.tube;
    ASSERT_EQ(record, before.record) << "job " << id;
  }

  void change_many() {
    JobBulk bulk{.action = static_cast<Action>(below(3)), .list = {.tube = any_tube()}};
    bulk.to = bulk.list.tube == "mail" ? "default" : "mail";
    if (below(2) == 0) bulk.list.filter.states = static_cast<std::uint32_t>(1 + below(31));
    if (below(3) == 0) bulk.list.filter.key_prefix = "k" + std::to_string(1 + below(5));
    if (below(3) == 0) bulk.list.filter.due_from = queue_.utc() + below(60'000);
    if (below(3) == 0) bulk.list.filter.due_before = queue_.utc() + below(90'000);
    queue_.pass(0);  // what is due is ready
    for (int i = 0; i < 100; ++i) queue_.pass(0);
    const Jobs before = jobs();
    bulk.dry_run = true;
    JobBulk dry = bulk;
    bulk.dry_run = false;
    while (!dry.ended()) engine().change_jobs(queue_.now(), dry);
    while (!bulk.ended()) {
      queue_.store().faults.appends = below(4) == 0;
      queue_.store().faults.records = below(4) == 0;
      try {
        engine().change_jobs(queue_.now(), bulk);
      } catch (const StoreError&) {
      }
      queue_.store().faults = {};
      bulk.list.next = *to_cursor(to_text(bulk.list.next));
      try {
        engine().advance(queue_.now());
      } catch (const StoreError&) {  // jobs could not be loaded
      }
    }
    const Jobs after = jobs();
    std::uint64_t changed = 0;
    for (const auto& [id, job] : before) {
      if (is_meant(bulk, job, before)) {
        ++changed;
        check_changed(bulk, job, after, id);
        continue;
      }
      ASSERT_TRUE(after.count(id) == 1) << "job " << id << " is gone";
      ASSERT_EQ(after.at(id).record, job.record);
      ASSERT_EQ(after.at(id).tube, job.tube);
    }
    ASSERT_EQ(bulk.changed, changed);
    ASSERT_EQ(dry.changed, changed);
  }

  std::mt19937_64 random_;
  VirtualQueue queue_{{.load_ahead = 30'000, .max_loaded_per_tube = 30, .step = 200}};
  ClientId producer_ = queue_.engine().connect();
  ClientId worker_ = queue_.engine().connect();
  JobId last_ = 0;
};

TEST(JobBulksHistory, ExactlyTheJobsThatAreMeant) {
  const std::uint64_t seed = seed_or(19);
  for (std::uint64_t i = 0; i < 100; ++i) {
    SCOPED_TRACE(seed + i);
    BulkHistory(seed + i).run();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace carillon::queue
