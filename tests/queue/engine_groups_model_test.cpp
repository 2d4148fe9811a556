// Random histories of a tube with groups, with crashes and failing appends, against a plain model
// of what is promised: whose turn it is, the order within a group, the shares by weight, the counts
// and the lists.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/job_bulk.h"
#include "carillon/queue/job_listing.h"
#include "queue/seed.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

struct GroupsModel {
  struct Job {
    std::string group;
    Priority priority = 0;
    UtcMs due = 0;
    JobState state = JobState::kDelayed;
  };
  std::map<JobId, Job> jobs;
  std::map<std::string, std::uint32_t> weights;
  UtcMs utc = 0;

  std::uint64_t weight_of(const std::string& group) const {
    const auto found = weights.find(group);
    return found == weights.end() ? 1 : found->second;
  }
  void settle() {
    for (auto& [id, job] : jobs) {
      if (job.state == JobState::kDelayed && job.due <= utc) job.state = JobState::kReady;
    }
  }
  // The first ready job of each group.
  std::map<std::string, std::pair<Priority, JobId>> firsts() const {
    std::map<std::string, std::pair<Priority, JobId>> firsts;
    for (const auto& [id, job] : jobs) {
      if (job.state != JobState::kReady) continue;
      const auto [at, is_new] = firsts.try_emplace(job.group, job.priority, id);
      if (!is_new) at->second = std::min(at->second, {job.priority, id});
    }
    return firsts;
  }
  std::uint64_t count(JobState state) const {
    return static_cast<std::uint64_t>(
        std::count_if(jobs.begin(), jobs.end(),
                      [state](const auto& each) { return each.second.state == state; }));
  }
};

// How many jobs each group has got since it has been taking turns with each other one.
class Shares {
 public:
  // Called after each command.
  void follow(const GroupsModel& model) {
    std::map<std::string, std::pair<Priority, std::uint64_t>> now;  // priority, weight
    for (const auto& [group, first] : model.firsts())
      now[group] = {first.first, model.weight_of(group)};
    for (const auto& [group, turn] : now) {
      if (!turns_.contains(group) || turns_[group] != turn) forget(group);
    }
    for (const auto& [group, turn] : turns_) {
      if (!now.contains(group)) forget(group);
    }
    turns_ = now;
    check();
  }
  void forget_all() {
    got_.clear();
    turns_.clear();
  }
  void give(const std::string& to) {
    for (const auto& [group, turn] : turns_) ++got_[{to, group}];
  }

 private:
  void forget(const std::string& group) {
    std::erase_if(got_, [&group](const auto& each) {
      return each.first.first == group || each.first.second == group;
    });
  }
  void check() {
    for (const auto& [a, of_a] : turns_) {
      for (const auto& [b, of_b] : turns_) {
        if (of_a.first != of_b.first) continue;
        const std::uint64_t more = got_[{a, b}] * of_b.second;
        const std::uint64_t less = got_[{b, a}] * of_a.second;
        EXPECT_LE(more, less + of_a.second + of_b.second)
            << "group '" << a << "' got " << got_[{a, b}] << ", group '" << b << "' "
            << got_[{b, a}];
      }
    }
  }

  std::map<std::string, std::pair<Priority, std::uint64_t>> turns_;
  // What the one group got while it was taking turns with the other.
  std::map<std::pair<std::string, std::string>, std::uint64_t> got_;
};

class History {
 public:
  History(std::uint64_t seed, EngineOptions options, bool is_exact)
      : random_(seed), is_exact_(is_exact), queue_(std::move(options)) {
    model_.utc = queue_.utc();
    client_ = engine().connect();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      queue_.store().faults.appends = below(15) == 0;
      try {
        step();
      } catch (const StoreError&) {
      }
      queue_.store().faults.appends = false;
      if (is_exact_) shares_.follow(model_);
      compare(i);
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Engine& engine() { return queue_.engine(); }
  Now now() const { return queue_.now(); }
  std::string a_group() {
    return std::array<std::string, 6>{"", "a", "b", "c", "d", "e"}[below(6)];
  }
  JobId a_job() {
    if (model_.jobs.empty()) return 1;
    auto at = model_.jobs.begin();
    std::advance(at, below(model_.jobs.size()));
    return at->first;
  }

  void step() {
    switch (below(24)) {
      case 0:
        return pass(1 + below(50));
      case 1:
        return restart();
      case 2:
        return set_weight();
      case 3:
      case 4:
        return end_one();
      case 5:
        return release();
      case 6:
        return bury();
      case 7:
        return kick();
      case 8:
        return cancel_some();
      case 9:
      case 10:
      case 11:
      case 12:
      case 13:
      case 14:
        return reserve();
      default:
        return put();
    }
  }

  void put() {
    const std::string group = a_group();
    const Millis delay = std::array<Millis, 4>{0, 0, below(30), below(3'000)}[below(4)];
    const auto priority = static_cast<Priority>(below(8) == 0 ? below(3) : 1);
    const JobId id =
        queue_.put(client_, "x", {.priority = priority, .due_in = delay, .group = group});
    model_.jobs[id] = {group, priority, model_.utc + delay, JobState::kDelayed};
    model_.settle();
  }
  void pass(Millis ms) {
    queue_.pass(ms);
    model_.utc += ms;
    model_.settle();
  }
  void restart() {
    queue_.restart();
    client_ = engine().connect();
    for (auto& [id, job] : model_.jobs) {
      if (job.state == JobState::kReserved) job.state = JobState::kDelayed;
    }
    model_.settle();
    held_.clear();
    shares_.forget_all();
  }
  void set_weight() {
    const std::string group = a_group();
    if (group.empty()) return;
    const auto weight = static_cast<std::uint32_t>(1 + below(5));
    engine().set_group(now(), "default", group, {.weight = weight});
    model_.weights[group] = weight;
  }
  void reserve() {
    Delivery got = *engine().reserve(client_, now(), 0);
    if (got.kind != Delivery::Kind::kReserved && !is_exact_) {
      pass(150);  // so long a tube waits for more room
      got = *engine().reserve(client_, now(), 0);
    }
    const auto firsts = model_.firsts();
    if (got.kind != Delivery::Kind::kReserved) {
      EXPECT_TRUE(firsts.empty());
      return;
    }
    GroupsModel::Job& job = model_.jobs.at(got.job.id);
    EXPECT_EQ(job.state, JobState::kReady);
    // If not all jobs are in memory, only those that are take part.
    if (is_exact_) {
      EXPECT_EQ(firsts.at(job.group).second, got.job.id);
      for (const auto& [group, first] : firsts) EXPECT_LE(job.priority, first.first);
    }
    job.state = JobState::kReserved;
    held_.push_back(got.job.id);
    shares_.give(job.group);
  }
  std::optional<JobId> take_held() {
    if (held_.empty()) return std::nullopt;
    const std::size_t at = below(held_.size());
    std::swap(held_[at], held_.back());
    return held_.back();
  }
  void end_one() {
    const auto id = take_held();
    if (!id) return;
    EXPECT_TRUE(engine().remove(client_, now(), *id).done);
    held_.pop_back();
    model_.jobs.erase(*id);
  }
  void release() {
    const auto id = take_held();
    if (!id) return;
    const Millis delay = below(2) * below(40);
    EXPECT_TRUE(engine().release(client_, now(), *id, 1, delay).done);
    held_.pop_back();
    GroupsModel::Job& job = model_.jobs.at(*id);
    job.priority = 1;
    job.state = JobState::kDelayed;
    if (delay > 0) job.due = model_.utc + delay;
    model_.settle();
  }
  void bury() {
    const JobId id = a_job();
    const auto outcome = engine().bury_job(now(), id);
    if (outcome.result == ChangeOutcome::Result::kDone)
      model_.jobs.at(id).state = JobState::kBuried;
  }
  void kick() {
    const bool buried = model_.count(JobState::kBuried) > 0;
    const JobState from = buried ? JobState::kBuried : JobState::kDelayed;
    const std::uint64_t all = model_.count(from);
    if (below(3) > 0) {
      const JobId id = a_job();
      const Outcome outcome = engine().kick_job(now(), id);
      if (outcome.done) kicked(id);
      return;
    }
    EXPECT_EQ(kick_all(engine(), client_, now(), all), all);
    for (auto& [id, job] : model_.jobs) {
      if (job.state == from) kicked(id);
    }
  }
  void kicked(JobId id) {
    model_.jobs.at(id).due = model_.utc;
    model_.jobs.at(id).state = JobState::kReady;
  }
  void cancel_some() {
    const std::string group = a_group();
    JobBulk bulk{.list = {.tube = "default", .filter = {.group = group}}, .bound = below(8)};
    const auto before = all_listed({});
    while (!bulk.ended()) engine().change_jobs(now(), bulk);
    const auto after = all_listed({});
    EXPECT_EQ(before.size() - after.size(), bulk.changed);
    for (const auto& [id, listed_group] : before) {
      if (after.contains(id)) continue;
      EXPECT_TRUE(group.empty() || listed_group == group);
      EXPECT_NE(model_.jobs.at(id).state, JobState::kReserved);
      model_.jobs.erase(id);
    }
  }
  std::map<JobId, std::string> all_listed(const std::string& group) {
    JobListing list{.tube = "default", .filter = {.group = group}};
    std::map<JobId, std::string> all;
    while (!list.done) {
      for (const ListedJob& job : engine().list_jobs(now(), list, 7))
        EXPECT_TRUE(all.emplace(job.record.id, job.group).second) << "listed twice";
    }
    return all;
  }

  void compare(int step) {
    const auto stats = engine().tube_stats(now(), "default");
    EXPECT_EQ(stats->jobs.reserved, model_.count(JobState::kReserved));
    EXPECT_EQ(stats->jobs.buried, model_.count(JobState::kBuried));
    EXPECT_EQ(stats->jobs.ready + stats->jobs.delayed,
              model_.count(JobState::kReady) + model_.count(JobState::kDelayed));
    if (is_exact_) {
      EXPECT_EQ(stats->jobs.ready, model_.count(JobState::kReady));
    }
    if (step % 50 != 0) return;
    engine().check_invariants();
    std::map<JobId, std::string> all;
    for (const auto& [id, job] : model_.jobs) all[id] = job.group;
    EXPECT_EQ(all_listed({}), all);
    std::erase_if(all, [](const auto& each) { return each.second != "b"; });
    EXPECT_EQ(all_listed("b"), all);
  }

  std::mt19937_64 random_;
  const bool is_exact_;
  VirtualQueue queue_;
  GroupsModel model_;
  Shares shares_;
  ClientId client_ = 0;
  std::vector<JobId> held_;
};

TEST(EngineGroupsModel, RandomHistories) {
  const std::uint64_t seed = seed_or(1);
  for (std::uint64_t n = 0; n < 30 && !testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed + n));
    History(seed + n, {.load_ahead = 1'000}, true).run(1'500);
  }
}

// Little is in memory: nothing starves, and nothing is handed out that is not ready.
TEST(EngineGroupsModel, RandomHistoriesInLittleMemory) {
  const std::uint64_t seed = seed_or(1);
  for (std::uint64_t n = 0; n < 30 && !testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed + n));
    History(seed + n, {.load_ahead = 20, .max_loaded_per_tube = 2 + n % 3, .step = 200}, false)
        .run(1'500);
  }
}

}  // namespace
}  // namespace carillon::queue
