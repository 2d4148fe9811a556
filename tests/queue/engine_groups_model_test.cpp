// Random histories of a tube with groups, with crashes and failing appends, against a plain model
// of what is promised: whose turn it is, the order within a group, the shares by weight, the limits
// of the tube and of its groups, that nobody waits for nothing, the counts and the lists.

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
#include "queue/group_shares.h"
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
  std::map<std::string, GroupSettings> settings;
  std::uint64_t max_running = 0;  // the tube's
  UtcMs utc = 0;

  GroupSettings settings_of(const std::string& group) const {
    const auto found = settings.find(group);
    return found == settings.end() ? GroupSettings() : found->second;
  }
  void settle() {
    for (auto& [id, job] : jobs) {
      if (job.state == JobState::kDelayed && job.due <= utc) job.state = JobState::kReady;
    }
  }
  GroupShares::Line line() const {
    GroupShares::Line line;
    for (const auto& [group, first] : firsts())
      line[group] = {.priority = first.first, .weight = settings_of(group).weight};
    return line;
  }
  // The first ready job of each group that its limit does not hold back.
  std::map<std::string, std::pair<Priority, JobId>> firsts() const {
    std::map<std::string, std::pair<Priority, JobId>> firsts;
    for (const auto& [id, job] : jobs) {
      if (job.state != JobState::kReady) continue;
      const auto [at, is_new] = firsts.try_emplace(job.group, job.priority, id);
      if (!is_new) at->second = std::min(at->second, {job.priority, id});
    }
    std::erase_if(firsts, [this](const auto& first) {
      const std::uint64_t most = settings_of(first.first).limits.max_running;
      return most > 0 && running(first.first) >= most;
    });
    return firsts;
  }
  bool any_may_start() const {
    if (max_running > 0 && count(JobState::kReserved) >= max_running) return false;
    return !firsts().empty();
  }
  std::uint64_t running(const std::string& group) const {
    return static_cast<std::uint64_t>(
        std::count_if(jobs.begin(), jobs.end(), [&group](const auto& each) {
          return each.second.state == JobState::kReserved && each.second.group == group;
        }));
  }
  std::uint64_t count(JobState state) const {
    return static_cast<std::uint64_t>(
        std::count_if(jobs.begin(), jobs.end(),
                      [state](const auto& each) { return each.second.state == state; }));
  }
};

class History {
 public:
  History(std::uint64_t seed, EngineOptions options, bool is_exact)
      : random_(seed), is_exact_(is_exact), queue_(std::move(options)) {
    model_.utc = queue_.utc();
    connect();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      queue_.store().faults.appends = below(15) == 0;
      try {
        step();
      } catch (const StoreError&) {
      }
      queue_.store().faults.appends = false;
      take_deliveries();
      if (is_exact_) {
        EXPECT_FALSE(waits_ && model_.any_may_start()) << "a client waits for nothing";
        EXPECT_EQ(shares_.follow(model_.line()), "");
      }
      compare(i);
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Engine& engine() { return queue_.engine(); }
  Now now() const { return queue_.now(); }
  void connect() {
    client_ = engine().connect();
    waiter_ = engine().connect();
    waits_ = false;
  }
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
    switch (below(27)) {
      case 0:
        return pass(1 + below(50));
      case 1:
        return restart();
      case 2:
        return set_group();
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
      case 15:
        return set_tube();
      case 16:
        return wait();
      default:
        return put();
    }
  }

  void put() {
    const std::string group = a_group();
    const Millis delay = std::array<Millis, 4>{0, 0, below(30), below(3'000)}[below(4)];
    const auto priority = static_cast<Priority>(below(8) == 0 ? below(3) : 1);
    const JobId id = queue_.put(
        client_, "x", {.priority = priority, .due_in = delay, .ttr = kDay, .group = group});
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
    connect();
    for (auto& [id, job] : model_.jobs) {
      if (job.state == JobState::kReserved) job.state = JobState::kDelayed;
    }
    model_.settle();
    held_.clear();
    shares_.forget_all();
  }
  void set_group() {
    const std::string group = a_group();
    if (group.empty()) return;
    GroupSettings settings{.weight = static_cast<std::uint32_t>(1 + below(5)), .limits = {}};
    if (below(2) == 0) settings.limits.max_running = static_cast<std::uint32_t>(1 + below(4));
    engine().set_group(now(), "default", group, settings);
    model_.settings[group] = settings;
  }
  void set_tube() {
    const auto most = static_cast<std::uint32_t>(below(2) * below(12));
    engine().set_tube(now(), "default", {.limits = {.max_running = most}});
    model_.max_running = most;
  }
  void wait() {
    if (waits_) return;
    const auto got = engine().reserve(waiter_, now(), std::nullopt);
    waits_ = !got;
    if (got) gave(waiter_, got->job.id);
  }
  void take_deliveries() {
    for (const Delivery& delivery : engine().take_deliveries()) {
      EXPECT_EQ(delivery.client, waiter_);
      EXPECT_EQ(delivery.kind, Delivery::Kind::kReserved);
      waits_ = false;
      GroupsModel::Job& job = model_.jobs.at(delivery.job.id);
      EXPECT_EQ(job.state, JobState::kReady);
      gave(waiter_, delivery.job.id);
      shares_.forget(job.group);  // it may be another job's turn that the command has begun with
    }
  }
  void gave(ClientId to, JobId id) {
    GroupsModel::Job& job = model_.jobs.at(id);
    job.state = JobState::kReserved;
    held_.emplace_back(to, id);
    shares_.give(job.group);
  }
  void reserve() {
    Delivery got = *engine().reserve(client_, now(), 0);
    if (got.kind != Delivery::Kind::kReserved && !is_exact_) {
      pass(150);  // a tube waits this long for more room
      got = *engine().reserve(client_, now(), 0);
    }
    take_deliveries();  // those of the time that has passed
    const auto firsts = model_.firsts();
    if (got.kind != Delivery::Kind::kReserved) {
      EXPECT_FALSE(model_.any_may_start());
      return;
    }
    EXPECT_TRUE(model_.any_may_start());
    GroupsModel::Job& job = model_.jobs.at(got.job.id);
    EXPECT_EQ(job.state, JobState::kReady);
    EXPECT_TRUE(firsts.contains(job.group));
    // If not all jobs are in memory, only those that are take part.
    if (is_exact_) {
      EXPECT_EQ(firsts.at(job.group).second, got.job.id);
      for (const auto& [group, first] : firsts) EXPECT_LE(job.priority, first.first);
    }
    gave(client_, got.job.id);
  }
  // Moves one of them to the end.
  std::optional<std::pair<ClientId, JobId>> choose_held() {
    if (held_.empty()) return std::nullopt;
    const std::size_t at = below(held_.size());
    std::swap(held_[at], held_.back());
    return held_.back();
  }
  void end_one() {
    const auto held = choose_held();
    if (!held) return;
    EXPECT_TRUE(engine().remove(held->first, now(), held->second).done);
    held_.pop_back();
    model_.jobs.erase(held->second);
  }
  void release() {
    const auto held = choose_held();
    if (!held) return;
    const Millis delay = below(2) * below(40);
    EXPECT_TRUE(engine().release(held->first, now(), held->second, 1, delay).done);
    held_.pop_back();
    GroupsModel::Job& job = model_.jobs.at(held->second);
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
    JobCursor last;
    while (!list.done) {
      if (below(8) == 0)  // another page
        list = {.tube = "default", .filter = list.filter, .next = *to_cursor(to_text(list.next))};
      for (const ListedJob& job : engine().list_jobs(now(), list, 1 + below(7))) {
        EXPECT_TRUE(all.emplace(job.record.id, job.group).second) << "listed twice";
        const JobCursor place = JobCursor::of(job.record);
        EXPECT_TRUE(last.is_before(place)) << "out of order";
        last = place;
      }
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
  GroupShares shares_;
  ClientId client_ = 0;
  ClientId waiter_ = 0;
  bool waits_ = false;
  std::vector<std::pair<ClientId, JobId>> held_;
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
