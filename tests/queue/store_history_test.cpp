// Random histories of every Store beside a plain model of a store.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "queue/seed.h"
#include "queue/store_media.h"
#include "queue/store_model.h"

namespace carillon::queue {
namespace {

// Makes the same random changes to a store and to the model, and compares the two.
template <class Medium>
class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed) : random_(seed) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      append_something();
      if (chance(10)) look();
      if (chance(3)) sync();
      if (chance(1)) reopen();
    }
    reopen();
    look_at_all();
  }

 private:
  Store& store() { return store_of(medium_); }
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

  void sync() { EXPECT_EQ(store().sync(), appended_); }

  void append_something() {
    std::vector<std::string> bodies(1 + below(3));
    Changes changes;
    StoreModel after = model_;
    for (std::string& body : bodies) {
      changes.jobs.push_back(some_change(after, body));
      after.apply({.jobs = {changes.jobs.back()}, .tubes = {}, .watermarks = {}});
    }
    if (chance(20)) {
      changes.keys.push_back(some_key_change());
      after.apply({.jobs = {}, .keys = changes.keys, .tubes = {}, .watermarks = {}});
    }
    if (chance(10)) {
      changes.schedules.push_back(some_schedule_change());
      after.apply({.jobs = {}, .schedules = changes.schedules, .tubes = {}, .watermarks = {}});
    }
    for (const JobChange& change : changes.jobs) {
      const std::uint32_t tube = change.before ? change.before->tube : change.after->tube;
      std::erase_if(changes.tubes, [&](const TubeRecord& record) { return record.number == tube; });
      changes.tubes.push_back(after.count(tube));
    }
    if (chance(20)) changes.stories.push_back(some_story());
    if (chance(5))
      changes.watermarks = Watermarks{below(1'000'000), below(1'000'000), below(1'000'000)};
    EXPECT_EQ(store().append(changes), ++appended_);
    model_.apply(changes);
  }

  StoryChange some_story() {
    StoryChange change{.id = below(20), .story = {}};
    for (std::uint64_t n = below(4); n > 0; --n)
      change.story.push_back({.at = below(1'000),
                              .ending = static_cast<Ending>(1 + below(3)),
                              .worker = std::string(below(5), 'w'),
                              .error = std::string(below(300), 'e')});
    return change;
  }

  KeyChange some_key_change() {
    const auto tube = static_cast<std::uint32_t>(below(3));
    const std::string key(1 + below(chance(50) ? 3 : kMaxKey), static_cast<char>('a' + below(3)));
    const auto before = model_.find_key(tube, key);
    if (before && chance(40)) return {before, std::nullopt};
    KeyRecord after{.tube = tube,
                    .key = key,
                    .id = below(next_id_),
                    .until = chance(50) ? 0 : 1 + below(1'000)};
    BatchAnswer batch{.fingerprint = std::string(chance(50) ? 0 : below(kMaxFingerprint), 'f')};
    for (std::uint64_t runs = chance(50) ? 0 : below(4); runs > 0; --runs) {
      batch.puts.push_back({.result = static_cast<std::uint32_t>(below(3)),
                            .first = below(next_id_),
                            .jobs = static_cast<std::uint32_t>(below(1'000))});
    }
    if (chance(30)) {
      JobRecord job;
      job.id = 1 + below(next_id_);
      job.tube = 1 + static_cast<std::uint32_t>(below(3));
      job.due = below(1'000);
      batch.job = detail::Rare(JobAsPut{job, "mail", chance(50) ? "acme" : ""});
    }
    after.batch = detail::Rare(std::move(batch));
    return {before, after};
  }

  ScheduleChange some_schedule_change() {
    const std::string name(1 + below(chance(50) ? 3 : kMaxScheduleText), '\xff');
    if (chance(30)) return {name, std::nullopt};
    ScheduleRecord record{.name = name, .schedule = {}};
    Schedule& schedule = record.schedule;
    schedule.body = std::string(below(chance(5) ? kMaxScheduleBody + 1 : 10), 'b');
    if (chance(50)) schedule.cron = "* * * * *";
    if (chance(50)) schedule.zone = "Europe/Berlin";
    schedule.run_after_gap = chance(50);
    schedule.every = below(2) * below(1'000'000);
    if (schedule.every != 0) schedule.start = below(1'000'000);
    schedule.catch_up = static_cast<CatchUp>(below(3));
    schedule.overlap = static_cast<Overlap>(below(3));
    schedule.spread = below(1'000);
    record.paused = chance(50);
    record.decided = below(UINT64_MAX);
    for (std::uint64_t n = below(3); n > 0; --n) record.spans.push_back({below(1'000), 2'000});
    record.waiting = below(10);
    record.last_job = below(10);
    record.fired = below(10);
    if (chance(20)) record.newer = detail::Rare(std::string("\xc0\x3e\x07", 3));
    return {name, record};
  }

  // Returns a change that puts a new job, or changes or erases a job that this append has not
  // touched yet. `body` must outlive the change.
  JobChange some_change(const StoreModel& now, std::string& body) {
    const auto known = now.jobs.empty() ? now.jobs.end() : now.jobs.lower_bound(below(next_id_));
    const bool fresh = known != now.jobs.end() && !model_.jobs.contains(known->first);
    const bool touched = known != now.jobs.end() && !fresh &&
                         !(model_.jobs.at(known->first).record == known->second.record);
    if (known == now.jobs.end() || fresh || touched || chance(now.jobs.size() < 300 ? 60 : 20)) {
      body =
          std::string(chance(2) ? below(20'000) : below(300), static_cast<char>('a' + below(26)));
      JobRecord record = job(next_id_++, static_cast<std::uint32_t>(below(5)), below(1'000));
      record.body_bytes = static_cast<std::uint32_t>(body.size());
      if (chance(10)) record.burial = ++burials_;
      return {std::nullopt, record, body};
    }
    const JobRecord before = known->second.record;
    if (chance(50)) return {before, std::nullopt, {}};
    JobRecord changed = before;
    changed.priority = static_cast<Priority>(below(5'000));
    if (chance(60)) changed.due = below(1'000);
    if (chance(50)) changed.burial = chance(50) ? ++burials_ : 0;
    changed.history.releases += 1;
    if (chance(20)) {
      body = std::string(below(10'000), 'z');
      changed.body_bytes = static_cast<std::uint32_t>(body.size());
      changed.extras = detail::Rare(JobExtras{.key = "k",
                                              .body = next_id_++,
                                              .retry = {.max_attempts = 3, .lost_fails = true},
                                              .attempts = 2,
                                              .death = Death::kAttempts,
                                              .has_story = true,
                                              .expires = below(1'000),
                                              .at_expiry = AtExpiry::kDead,
                                              .attributes = std::string(below(9), 'a')});
      return {before, changed, body};
    }
    return {before, changed, {}};
  }

  void look() {
    const auto tube = static_cast<std::uint32_t>(below(6));
    const DueKey from = chance(50) ? DueKey{} : DueKey{below(1'000), below(next_id_)};
    const std::size_t limit = below(50);
    EXPECT_EQ(store().scan_due(tube, from, limit), model_.scan_due(tube, from, limit))
        << tube << ' ' << from.due;
    const std::uint64_t burial = chance(50) ? 1 : below(burials_ + 1);
    EXPECT_EQ(store().scan_buried(tube, burial, limit), model_.scan_buried(tube, burial, limit))
        << tube;
    look_at(below(next_id_));
    const UtcMs until = below(1'000);
    EXPECT_EQ(store().scan_ended_keys(until, limit), model_.scan_ended_keys(until, limit));
    look_at_keys();
  }

  void look_at_keys() {
    for (const auto& [name, key] : model_.keys)
      EXPECT_EQ(store().find_key(key.tube, key.key), key) << key.key;
    EXPECT_EQ(store().find_key(7, "a"), std::nullopt);
    for (JobId id = 0; id < 20; ++id) {
      const auto known = model_.stories.find(id);
      const auto story = known == model_.stories.end() ? std::vector<Attempt>() : known->second;
      EXPECT_EQ(store().story(id), story) << id;
    }
  }

  void look_at(JobId id) {
    const auto known = model_.jobs.find(id);
    if (known == model_.jobs.end()) {
      EXPECT_EQ(store().find(id), std::nullopt) << id;
      return;
    }
    EXPECT_EQ(store().find(id), known->second.record);
    EXPECT_EQ(store().body(known->second.record.body_id()), known->second.body);
  }

  void look_at_all() {
    for (std::uint32_t tube = 0; tube < 6; ++tube) {
      EXPECT_EQ(store().scan_due(tube, {}, 1'000'000), model_.scan_due(tube, {}, 1'000'000));
      EXPECT_EQ(store().scan_buried(tube, 0, 1'000'000), model_.scan_buried(tube, 0, 1'000'000));
    }
    for (JobId id = 0; id < next_id_; ++id) look_at(id);
    EXPECT_EQ(store().scan_ended_keys(0, 1'000'000), model_.scan_ended_keys(0, 1'000'000));
    look_at_keys();
    Recovered recovered = store().recover();
    std::sort(
        recovered.tubes.begin(), recovered.tubes.end(),
        [](const TubeRecord& left, const TubeRecord& right) { return left.number < right.number; });
    std::vector<TubeRecord> tubes;
    for (const auto& [number, record] : model_.tubes) tubes.push_back(record);
    EXPECT_EQ(recovered.tubes, tubes);
    EXPECT_EQ(recovered.watermarks, model_.watermarks);
    std::map<std::string, ScheduleRecord> schedules;
    for (const ScheduleRecord& record : recovered.schedules) schedules[record.name] = record;
    EXPECT_EQ(schedules, model_.schedules);
  }

  void reopen() {
    medium_.reopen();
    if (store().sync() == 0) appended_ = 0;  // the count begins anew
  }

  std::mt19937_64 random_;
  Medium medium_;
  StoreModel model_;
  JobId next_id_ = 1;
  std::uint64_t burials_ = 0;
  Sequence appended_ = 0;
};

template <class Medium>
class StoreHistory : public testing::Test {};

TYPED_TEST_SUITE(StoreHistory, Media);

TYPED_TEST(StoreHistory, IsAsItsModelIs) {
  const std::uint64_t seed = seed_or(std::random_device()());
  RandomHistory<TypeParam>(seed).run(5'000);
}

}  // namespace
}  // namespace carillon::queue
