// Groups of a tube: whose job goes out next, and that clients still see one tube. Row Q10 of the
// product's table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "carillon/queue/due_counts.h"
#include "carillon/queue/job_bulk.h"
#include "carillon/queue/job_listing.h"
#include "queue/engine_fixture.h"

namespace carillon::queue {
namespace {

class EngineGroups : public EngineTest {
 protected:
  JobId put(const std::string& group, const std::string& body, PutOrder order = {}) {
    order.group = group;
    return queue.put(producer, body, order);
  }
  // The jobs are called a1, a2, ...
  void put_many(const std::string& group, int jobs, PutOrder order = {}) {
    for (int i = 1; i <= jobs; ++i) put(group, group + std::to_string(i), order);
  }
  std::string reserve_many(int jobs) {
    std::string words;
    for (int i = 0; i < jobs; ++i) words += (i == 0 ? "" : " ") + queue.reserve(worker);
    return words;
  }
  // How many jobs each group gets, by the first letter of the body.
  std::map<char, int> shares(int jobs) {
    std::map<char, int> shares;
    for (int i = 0; i < jobs; ++i) ++shares[queue.reserve(worker).front()];
    return shares;
  }
  void set_weight(const std::string& group, std::uint32_t weight) {
    engine.set_group(queue.now(), "default", group, {.weight = weight});
  }
  std::vector<std::string> listed(JobListing list) {
    std::vector<std::string> words;
    while (!list.done) {
      for (const ListedJob& job : engine.list_jobs(queue.now(), list, 2))
        words.push_back(std::to_string(job.record.id) + job.group);
    }
    return words;
  }
};

TEST_F(EngineGroups, TakeTurns) {
  put_many("a", 5);
  put_many("b", 2);
  put_many("c", 3);
  EXPECT_EQ(reserve_many(11), "a1 b1 c1 a2 b2 c2 a3 c3 a4 a5 TIMED_OUT");
}

// A job that does not fit into a reply goes out in the next one: its group keeps its turn.
TEST_F(EngineGroups, KeepTheirTurnIfTheirJobIsTooLarge) {
  put_many("a", 3);
  put_many("b", 3);
  EXPECT_EQ(reserve_many(1), "a1");
  EXPECT_EQ(engine.reserve_next(worker, queue.now(), 1), std::nullopt);
  EXPECT_EQ(reserve_many(1), "b1");
  EXPECT_EQ(engine.reserve_next(worker, queue.now(), 1), std::nullopt);
  const auto next = engine.reserve_next(worker, queue.now(), 2);
  ASSERT_TRUE(next);
  EXPECT_EQ(queue.body(next), "a2");
  EXPECT_EQ(reserve_many(4), "b2 a3 b3 TIMED_OUT");
  EXPECT_EQ(engine.reserve_next(worker, queue.now(), 100), std::nullopt);
}

TEST_F(EngineGroups, JobsWithoutAGroupAreOneGroup) {
  put_many("", 3);
  put_many("a", 3);
  EXPECT_EQ(reserve_many(6), "1 a1 2 a2 3 a3");
}

TEST_F(EngineGroups, ANewWeightHoldsFromThenOn) {
  put_many("a", 100);
  put_many("b", 100);
  EXPECT_EQ(shares(10), (std::map<char, int>{{'a', 5}, {'b', 5}}));
  set_weight("b", 9);
  EXPECT_NEAR(shares(50).at('b'), 45, 1);
  set_weight("b", 1);
  EXPECT_NEAR(shares(20).at('b'), 10, 1);
  EXPECT_EQ(engine.group_stats(queue.now(), "default", "b")->settings.weight, 1u);
}

TEST_F(EngineGroups, APriorityComesBeforeATurn) {
  put_many("a", 3, {.priority = 5});
  put_many("b", 3, {.priority = 5});
  put("a", "urgent", {.priority = 4});
  put("a", "more urgent", {.priority = 3});
  EXPECT_EQ(reserve_many(8), "more urgent urgent b1 a1 b2 a2 b3 a3");
}

TEST_F(EngineGroups, AGroupThatWasIdleGetsNoCredit) {
  put_many("a", 100);
  put("b", "b0");
  EXPECT_EQ(shares(50).at('a'), 49);
  put_many("b", 50);
  EXPECT_NEAR(shares(20).at('b'), 10, 1);
}

// What two groups have got at a low priority says nothing about a third one's urgent jobs.
TEST_F(EngineGroups, UrgentJobsAreNotPaidForLater) {
  put_many("a", 1'000, {.priority = 1});
  put_many("b", 100, {.priority = 2});
  EXPECT_EQ(shares(1'000).at('a'), 1'000);
  put_many("a", 100, {.priority = 2});
  put_many("c", 100, {.priority = 2});
  const auto got = shares(60);
  for (const char group : {'a', 'b', 'c'}) EXPECT_NEAR(got.at(group), 20, 1) << group;
}

TEST(EngineGroupsInLittleMemory, AThousandJobsOfOneGroupHideNoneOfAnother) {
  VirtualQueue queue({.max_loaded_per_tube = 10});
  const ClientId client = queue.engine().connect();
  for (int i = 0; i < 1'000; ++i) queue.put(client, "a", {.group = "a"});
  queue.put(client, "b", {.group = "b"});
  queue.put(client, "none");
  EXPECT_LE(queue.engine().stats().jobs.loaded, 40u);
  EXPECT_EQ(queue.engine().tube_stats(queue.now(), "default")->jobs.ready, 1'002u);
  std::string got;
  for (int i = 0; i < 4; ++i) got += queue.reserve(client) + " ";
  EXPECT_EQ(got, "a b none a ");
  queue.engine().check_invariants();

  queue.restart();
  Engine& engine = queue.engine();
  engine.check_invariants();
  const ClientId again = engine.connect();
  std::map<std::string, int> all;
  for (int i = 0; i < 1'002; ++i) {
    const Delivery job = *engine.reserve(again, queue.now(), 0);
    ++all[queue.word(job)];
    engine.remove(again, queue.now(), job.job.id);
    queue.pass(150);  // a tube waits this long for more room
  }
  EXPECT_EQ(all, (std::map<std::string, int>{{"a", 1'000}, {"b", 1}, {"none", 1}}));
}

TEST_F(EngineGroups, AreNoTubesOfTheirOwn) {
  put("a", "a1");
  put("default", "d1", {.due_in = kDay});
  put("b", "b1");
  EXPECT_EQ(engine.tubes(), Words{"default"});
  EXPECT_EQ(engine.list_tubes(worker).tubes, 1u);
  EXPECT_EQ(engine.stats().tubes, 1u);
  EXPECT_FALSE(engine.tube_stats(queue.now(), "a"));
  const JobCounts jobs = counts();
  EXPECT_EQ(jobs.ready, 2u);
  EXPECT_EQ(jobs.delayed, 1u);
  EXPECT_EQ(jobs.total, 3u);
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->groups, 3u);
  EXPECT_EQ(engine.group_stats(queue.now(), "default", "a")->jobs.ready, 1u);
  EXPECT_EQ(engine.job_stats(queue.now(), 1)->tube, "default");
  EXPECT_EQ(engine.job_stats(queue.now(), 1)->group, "a");
}

TEST_F(EngineGroups, StayAsLongAsAnythingIsSet) {
  set_weight("a", 7);
  queue.restart();
  Engine& again = queue.engine();
  EXPECT_EQ(again.group_stats(queue.now(), "default", "a")->settings.weight, 7u);
  again.set_group(queue.now(), "default", "a", {});
  EXPECT_FALSE(again.group_stats(queue.now(), "default", "a"));
  EXPECT_EQ(queue.store().recover().tubes.size(), 0u);
}

TEST_F(EngineGroups, RefuseWhatIsOutOfRange) {
  EXPECT_THROW(set_weight("a", 0), std::invalid_argument);
  EXPECT_THROW(set_weight("a", 1'000'001), std::invalid_argument);
  EXPECT_THROW(put(std::string(201, 'g'), "x"), std::invalid_argument);
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->groups, 0u);
}

TEST(EngineGroupsInLittleMemory, CountAmongTheTubesThatThereMayBe) {
  VirtualQueue queue({.max_tubes = 4});
  Engine& small = queue.engine();
  const ClientId client = small.connect();
  for (const char* group : {"a", "b", "c"}) queue.put(client, "x", {.group = group});
  EXPECT_THROW(queue.put(client, "x", {.group = "d"}), OverLimit);
  const std::vector<NewJob> batch = {{.order = {.group = "a"}, .body = "x"},
                                     {.order = {.group = "d"}, .body = "x"}};
  EXPECT_THROW(small.put_all(client, queue.now(), batch), OverLimit);
  EXPECT_EQ(small.stats().jobs.ready, 3u);
  small.check_invariants();
}

TEST_F(EngineGroups, AKeyIsOfTheTubeWhateverTheGroup) {
  const JobId id = put("a", "old", {.key = "k"});
  EXPECT_EQ(engine.job_with_key(producer, "k"), id);
  EXPECT_EQ(engine.put(producer, queue.now(), {.key = "k", .group = "b"}, "x").result,
            PutOutcome::Result::kExists);
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->groups, 1u);
  const PutOutcome replaced = engine.put(
      producer, queue.now(), {.key = "k", .on_conflict = OnConflict::kReplace, .group = "b"}, "b1");
  EXPECT_EQ(replaced.id, id);
  EXPECT_EQ(engine.job_stats(queue.now(), id)->group, "b");
  EXPECT_FALSE(engine.group_stats(queue.now(), "default", "a"));
  EXPECT_EQ(queue.reserve(worker), "b1");
  EXPECT_TRUE(engine.remove(worker, queue.now(), id).done);
  EXPECT_FALSE(engine.job_with_key(producer, "k"));
}

// The group is left by all its jobs in one append, and each of them is still in memory then.
TEST_F(EngineGroups, ABatchMayReplaceAllJobsOfAGroupByThoseOfAnotherOne) {
  put("a", "old1", {.key = "k1"});
  put("a", "old2", {.key = "k2"});
  const PutOrder first{.key = "k1", .on_conflict = OnConflict::kReplace, .group = "b"};
  const PutOrder second{.key = "k2", .on_conflict = OnConflict::kReplace, .group = "b"};
  const std::vector<NewJob> batch = {{.order = first, .body = "b1"},
                                     {.order = second, .body = "b2"}};
  EXPECT_EQ(engine.put_all(producer, queue.now(), batch).result, BatchOutcome::Result::kPut);
  EXPECT_FALSE(engine.group_stats(queue.now(), "default", "a"));
  engine.check_invariants();
  EXPECT_EQ(reserve_many(3), "b1 b2 TIMED_OUT");
}

TEST_F(EngineGroups, ListsHaveTheJobsOfAllGroupsByDueTime) {
  put("b", "1", {.due_in = 5});
  put("", "2", {.due_in = 9});
  put("a", "3", {.due_in = 3});
  put("b", "4");
  const JobId first = put("b", "5");
  const JobId second = put("a", "6");
  engine.bury_job(queue.now(), second);
  engine.bury_job(queue.now(), first);
  EXPECT_EQ(listed({.tube = "default"}), (Words{"4b", "3a", "1b", "2", "6a", "5b"}));
  EXPECT_EQ(listed({.tube = "default", .filter = {.group = "b"}}), (Words{"4b", "1b", "5b"}));
  EXPECT_EQ(listed({.tube = "default", .filter = {.group = "c"}}), Words{});
  const UtcMs due = engine.job_stats(queue.now(), 3)->record.due;
  const JobFilter later{.due_from = due, .due_before = due + 6};
  EXPECT_EQ(listed({.tube = "default", .filter = later}), (Words{"3a", "1b"}));
  // Each page is a list of its own, which begins at a cursor that was a text meanwhile.
  std::string next = to_text({});
  Words words;
  for (bool done = false; !done;) {
    JobListing page{.tube = "default", .next = to_cursor(next).value()};
    std::vector<ListedJob> jobs;
    while (!page.done && jobs.empty()) jobs = engine.list_jobs(queue.now(), page, 1);
    for (const ListedJob& job : jobs) words.push_back(std::to_string(job.record.id));
    done = page.done;
    next = to_text(page.next);
  }
  EXPECT_EQ(words, (Words{"4", "3", "1", "2", "6", "5"}));
  EXPECT_EQ(to_text({.burial = 0, .due = {7, 8}, .lane = 3}), "g3-d7-8");
  EXPECT_FALSE(to_cursor("g-d7-8"));
  EXPECT_FALSE(to_cursor("g0-d7-8"));
  EXPECT_FALSE(to_cursor("g3"));
}

TEST_F(EngineGroups, AListGoesOnWhileItsJobsMoveAndGroupsComeAndGo) {
  const Millis hour = 3'600'000;
  put("a", "1", {.due_in = hour + 1});
  const JobId last_of_b = put("b", "2", {.due_in = hour + 2});
  put("a", "3", {.due_in = hour + 3});
  const JobId moved = put("c", "4", {.due_in = hour + 4});
  put("c", "5", {.due_in = hour + 5});
  JobListing list{.tube = "default"};
  Words words;
  const auto take_one = [&] {
    std::vector<ListedJob> jobs;
    while (!list.done && jobs.empty()) jobs = engine.list_jobs(queue.now(), list, 1);
    for (const ListedJob& job : jobs) words.push_back(std::to_string(job.record.id));
  };
  take_one();
  engine.remove(producer, queue.now(), last_of_b);         // and its group
  engine.patch(queue.now(), moved, {.due_in = hour + 6});  // on
  put("d", "6", {.due_in = hour + 7});                     // a new group
  while (!list.done) take_one();
  EXPECT_EQ(words, (Words{"1", "3", "5", "4"}));
}

// The work of a step does not grow with the groups.
TEST_F(EngineGroups, AStepOfAListIsShortHoweverManyGroupsThereAre) {
  constexpr int kGroups = 3'000;
  for (int n = kGroups; n > 0; --n)
    put("g" + std::to_string(n), "x", {.due_in = Millis(3'600'000 + n)});
  JobListing list{.tube = "default"};
  std::vector<JobId> ids;
  std::size_t most_looks = 0;
  while (!list.done) {
    const std::size_t before = queue.store().looks;
    for (const ListedJob& job : engine.list_jobs(queue.now(), list, 1'000))
      ids.push_back(job.record.id);
    most_looks = std::max(most_looks, queue.store().looks - before);
  }
  EXPECT_LE(most_looks, 40U);
  ASSERT_EQ(ids.size(), std::size_t{kGroups});
  EXPECT_TRUE(std::is_sorted(ids.rbegin(), ids.rend()));
}

TEST_F(EngineGroups, PeeksAndKicksReachAllGroups) {
  put("b", "far", {.due_in = 3 * kDay});
  put("a", "first", {.due_in = 2 * kDay});
  put("", "last", {.due_in = 4 * kDay});
  EXPECT_EQ(queue.body(peek_delayed(engine, producer, queue.now())), "first");
  put("c", "near", {.due_in = 10});
  EXPECT_EQ(queue.body(peek_delayed(engine, producer, queue.now())), "near");
  EXPECT_FALSE(engine.peek_ready(producer, queue.now()));
  EXPECT_FALSE(engine.peek_buried(producer, queue.now()));
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 10), 4u);
  EXPECT_EQ(counts().ready, 4u);
  const std::string next = queue.body(engine.peek_ready(producer, queue.now()));
  EXPECT_EQ(queue.reserve(worker), next);
  for (JobId id = 1; id <= 4; ++id) engine.bury_job(queue.now(), id);
  EXPECT_EQ(counts().buried, 3u);
  EXPECT_TRUE(engine.peek_buried(producer, queue.now()));
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 2), 2u);
  EXPECT_EQ(kick_all(engine, producer, queue.now(), 2), 1u);
  EXPECT_FALSE(engine.peek_buried(producer, queue.now()));
}

TEST_F(EngineGroups, APeekEndsThoughWhatItHasFoundIsGone) {
  for (Millis i = 0; i < 20; ++i)
    put("g" + std::to_string(i), std::to_string(i), {.due_in = kDay + i});
  DelayedPeek peek;
  engine.peek_delayed(producer, queue.now(), peek);
  EXPECT_FALSE(peek.done) << "it looks at 16 groups at once";
  engine.kick_job(queue.now(), 1);
  while (!peek.done) engine.peek_delayed(producer, queue.now(), peek);
  EXPECT_EQ(queue.body(peek.found), "1");
}

TEST_F(EngineGroups, NumbersAreGivenAgainWhenAllWereGiven) {
  Changes last;
  last.tubes.push_back({.number = UINT32_MAX - 1,
                        .name = "last",
                        .settings = detail::Rare(TubeSettings{.weight = 2})});
  queue.store().append(last);
  queue.restart();
  Engine& again = queue.engine();
  const ClientId client = again.connect();
  for (const char* group : {"a", "b"}) queue.put(client, "x", {.due_in = kDay, .group = group});
  EXPECT_EQ(again.job_stats(queue.now(), 1)->record.tube, 2u) << "1 is that of the tube default";
  EXPECT_EQ(again.job_stats(queue.now(), 2)->record.tube, 3u);
  EXPECT_EQ(kick_all(again, client, queue.now(), 9), 2u);
  again.check_invariants();
}

TEST_F(EngineGroups, ALimitOfAGroupHoldsBackNoOther) {
  engine.set_group(queue.now(), "default", "a", {.limits = {.max_running = 2}});
  put_many("a", 5);
  put_many("b", 5);
  EXPECT_EQ(reserve_many(8), "a1 b1 a2 b2 b3 b4 b5 TIMED_OUT");
  queue.wait(other);
  EXPECT_TRUE(engine.remove(worker, queue.now(), 1).done);
  EXPECT_EQ(queue.deliveries(), Words{"3:a3"});
  engine.set_group(queue.now(), "default", "a", {});
  EXPECT_EQ(queue.reserve(worker), "a4");
  EXPECT_FALSE(engine.reserve_job(worker, queue.now(), 3)) << "a3 is reserved";
}

TEST_F(EngineGroups, ARateOfAGroupIsKeptToTheMillisecond) {
  engine.set_group(queue.now(), "default", "a",
                   {.limits = {.rate = 1, .period = 1'000, .burst = 1}});
  put_many("a", 3);
  put_many("b", 1);
  EXPECT_EQ(reserve_many(3), "a1 b1 TIMED_OUT");
  queue.wait(worker);
  queue.pass(999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"2:a2"});
  EXPECT_TRUE(engine.remove(worker, queue.now(), 4).done) << "b1";
  queue.restart();
  const ClientId again = queue.engine().connect();
  EXPECT_EQ(queue.engine().group_stats(queue.now(), "default", "a")->settings.limits.rate, 1u);
  queue.wait(again);
  queue.pass(999);
  EXPECT_EQ(queue.deliveries(), Words{});
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"1:a1"}) << "a start begins with an empty bucket";
}

// What ends a reservation without a word of its worker makes room, too.
TEST_F(EngineGroups, AGroupAtItsLimitIsServedWhenAWorkerIsLost) {
  engine.set_group(queue.now(), "default", "a", {.limits = {.max_running = 1}});
  put("a", "a1", {.ttr = 5'000});
  put("a", "a2", {.priority = 1});
  EXPECT_EQ(reserve_many(2), "a1 TIMED_OUT");
  queue.wait(other);
  queue.pass(5'000);
  EXPECT_EQ(queue.deliveries(), Words{"3:a1"});
  queue.wait(producer);
  engine.disconnect(other, queue.now());
  queue.pass(1);
  EXPECT_EQ(queue.deliveries(), Words{"1:a1"});
  engine.check_invariants();
}

TEST_F(EngineGroups, AListOfGroupsGoesOnWhileOthersComeAndGo) {
  for (const char* group : {"a", "b", "c", "d"}) put(group, group);
  const GroupPage first = *engine.list_groups(queue.now(), "default", 0, 2);
  EXPECT_EQ(first.groups[1].name, "b");
  EXPECT_EQ(queue.reserve(worker), "a");
  engine.remove(worker, queue.now(), 1);
  EXPECT_EQ(queue.reserve(worker), "b");
  EXPECT_EQ(queue.reserve(worker), "c");
  engine.remove(worker, queue.now(), 3);  // where the list goes on
  put("e", "e");
  const GroupPage second = *engine.list_groups(queue.now(), "default", first.next, 9);
  ASSERT_EQ(second.groups.size(), 2u);
  EXPECT_EQ(second.groups[0].name, "d");
  EXPECT_EQ(second.groups[1].name, "e");
  EXPECT_EQ(second.next, 0u);
}

TEST_F(EngineGroups, APutThatIsNotPutLeavesNoGroupBehind) {
  const auto is_clean = [this] {
    engine.check_invariants();
    return engine.tube_stats(queue.now(), "default")->groups == 0 &&
           !engine.group_stats(queue.now(), "default", "g");
  };
  put("", "x", {.key = "k"});
  const std::vector<NewJob> jobs = {{.order = {.group = "g"}, .body = "a"},
                                    {.order = {.key = "k"}, .body = "b"}};
  EXPECT_EQ(engine.put_all(producer, queue.now(), jobs).result, BatchOutcome::Result::kRefused);
  EXPECT_TRUE(is_clean());
  const std::vector<NewJob> wrong = {{.order = {.group = "g"}, .body = "a"},
                                     {.order = {.retry = {.jitter = 101}}, .body = "b"}};
  EXPECT_THROW(engine.put_all(producer, queue.now(), wrong), std::invalid_argument);
  EXPECT_TRUE(is_clean());

  queue.store().faults.appends = true;
  EXPECT_THROW(engine.put(producer, queue.now(), {.group = "g"}, "x"), StoreError);
  EXPECT_TRUE(is_clean());
  EXPECT_THROW(engine.put_all(producer, queue.now(), std::vector{jobs.front()}), StoreError);
  EXPECT_TRUE(is_clean());
  EXPECT_THROW(engine.set_group(queue.now(), "default", "g", {.weight = 2}), StoreError);
  EXPECT_TRUE(is_clean());
  EXPECT_THROW(engine.set_tube(queue.now(), "t", {.refuses_puts = true}), StoreError);
  EXPECT_FALSE(engine.tube_stats(queue.now(), "t"));
  Schedule schedule{.tube = "t", .every = kDay};
  schedule.group = "g";
  EXPECT_THROW(engine.set_schedule(queue.now(), "s", schedule), StoreError);
  EXPECT_FALSE(engine.tube_stats(queue.now(), "t"));
  queue.store().faults.appends = false;
  put("g", "x");
  EXPECT_EQ(engine.tube_stats(queue.now(), "default")->groups, 1u);
  // A move makes the tube, and the group in it, for jobs that do not come.
  JobBulk bulk{.action = JobBulk::Action::kMove, .list = {.tube = "default"}};
  bulk.list.filter.group = "g";
  bulk.to = "u";
  queue.store().faults.appends = true;
  EXPECT_THROW(engine.change_jobs(queue.now(), bulk), StoreError);
  EXPECT_FALSE(engine.tube_stats(queue.now(), "u"));
  engine.check_invariants();
}

}  // namespace
}  // namespace carillon::queue
