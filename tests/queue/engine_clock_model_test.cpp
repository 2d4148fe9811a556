// Random histories with a wall clock that is wrong again and again. A model knows the right time:
// when each job may come at the earliest and must be there at the latest. A wrong clock may harm
// only what is decided while it is wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "carillon/queue/never_runs.h"
#include "queue/seed.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

constexpr Millis kTtr = 20'000;

class WrongClocks {
 public:
  WrongClocks(std::uint64_t seed, const EngineOptions& options, bool boots)
      : random_(seed), boots_(boots), queue_(options) {
    meet_clients();
  }

  void run(int steps) {
    for (int n = 0; n < steps && !testing::Test::HasFailure(); ++n) {
      step();
      settle();
      if (one_in(20)) queue_.engine().check_invariants();
      if (one_in(20)) check_that_none_is_late();
    }
    put_right();
    pass(1);
    check_that_none_is_late();
    drain();
  }

 private:
  struct Job {
    std::string tube;
    // By the right clock, in ms. A delay is counted by the right clock.
    UtcMs earliest = 0;
    UtcMs latest = 0;
    bool delay = false;
    // By the right clock, too. 0: it does not expire.
    UtcMs expires = 0;
    // The right time at which the ttr of the reservation is over; 0 if the job is not reserved.
    UtcMs held_until = 0;
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  Engine& engine() { return queue_.engine(); }

  UtcMs right() const { return queue_.utc() - static_cast<UtcMs>(error_); }
  // How late jobs may be, in ms: by so little that a job is not stored anew, and 2 for each step of
  // the clock.
  Millis slack() const { return 200 + 2 * steps_; }

  void meet_clients() {
    worker_ = engine().connect();
    waiting_ = engine().connect();
    // The third only watches: a tube that is forgotten is not paused any more.
    for (const ClientId client : {worker_, waiting_, engine().connect()}) {
      for (const char* tube : {"a", "b"}) engine().watch(client, tube);
    }
    waits_ = false;
    paused_until_.clear();
  }

  void step() {
    switch (below(19)) {
      case 0:
        return one_in(2) || (boots_ && wrong_since_boot_) ? put_right() : set_wrong();
      case 1:
        return one_in(4) ? restart() : void();
      case 2:
      case 3:
      case 4:
      case 5:
        return put();
      case 6:
        return wait();
      case 7:
      case 8:
        return reserve();
      case 9:
        return reserve_early();
      case 10:
        return release();
      case 11:
        return one_in(4) ? disconnect() : void();
      case 12:
        return one_in(4) ? pause() : void();
      case 13:
        return put_with_key();
      case 14:
        return put_batch();
      case 15:
        return end_one_that_has_a_key();
      default:
        return pass(1 + below(one_in(5) ? 30'000 : 300));
    }
  }

  // --- The clock.

  void set_error(std::int64_t error) {
    if (error_ != 0) wrong_for_long_ = wrong_for_long_ || right() >= wrong_from_ + 60'000;
    if (error_ == 0) wrong_from_ = right();
    queue_.step_wall_clock(error - error_);
    if (error != error_) ++steps_;
    error_ = error;
  }
  void put_right() {
    set_error(0);
    booted_wrong_ = false;
    if (boots_) pass(1);  // the engine sees that it is right, before the machine may boot again
  }
  void set_wrong() {
    const std::int64_t size = std::vector<std::int64_t>{
        5, 700, 1'000, 20'000, 40'000, Step::kHour, 87'600 * Step::kHour}[below(7)];
    set_error(one_in(2) ? size : -size);
    wrong_since_boot_ = true;
  }
  void pass(Millis ms) {
    queue_.pass(ms);
    settle();
  }

  // --- Lives.

  void restart() {
    if (boots_ && !booted_wrong_) {
      boot();
    } else {
      const Millis down = one_in(2) ? 0 : below(5'000);
      queue_.add_ns(down * kMs);
      if (one_in(3)) one_in(2) ? put_right() : set_wrong();
      queue_.restart();
    }
    for (auto& [id, job] : jobs_) job.held_until = 0;
    meet_clients();
  }

  // From one boot to the next the clock is wrong at most once, and not all the time. It is right
  // before or after a boot.
  void boot() {
    const std::int64_t before = error_;
    // Steady time is stored with appends only. Twice: for a clock that was wrong before the boot,
    // and for one that is wrong after it.
    down_ += 2 * (right() - last_append_ + 5'000);
    wrong_since_boot_ = false;
    if (error_ == 0 && one_in(3)) {
      set_wrong();
    } else {
      set_error(0);
    }
    const std::int64_t moved = error_ - before;
    queue_.step_wall_clock(-moved);
    queue_.crash(below(5'000), moved);
    booted_wrong_ = error_ != 0;
  }

  // --- Commands.

  Millis a_delay() {
    return std::vector<Millis>{0,
                               1 + below(100),
                               below(5'000),
                               20'000 + below(50'000),
                               60'000 + below(200'000),
                               3'000'000 + below(3'000'000)}[below(6)];
  }
  void counts_from_now(Job& job, Millis delay) {
    job.delay = true;
    job.earliest = job.latest = right() + delay;
  }

  void put() {
    const std::string tube = one_in(2) ? "a" : "b";
    const ClientId producer = worker_;
    engine().use(producer, tube);
    PutOrder order{.priority = static_cast<Priority>(below(3)), .ttr = kTtr};
    Job job{.tube = tube};
    const Millis delay = a_delay();
    if (one_in(2)) {
      order.due_in = delay;
      counts_from_now(job, delay);
    } else {
      // The client's clock is right.
      order.due_at = right() + delay;
      job.earliest = job.latest = *order.due_at;
    }
    // A job that expires is never handed out after that, and is not lost before it, once the clock
    // is right.
    if (one_in(6)) {
      const Millis age = 1 + delay + below(one_in(2) ? 2'000 : 4'000'000);
      job.expires = right() + age;
      one_in(2) ? void(order.expires_in = age) : void(order.expires_at = job.expires);
    }
    JobId id = 0;
    try {
      id = queue_.put(producer, "body", order);
    } catch (const NeverRuns&) {
      EXPECT_NE(error_, 0) << "a moment and a duration, by a clock that is wrong";
      return;
    }
    ASSERT_NE(id, 0U);
    last_append_ = right();
    jobs_.emplace(id, job);
  }

  // --- Windows: they end by the right clock, and not before.

  // A window lasts up to `kLate` longer after a boot.
  static constexpr Millis kLate = 61'000;
  struct Window {
    JobId id = 0;       // the job's; 0 if it is gone
    UtcMs until = 0;    // by the right clock
    Millis window = 0;  // while the job is there
  };
  Millis a_window() { return 1 + below(one_in(2) ? 5'000 : 4'000'000); }

  void expect_window(const char* what, const Window& window, bool exists) {
    const UtcMs now = right();
    if (exists && error_ == 0) {
      EXPECT_LE(now, window.until + (boots_ ? kLate + down_ : 0)) << what;
    } else if (!exists) {
      EXPECT_GE(now, window.until)
          << what << " of the job " << window.id << ", clock wrong by " << error_ << " ms";
    }
  }
  void put_with_key() {
    const std::string key(1, static_cast<char>('a' + below(4)));
    Window& known = keys_[key];
    engine().use(worker_, "keys");
    const Millis window = a_window();
    const PutOutcome put = engine().put(
        worker_, queue_.now(), {.due_in = 999'999'999, .key = key, .key_window = window}, "body");
    const bool exists = put.result == PutOutcome::Result::kExists;
    if (known.id != 0) {
      EXPECT_TRUE(exists);
      return;
    }
    expect_window("a window", known, exists);
    if (exists) return;
    last_append_ = right();
    known = {.id = put.id, .window = window};
  }
  void end_one_that_has_a_key() {
    for (auto& [key, window] : keys_) {
      if (window.id == 0) continue;
      // Its work is done, so the window counts.
      ASSERT_TRUE(engine().reserve_job(worker_, queue_.now(), window.id));
      ASSERT_TRUE(engine().remove(worker_, queue_.now(), window.id).done);
      last_append_ = right();
      window = {.until = right() + window.window};
      return;
    }
  }
  void put_batch() {
    const std::string token(1, static_cast<char>('t' + below(2)));
    engine().use(worker_, "keys");
    const std::vector<NewJob> jobs{{.order = {.due_in = 999'999'999}, .body = "body"}};
    const Millis window = a_window();
    const BatchOutcome put =
        engine().put_all(worker_, queue_.now(), jobs, {.once = token, .window = window});
    const bool exists = put.result == BatchOutcome::Result::kAlready;
    expect_window("a token", tokens_[token], exists);
    if (exists) return;
    last_append_ = right();
    tokens_[token] = {.until = right() + window};
  }
  // Returns true if the job is gone because it has expired. A moment in doubt counts after a
  // minute: if the clock is wrong for longer than that, it is believed.
  bool is_gone(JobId id, const Job& job) {
    if (job.expires == 0 || engine().job_stats(queue_.now(), id)) return false;
    EXPECT_TRUE(right() >= job.expires || wrong_for_long_) << "job " << id << " expired early";
    return true;
  }

  void wait() {
    if (waits_) return;
    const auto now = engine().reserve(waiting_, queue_.now(), {});
    waits_ = !now;
    if (now && now->kind == Delivery::Kind::kReserved) take(*now);
  }

  void reserve() {
    const auto got = engine().reserve(worker_, queue_.now(), 0);
    if (got->kind == Delivery::Kind::kReserved) take(*got);
  }

  std::optional<JobId> a_job() {
    if (jobs_.empty()) return std::nullopt;
    return std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(below(jobs_.size())))->first;
  }

  void reserve_early() {
    const auto id = a_job();
    if (!id) return;
    const auto got = engine().reserve_job(worker_, queue_.now(), *id);
    settle();
    Job& job = jobs_.at(*id);
    if (job.expires != 0) {
      if (got) expect_not_expired(*id, job);
    } else {
      EXPECT_EQ(got.has_value(), right() >= job.held_until) << "job " << *id;
    }
    if (got) job.held_until = right() + kTtr;
    if (got && one_in(3)) remove(*id);
  }

  void release() {
    for (auto& [id, job] : jobs_) {
      if (job.held_until <= right() || one_in(2)) continue;
      const Millis delay = one_in(2) ? 0 : a_delay();
      const bool was_due = right() >= job.earliest && error_ == 0;
      if (!engine().release(worker_, queue_.now(), id, 0, delay).done) continue;
      job.held_until = 0;
      if (delay > 0) {
        counts_from_now(job, delay);
      } else if (!was_due) {
        // If it was due by the wrong clock, it keeps its own time; else it is ready.
        job.earliest = std::min(job.earliest, right());
        job.latest = std::max(job.latest, right());
      }
      return;
    }
  }

  void disconnect() {
    if (waits_) engine().stop_waiting(waiting_);
    engine().disconnect(worker_, queue_.now());
    engine().disconnect(waiting_, queue_.now());
    for (auto& [id, job] : jobs_) job.held_until = 0;
    settle();
    const auto paused = paused_until_;
    meet_clients();
    paused_until_ = paused;
  }

  void pause() {
    const std::string tube = one_in(2) ? "a" : "b";
    const Millis duration = below(10'000);
    const bool paused = engine().pause(queue_.now(), tube, duration);
    if (!paused) return;
    paused_until_[tube] = 0;
    settle();  // a pause of 0 hands jobs out, and some were handed out just before
    paused_until_[tube] = right() + duration;
  }

  void remove(JobId id) {
    EXPECT_TRUE(engine().remove(worker_, queue_.now(), id).done);
    jobs_.erase(id);
  }

  // --- What must hold.

  // Goes on until there is nothing to do now, and checks each job that is handed out.
  void settle() {
    while (const auto wake = engine().next_wakeup()) {
      if (*wake > queue_.now().mono_ns) break;
      engine().advance(queue_.now());
    }
    for (const Delivery& delivery : engine().take_deliveries()) {
      waits_ = false;
      if (delivery.kind == Delivery::Kind::kReserved) take(delivery);
    }
  }

  void expect_not_expired(JobId id, const Job& job) {
    if (error_ != 0) return;
    EXPECT_LT(right(), job.expires + slack() + down_) << "expired: job " << id;
  }
  void take(const Delivery& delivery) {
    const JobId id = delivery.job.id;
    ASSERT_TRUE(jobs_.contains(id)) << "job " << id << " fired again";
    Job& job = jobs_[id];
    const std::string what = "job " + std::to_string(id) + ", clock wrong by " +
                             std::to_string(error_) + " ms, right time " + std::to_string(right()) +
                             ", due " + std::to_string(job.earliest);
    EXPECT_GE(right(), job.held_until) << "fired twice: " << what;
    EXPECT_GE(right(), paused_until_[job.tube]) << "its tube is paused: " << what;
    if (error_ == 0 || (job.delay && !boots_)) {
      EXPECT_GE(right(), job.earliest) << "early: " << what;
    }
    job.held_until = right() + kTtr;
    if (job.expires != 0) expect_not_expired(id, job);
    if (!one_in(4)) return;
    if (delivery.client == worker_) remove(id);
  }

  void check_that_none_is_late() {
    if (error_ != 0) return;
    engine().advance(queue_.now());  // the engine learns that the clock was put right
    settle();
    std::erase_if(jobs_, [this](const auto& each) { return is_gone(each.first, each.second); });
    for (const auto& [id, job] : jobs_) {
      if (job.latest + slack() + down_ > right() || job.held_until > right()) continue;
      if (job.expires != 0 && job.expires <= right() + slack() + down_) continue;
      const JobState state = engine().job_stats(queue_.now(), id)->state;
      EXPECT_EQ(static_cast<int>(state), static_cast<int>(JobState::kReady))
          << "late: job " << id << ", right time " << right() << ", due " << job.latest;
    }
  }

  // Each job comes, once.
  void drain() {
    engine().disconnect(worker_, queue_.now());
    engine().disconnect(waiting_, queue_.now());
    engine().take_deliveries();
    worker_ = engine().connect();
    for (const char* tube : {"a", "b"}) engine().watch(worker_, tube);
    UtcMs last = right();
    for (auto& [id, job] : jobs_) {
      last = std::max(last, job.latest + slack() + down_);
      job.held_until = 0;
    }
    pass(last - right() + 10'000);
    for (int n = 0; n < 100 && !jobs_.empty(); ++n) {
      pass(n == 50 ? kLate : 100);
      std::erase_if(jobs_, [this](const auto& each) { return is_gone(each.first, each.second); });
      while (true) {
        const auto got = engine().reserve(worker_, queue_.now(), 0);
        if (got->kind != Delivery::Kind::kReserved) break;
        ASSERT_TRUE(jobs_.contains(got->job.id)) << "job " << got->job.id << " fired twice";
        remove(got->job.id);
      }
    }
    EXPECT_TRUE(jobs_.empty()) << jobs_.size() << " jobs did not come";
    engine().check_invariants();
  }

  std::mt19937_64 random_;
  bool boots_;
  VirtualQueue queue_;
  std::int64_t error_ = 0;  // wall clock minus right clock, in ms
  bool booted_wrong_ = false;
  bool wrong_since_boot_ = false;
  Millis steps_ = 0;
  Millis down_ = 0;
  ClientId worker_ = 0;
  ClientId waiting_ = 0;
  bool waits_ = false;
  UtcMs wrong_from_ = 0;
  bool wrong_for_long_ = false;  // since then all moments may have expired
  std::map<std::string, Window> keys_;
  std::map<std::string, Window> tokens_;
  std::map<JobId, Job> jobs_;
  std::map<std::string, UtcMs> paused_until_;
  UtcMs last_append_ = right();
};

class EngineWrongClocks : public testing::TestWithParam<int> {
 protected:
  static EngineOptions options(std::uint64_t seed) {
    return {.load_ahead = seed % 2 == 0 ? 60'000 : 1 + seed * 37 % 500,
            .max_loaded_per_tube = seed % 3 == 0 ? 5U : 1'000'000U,
            .step = seed % 4 < 2 ? 1'000U : 3U};
  }
};

TEST_P(EngineWrongClocks, HarmOnlyWhatIsDecidedMeanwhile) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  WrongClocks(seed, options(seed), false).run(2'000);
}

// From one boot of the machine to the next the clock is wrong at most once, and not all the time.
TEST_P(EngineWrongClocks, HarmOnlyWhatIsDecidedMeanwhileOverBoots) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  WrongClocks(seed, options(seed), true).run(2'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineWrongClocks, testing::Range(1, 25));

}  // namespace
}  // namespace carillon::queue
