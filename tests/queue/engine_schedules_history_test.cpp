// Ten years of schedules on a virtual clock: with crashes, boots, appends that fail, a wall clock
// that is wrong for a while, and zones that are changed. Beside them, the list of all moments at
// which they should occur, made by trying every minute.
//
// An occurrence is *sheltered* if the engine ran, could append, and had the right time when it
// came, and from some seconds before. What must hold:
//  - A sheltered occurrence fires exactly once; one of a schedule that catches up all is as good as
//    sheltered.
//  - No other fires more than once.
//  - What falls into a wrong clock fires if `catch-up` allows it when the clock is put right.
//  - No job is handed out before its occurrence while the clock is right.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/engine.h"
#include "queue/failing_store.h"
#include "queue/seed.h"
#include "queue/test_calendar.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

constexpr std::uint64_t kMs = 1'000'000;  // ns
constexpr UtcMs kBegin = 1'700'000'000'000;
constexpr UtcMs kEnd = kBegin + 3'652 * kDay;

// What has been said of a schedule, and from when to when that held.
struct Generation {
  std::string name;
  Schedule schedule;
  UtcMs from = 0;
  UtcMs to = kEnd;
};

class Decade {
 public:
  explicit Decade(std::uint64_t seed) : random_(seed) { start(); }

  void run() {
    for (const char* const cron : {"daily 02:30", "daily 13:00"}) add(cron);
    add_every(7 * kHour + 780 * kSecond);
    add_every(kDay);
    add_every(2 * kHour);
    while (true_ < kEnd && !testing::Test::HasFailure()) step();
    be_right();
    pass(kDay);
    settle();
    work(true);
    engine_->check_invariants();
    judge();
  }

 private:
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

  Now now() const {
    return {.utc_ns = (true_ + static_cast<UtcMs>(error_)) * kMs,
            .mono_ns = (true_ - booted_) * kMs};
  }
  void start() {
    engine_ = std::make_unique<Engine>(
        store_,
        EngineOptions{.calendar = TestCalendar::calendar(), .step = 1 + below(100), .boot = boot_},
        now());
    client_ = engine_->connect();
  }

  // --- The schedules.

  void add(const std::string& cron) {
    for (const CatchUp catch_up : {CatchUp::kNone, CatchUp::kLast, CatchUp::kAll}) {
      Schedule schedule{.cron = cron, .zone = "Summer", .catch_up = catch_up};
      schedule.run_after_gap = chance(50);
      add(schedule);
    }
  }
  void add_every(Millis every) {
    for (const CatchUp catch_up : {CatchUp::kNone, CatchUp::kLast, CatchUp::kAll})
      add(Schedule{.every = every, .catch_up = catch_up});
  }
  void add(Schedule schedule) {
    schedule.catch_up_window = chance(50) ? kMaxScheduleSpan : kShort;
    schedule.overlap = Overlap::kAllow;
    const std::string name = "schedule-" + std::to_string(current_.size());
    current_.push_back(generations_.size());
    set(name, std::move(schedule));
  }
  // Its jobs name the generation.
  void set(const std::string& name, Schedule schedule) {
    schedule.body = std::to_string(generations_.size());
    engine_->set_schedule(now(), name, schedule);
    schedule = engine_->schedule(now(), name, 0)->record.schedule;
    generations_.push_back({.name = name, .schedule = schedule, .from = true_});
  }
  void change_zone() {
    std::size_t& current = current_[below(current_.size())];
    Generation& before = generations_[current];
    if (before.schedule.cron.empty()) return;
    const char* const zones[] = {"Summer", "UTC", "Later"};
    Schedule schedule = before.schedule;
    schedule.zone = zones[below(3)];
    if (schedule.zone == before.schedule.zone) return;
    before.to = true_;
    current = generations_.size();
    const std::string name = before.name;
    set(name, schedule);
  }

  // --- What happens.

  // Catches up all of an hour.
  static constexpr Millis kShort = kHour;

  bool wrong() const { return error_ != 0; }
  void step() {
    const std::uint64_t what = below(1'000);
    if (what < 3)
      crash(below(5 * kSecond), chance(30));
    else if (what < 4)
      crash(below(3 * kDay), chance(30));
    else if (what < 6)
      store_.faults.appends = !store_.faults.appends;
    else if (what < 7)
      for (int n = 0; n < 3; ++n) be_wrong();
    else if (what < 25)
      be_right();
    else if (what < 28 && !wrong() && !store_.faults.appends)
      change_zone();
    else if (what < 200)
      work(chance(50));
    else
      go_on(below(chance(50) ? kDay : kHour));
  }

  // Nothing that comes from `true_ - 11 s` until the trouble is over is sheltered.
  void begin_trouble() {
    if (troubles_.empty() || troubles_.back().second != 0) troubles_.emplace_back(true_, 0);
    troubles_.back().first = std::min(troubles_.back().first, true_ - 11 * kSecond);
  }
  void end_trouble_if_none() {
    if (wrong() || store_.faults.appends || troubles_.empty()) return;
    if (troubles_.back().second == 0) troubles_.back().second = true_ + 2 * kSecond;
  }

  void crash(Millis down, bool boots) {
    begin_trouble();
    engine_.reset();
    true_ += down;
    if (boots) {
      boot_ += "'";
      booted_ = true_ - 1;
    } else if (chance(30)) {
      error_ = 0;  // while the server is down
    }
    store_.faults.appends = false;
    start();
    settle();
    end_trouble_if_none();
  }
  void be_wrong() {
    begin_trouble();
    error_ = static_cast<std::int64_t>(1 + below(chance(50) ? 30 * kDay : 60 * kSecond));
    if (chance(50)) error_ = -error_;
    if (chance(50)) return;
    settle();
    pass(below(chance(50) ? 2 * kHour : 20 * kSecond));
    be_right();
  }
  void be_right() {
    const bool was_wrong = std::exchange(error_, 0) != 0;
    if (store_.faults.appends) begin_trouble();
    store_.faults.appends = false;
    settle();
    end_trouble_if_none();
    if (was_wrong) put_right_.push_back(true_);
  }

  void advance() {
    try {
      engine_->advance(now());
    } catch (const StoreError&) {
      EXPECT_TRUE(store_.faults.appends);
    }
  }
  void settle() {
    advance();
    for (auto wake = engine_->next_wakeup(); wake && *wake <= now().mono_ns;
         wake = engine_->next_wakeup())
      advance();
  }
  // The engine is called when it wants to be.
  void pass(Millis ms) {
    const UtcMs until = true_ + ms;
    while (true_ < until) {
      const auto wake = engine_->next_wakeup();
      const UtcMs at = wake ? booted_ + (*wake + kMs - 1) / kMs : until;
      true_ = std::min(std::max(at, true_), until);
      settle();
    }
  }
  void go_on(Millis ms) {
    if (!store_.faults.appends) return pass(ms);
    begin_trouble();
    pass(std::min<Millis>(ms, 5 * kSecond));
    if (chance(20)) be_right();
  }

  // Works off ready jobs: all, or some.
  void work(bool all) {
    if (store_.faults.appends) return;
    while (all || chance(80)) {
      const auto got = engine_->reserve(client_, now(), 0);
      if (got->kind != Delivery::Kind::kReserved) return;
      const JobRecord record = *store_.find(got->job.id);
      const std::size_t generation = std::stoul(store_.body(got->job.body_id));
      EXPECT_TRUE(wrong() || record.due <= true_) << generations_[generation].name;
      ++fired_[{generation, record.due}];
      EXPECT_TRUE(engine_->remove(client_, now(), got->job.id).done);
    }
  }

  // --- The reference.

  static std::vector<UtcMs> reference(const Generation& generation) {
    const Schedule& schedule = generation.schedule;
    std::vector<UtcMs> all;
    if (schedule.every != 0) {
      for (UtcMs at = schedule.start.value_or(0); at < generation.to; at += schedule.every)
        all.push_back(at);
    } else {
      for (const Occurrence& occurrence : TestCalendar::all(schedule.cron, schedule.zone)) {
        const bool in_gap = occurrence.clocks == Occurrence::Clocks::kAfterGap;
        if (!in_gap || schedule.run_after_gap) all.push_back(occurrence.at);
      }
    }
    std::erase_if(all,
                  [&generation](UtcMs at) { return at <= generation.from || at >= generation.to; });
    return all;
  }
  bool sheltered(UtcMs at) const {
    return std::none_of(troubles_.begin(), troubles_.end(), [at](const auto& trouble) {
      return trouble.first <= at && (trouble.second == 0 || at <= trouble.second);
    });
  }
  // The occurrence fell into a wrong clock that was put right so soon that it fires then.
  bool fires_late(const Schedule& schedule, UtcMs at) const {
    const Millis window = schedule.catch_up == CatchUp::kAll ? schedule.catch_up_window : 0;
    const auto right = std::lower_bound(put_right_.begin(), put_right_.end(), at);
    return right != put_right_.end() && *right - at <= std::max(window, 10 * kSecond);
  }
  void judge() {
    std::size_t sheltered_ones = 0;
    std::size_t caught_up = 0;
    std::size_t fell_into_wrong = 0;
    for (std::size_t n = 0; n < generations_.size(); ++n) {
      const Generation& generation = generations_[n];
      std::set<UtcMs> known;
      for (const UtcMs at : reference(generation)) {
        known.insert(at);
        const auto found = fired_.find({n, at});
        const int times = found == fired_.end() ? 0 : found->second;
        const bool ends_in_trouble = !sheltered(generation.to);
        const bool is_all = generation.schedule.catch_up == CatchUp::kAll && !ends_in_trouble &&
                            (generation.schedule.catch_up_window == kMaxScheduleSpan ||
                             fires_late(generation.schedule, at));
        if (!sheltered(at) && !is_all) continue;
        ++(sheltered(at) ? sheltered_ones : caught_up);
        fell_into_wrong += fires_late(generation.schedule, at) && !sheltered(at) ? 1U : 0U;
        EXPECT_EQ(times, 1) << generation.name << " generation " << n << " at " << at;
      }
      // While the clock was wrong, it may have fired what is before or after its time.
      for (const auto& [one, times] : fired_) {
        if (one.first != n) continue;
        EXPECT_EQ(times, 1) << generation.name << ' ' << one.second;
        if (one.second <= generation.from || one.second >= generation.to) continue;
        EXPECT_TRUE(known.contains(one.second)) << generation.name << ' ' << one.second;
      }
    }
    std::printf("%zu generations, %zu troubles, %zu sheltered, %zu caught up, %zu of wrong times\n",
                generations_.size(), troubles_.size(), sheltered_ones, caught_up, fell_into_wrong);
    EXPECT_GT(sheltered_ones, 20'000u);
  }

  std::mt19937_64 random_;
  FailingStore store_;
  std::unique_ptr<Engine> engine_;
  ClientId client_ = 0;
  UtcMs true_ = kBegin;
  std::int64_t error_ = 0;
  UtcMs booted_ = kBegin - 1'000;
  std::string boot_ = "boot";
  std::vector<Generation> generations_;
  std::vector<std::size_t> current_;
  std::vector<std::pair<UtcMs, UtcMs>> troubles_;
  std::vector<UtcMs> put_right_;
  std::map<std::pair<std::size_t, UtcMs>, int> fired_;
};

TEST(SchedulesHistory, InTenYearsEachOccurrenceFiresOnce) {
  const std::uint64_t seed = seed_or(std::random_device()());
  Decade(seed).run();
}

}  // namespace
}  // namespace carillon::queue
