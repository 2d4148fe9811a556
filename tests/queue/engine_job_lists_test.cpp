// Lists of a tube's jobs (job_listing.h).
// Row Q13 of the product's table.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/job_listing.h"
#include "queue/engine_fixture.h"
#include "queue/seed.h"

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

TEST_F(JobLists, OnlyJobsOfTheTube) {
  queue.put(producer, "a");
  engine.use(producer, "mail");
  queue.put(producer, "b");
  EXPECT_EQ(list({}), Ids{1});
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

// --- Random histories. What a list must have is told by the statistics of each job.

class ListHistory {
 public:
  explicit ListHistory(std::uint64_t seed) : random_(seed) {
    engine_.set_tube(queue_.now(), "default", {.retry = {.max_attempts = 3, .backoff = 2'000}});
  }

  void run() {
    for (int i = 0; i < 40; ++i) change();
    for (int list = 0; list < 12; ++list) read_a_list();
    queue_.engine().check_invariants();
  }

 private:
  struct Known {
    JobCursor place;
    bool meant;
    friend bool operator==(const Known&, const Known&) = default;
  };
  using Jobs = std::map<JobId, Known>;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Engine& engine() { return queue_.engine(); }

  Jobs jobs(const JobFilter& filter) {
    Jobs jobs;
    for (JobId id = 1; id <= last_; ++id) {
      const auto stats = engine().job_stats(queue_.now(), id);
      if (!stats || stats->tube != "default") continue;
      JobRecord record = stats->record;
      jobs[id] = {JobCursor::after(record), filter.admits(record, stats->state)};
    }
    return jobs;
  }

  void connect() {
    producer_ = engine().connect();
    worker_ = engine().connect();
  }

  JobId any() { return last_ == 0 ? 1 : 1 + below(last_); }

  void put() {
    PutOrder order{.due_in = below(4) == 0 ? 0 : below(120'000)};
    const std::string key =
        std::string(1 + below(2), static_cast<char>('a' + below(3))) + std::to_string(below(30));
    if (below(3) > 0) order.key = key;
    order.on_conflict = OnConflict::kReplace;
    last_ = std::max(last_, engine().put(producer_, queue_.now(), order, "x").id);
  }

  void change() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return put();
      case 4:
        engine().reserve(worker_, queue_.now(), 0);
        return;
      case 5:
        engine().reserve_job(worker_, queue_.now(), any());
        return;
      case 6:
        engine().release(worker_, queue_.now(), any(), 0, below(90'000));
        return;
      case 7:
        engine().fail(worker_, queue_.now(), any(), {.error = "no"});
        return;
      case 8:
        engine().bury(worker_, queue_.now(), any(), 0);
        return;
      case 9:
        engine().cancel(queue_.now(), any(), below(2) == 0);
        return;
      case 10:
        if (below(2) == 0) {
          engine().kick_job(queue_.now(), any());
        } else {
          engine().patch(queue_.now(), any(), {.due_in = below(100'000)});
        }
        return;
      default:
        return time();
    }
  }

  void time() {
    if (below(8) == 0) queue_.step_wall_clock(static_cast<std::int64_t>(below(80'000)) - 40'000);
    if (below(8) == 0) {
      queue_.restart(below(5'000));
      connect();
    }
    queue_.pass(below(20'000));
  }

  JobFilter any_filter() {
    JobFilter filter;
    if (below(2) == 0) filter.states = static_cast<std::uint32_t>(1 + below(31));
    if (below(4) == 0) filter.key_prefix = std::string(1, static_cast<char>('a' + below(3)));
    if (below(4) == 0) filter.due_from = queue_.utc() - 60'000 + below(120'000);
    if (below(4) == 0) filter.due_before = queue_.utc() - 30'000 + below(120'000);
    return filter;
  }

  // Jobs that have moved, or are meant now and were not, may be listed or not.
  void read_a_list() {
    const JobFilter filter = any_filter();
    const Jobs at_first = jobs(filter);
    std::set<JobId> unsure;
    std::map<JobId, int> listed;
    JobListing list{.tube = "default", .filter = filter};
    while (!list.done) {
      const Jobs now = jobs(filter);
      read_a_page(list, now, listed);
      for (auto changes = below(3); changes > 0; --changes) change();
      const Jobs then = jobs(filter);
      for (const auto& [id, known] : then) {
        const auto before = at_first.find(id);
        if (before == at_first.end() || before->second != known) unsure.insert(id);
      }
      for (const auto& [id, known] : at_first) {
        if (then.count(id) == 0) unsure.insert(id);
      }
    }
    for (const auto& [id, known] : at_first) {
      if (unsure.count(id) > 0) continue;
      ASSERT_EQ(listed[id], known.meant ? 1 : 0) << "job " << id;
    }
  }

  void read_a_page(JobListing& list, const Jobs& now, std::map<JobId, int>& listed) {
    // A cursor goes over the wire, and over restarts.
    list.next = *to_cursor(to_text(list.next));
    std::vector<ListedJob> page;
    queue_.store().faults.records = below(10) == 0;
    try {
      page = engine().list_jobs(queue_.now(), list, 1 + below(20));
    } catch (const StoreError&) {
    }
    queue_.store().faults.records = false;
    std::optional<JobCursor> last;
    for (const ListedJob& job : page) {
      ++listed[job.record.id];
      const auto known = now.find(job.record.id);
      ASSERT_TRUE(known != now.end() && known->second.meant) << "job " << job.record.id;
      const JobCursor place = JobCursor::after(job.record);
      if (last) {
        ASSERT_LT(std::tie(last->burial, last->due), std::tie(place.burial, place.due));
      }
      last = place;
    }
  }

  std::mt19937_64 random_;
  VirtualQueue queue_{{.load_ahead = 30'000, .max_loaded_per_tube = 40, .step = 8}};
  Engine& engine_ = queue_.engine();
  ClientId producer_ = engine_.connect();
  ClientId worker_ = engine_.connect();
  JobId last_ = 0;
};

TEST(JobListsHistory, AJobThatStaysIsListedOnce) {
  const std::uint64_t seed = seed_or(19);
  for (std::uint64_t i = 0; i < 150; ++i) {
    SCOPED_TRACE(seed + i);
    ListHistory(seed + i).run();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace carillon::queue
