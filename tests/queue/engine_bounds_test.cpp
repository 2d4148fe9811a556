// Random histories with tiny bounds on memory, and with crashes: every job comes once and not
// early, however often jobs leave memory and are loaded again.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "queue/seed.h"
#include "queue/virtual_queue.h"

namespace carillon::queue {
namespace {

class TightHistory {
 public:
  explicit TightHistory(std::uint64_t seed)
      : random_(seed),
        queue_(
            {.load_ahead = below(50), .max_loaded_per_tube = 1 + below(6), .step = 1 + below(3)}) {
    connect();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      queue_.engine().check_invariants();
    }
    drain();
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Engine& engine() { return queue_.engine(); }

  void connect() {
    client_ = engine().connect();
    for (const char* tube : {"a", "b"}) engine().watch(client_, tube);
  }

  void step() {
    engine().use(client_, std::vector<const char*>{"default", "a", "b"}[below(3)]);
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
        return put();
      case 3:
        return reserve();
      case 4:
        return finish();
      case 5:
        kick_all(engine(), client_, queue_.now(), below(8));
        return after_kick();
      case 6:
        if (below(20) == 0) {
          queue_.crash(below(100));
          connect();
        }
        return;
      default:
        pass(below(60));
    }
  }

  void pass(Millis ms) {
    queue_.pass(ms);
    for (int calls = 0; engine().next_wakeup() && *engine().next_wakeup() <= queue_.now().mono_ns;
         ++calls) {
      ASSERT_LT(calls, 5'000) << "there is always more to do at once";
      queue_.pass(0);
    }
  }

  void put() {
    const Millis delay = below(3) == 0 ? 0 : below(400);
    const JobId id = queue_.put(client_, "x", {.due_in = delay, .ttr = 1'000'000});
    due_[id] = queue_.utc() + delay;
  }

  void reserve() {
    const auto got = engine().reserve(client_, queue_.now(), 0);
    if (got->kind == Delivery::Kind::kReserved) came(got->job.id);
  }

  void came(JobId id) {
    ASSERT_TRUE(due_.contains(id)) << "job " << id << " was deleted, or never put";
    ASSERT_GE(queue_.utc(), due_[id]) << "job " << id << " is early";
    held_ = id;
  }

  void finish() {
    if (held_ == 0) return;
    switch (below(3)) {
      case 0:
        if (engine().remove(client_, queue_.now(), held_).done) due_.erase(held_);
        break;
      case 1: {
        const Millis delay = below(300);
        if (engine().release(client_, queue_.now(), held_, 0, delay).done && delay > 0)
          due_[held_] = queue_.utc() + delay;
        break;
      }
      default:
        engine().bury(client_, queue_.now(), held_, 0);
        break;
    }
    held_ = 0;
  }

  // Kicked jobs are ready before their time.
  void after_kick() {
    for (auto& [id, due] : due_) {
      const auto stats = engine().job_stats(queue_.now(), id);
      ASSERT_TRUE(stats) << "job " << id << " is lost";
      if (stats->record.due < due) due = stats->record.due;
    }
  }

  void drain() {
    for (const char* tube : {"default", "a", "b"}) {
      engine().use(client_, tube);
      kick_all(engine(), client_, queue_.now(), UINT64_MAX);
    }
    engine().disconnect(client_, queue_.now());
    connect();
    for (int turns = 0; !due_.empty() && turns < 200'000 && !testing::Test::HasFailure(); ++turns) {
      const auto got = engine().reserve(client_, queue_.now(), 0);
      if (got->kind != Delivery::Kind::kReserved) {
        pass(10);
        continue;
      }
      ASSERT_TRUE(engine().remove(client_, queue_.now(), got->job.id).done);
      ASSERT_EQ(due_.erase(got->job.id), 1u) << "job " << got->job.id << " came twice";
    }
    EXPECT_TRUE(due_.empty()) << due_.size() << " jobs never came";
    engine().check_invariants();
  }

  std::mt19937_64 random_;
  VirtualQueue queue_;
  ClientId client_ = 0;
  JobId held_ = 0;
  std::map<JobId, UtcMs> due_;  // due times of the jobs that are not deleted
};

class EngineBounds : public testing::TestWithParam<int> {};

TEST_P(EngineBounds, EveryJobComesOnceAndNotEarly) {
  const std::uint64_t seed = seed_or(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  TightHistory(seed).run(1'500);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineBounds, testing::Range(1, 21));

}  // namespace
}  // namespace carillon::queue
