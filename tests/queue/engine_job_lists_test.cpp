// Lists of a tube's jobs (job_listing.h).
// Row Q13 of the product's table.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

using Ids = std::vector<JobId>;

constexpr std::uint32_t kReady = bit_of(JobState::kReady);
constexpr std::uint32_t kReserved = bit_of(JobState::kReserved);

class JobLists : public EngineTest {
 protected:
  Ids list(const JobFilter& filter, std::size_t limit = 1'000) {
    Ids ids;
    for (JobListing list{.tube = "default", .filter = filter}; !list.done;) {
      for (const ListedJob& job : engine.list_jobs(queue.now(), list, limit))
        ids.push_back(job.record.id);
    }
    return ids;
  }
};

TEST_F(JobLists, ByDueTimeAndThenTheBuriedOnes) {
  queue.put(producer, "far", {.due_in = 5 * kHour});   // 1
  queue.put(producer, "near", {.due_in = 1'000});      // 2
  queue.put(producer, "ready");                        // 3
  queue.put(producer, "buried");                       // 4
  queue.put(producer, "also ready", {.priority = 7});  // 5
  engine.reserve_job(worker, queue.now(), 4);
  engine.bury(worker, queue.now(), 4, 0);
  EXPECT_EQ(list({}), (Ids{3, 5, 2, 1, 4}));
  EXPECT_EQ(list({}, 1), (Ids{3, 5, 2, 1, 4}));
  EXPECT_EQ(list({.states = kDelayed}), (Ids{2, 1}));
  EXPECT_EQ(list({.states = kReady}), (Ids{3, 5}));
  EXPECT_EQ(list({.states = kReady | kBuried}), (Ids{3, 5, 4}));
  EXPECT_EQ(list({.states = kReserved}), Ids{});
  EXPECT_EQ(list({.states = kDeadJobs}), Ids{});
}

TEST_F(JobLists, AMissingTubeHasNoJobs) {
  JobListing list{.tube = "none"};
  EXPECT_TRUE(engine.list_jobs(queue.now(), list, 10).empty());
  EXPECT_TRUE(list.done);
}

TEST_F(JobLists, AReservedJobIsFoundWhereverItIs) {
  queue.put(producer, "ready");                       // 1
  queue.put(producer, "far", {.due_in = 5 * kHour});  // 2
  queue.put(producer, "far", {.due_in = 9 * kHour});  // 3
  engine.name_client(worker, "carol");
  EXPECT_EQ(queue.reserve(worker), "ready");
  EXPECT_EQ(list({.states = kReserved}), Ids{1});
  EXPECT_TRUE(engine.reserve_job(worker, queue.now(), 2));
  EXPECT_EQ(list({.states = kReserved}), (Ids{1, 2}));
  JobListing first{.tube = "default", .filter = {.states = kReserved}};
  const auto jobs = engine.list_jobs(queue.now(), first, 1);
  EXPECT_EQ(jobs.at(0).worker, "carol");
  EXPECT_EQ(jobs.at(0).record.history.reserves, 1U);
}

TEST_F(JobLists, DueRangesAndKeys) {
  for (Millis hour = 1; hour <= 5; ++hour)
    queue.put(producer, "x", {.due_in = hour * kHour, .key = "k" + std::to_string(hour)});
  queue.put(producer, "no key", {.due_in = 3 * kHour});
  const UtcMs now = queue.utc();
  EXPECT_EQ(list({.due_from = now + 2 * kHour, .due_before = now + 4 * kHour}), (Ids{2, 3, 6}));
  EXPECT_EQ(list({.due_from = now + 2 * kHour + 1, .due_before = now + 4 * kHour + 1}),
            (Ids{3, 6, 4}));
  EXPECT_EQ(list({.key_prefix = "k"}), (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(list({.key_prefix = "k3"}), Ids{3});
}

TEST_F(JobLists, DeadJobsAreBuriedOnes) {
  queue.put(producer, "dies", {.retry = {.max_attempts = 1}});
  queue.put(producer, "is buried");
  for (int i = 0; i < 2; ++i) queue.reserve(worker);
  engine.fail(worker, queue.now(), 1, {.error = "no"});
  engine.bury(worker, queue.now(), 2, 0);
  EXPECT_EQ(list({.states = kDeadJobs}), Ids{1});
  EXPECT_EQ(list({.states = kBuried}), (Ids{1, 2}));
}

TEST_F(JobLists, ACursorIsAWord) {
  const JobCursor due{.burial = 0, .due = {17, 4}};
  const JobCursor buried{.burial = 9, .due = {}};
  EXPECT_EQ(to_text(due), "d17-4");
  EXPECT_EQ(to_text(buried), "b9");
  EXPECT_EQ(to_cursor("d17-4"), due);
  EXPECT_EQ(to_cursor("b9"), buried);
  const JobCursor bounded{.burial = 9, .due = {}, .burials_before = 12};
  EXPECT_EQ(to_text(bounded), "b9-12");
  EXPECT_EQ(to_cursor("b9-12"), bounded);
  EXPECT_EQ(to_cursor("d17-4-12")->burials_before, 12U);
  for (const char* wrong : {"", "d", "d17", "d17-", "d17-4 ", "d-4", "b0", "b", "b9-1-1", "x1",
                            "d99999999999999999999-1", "d+1-1"})
    EXPECT_FALSE(to_cursor(wrong)) << wrong;
}

TEST_F(JobLists, AStepThatCannotReadChangesNothing) {
  queue.put(producer, "far", {.due_in = 5 * kHour});
  JobListing list{.tube = "default"};
  queue.store().faults.records = true;
  EXPECT_THROW(engine.list_jobs(queue.now(), list, 10), StoreError);
  EXPECT_FALSE(list.done);
  queue.store().faults.records = false;
  EXPECT_EQ(engine.list_jobs(queue.now(), list, 10).size(), 1U);
}

// 10'000 far jobs behind those that are meant.
TEST_F(JobLists, ScansNoMoreThanItMust) {
  for (Millis i = 0; i < 10'000; ++i) queue.put(producer, "x", {.due_in = kHour + i});
  queue.put(producer, "ready");
  queue.reserve(worker);
  queue.put(producer, "ready too");
  const auto looks = [this](const JobFilter& filter) {
    JobListing list{.tube = "default", .filter = filter};
    while (!list.done) EXPECT_LE(engine.list_jobs(queue.now(), list, 10).size(), 10U);
    return list.looked_at;
  };
  EXPECT_EQ(looks({.states = kReady}), 2U);
  EXPECT_EQ(looks({.states = kReserved}), 2U);
  EXPECT_EQ(looks({.states = kBuried}), 0U);
  const UtcMs now = queue.utc();
  EXPECT_EQ(looks({.due_from = now + kHour + 5'000, .due_before = now + kHour + 5'020}), 20U);
  EXPECT_EQ(looks({}), 10'002U);
}

}  // namespace
}  // namespace carillon::queue
