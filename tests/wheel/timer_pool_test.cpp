// TimerPool: ids that stay safe, payloads that throw or call the pool, and the calls of TimerSet by
// id.
#include "carillon/wheel/timer_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "wheel/model_test.h"
#include "wheel/models.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

class Pool : public ::testing::Test {
 public:
  static const ModelKinds& kinds() { return models(); }
};

MODEL_TEST(Pool, HandsOverTheIdAndThePayload) {
  TimerPool<std::unique_ptr<std::string>, ModelUnderTest> pool(100);
  const TimerId tea = pool.schedule(Moment{150}, std::make_unique<std::string>("tea"));
  EXPECT_TRUE(pool.contains(tea));
  EXPECT_EQ(pool.expiry(tea), 150U);
  EXPECT_EQ(pool.size(), 1U);
  std::unique_ptr<std::string> got;
  EXPECT_EQ(pool.advance(150,
                         [&](TimerId id, std::unique_ptr<std::string>&& text) {
                           EXPECT_EQ(id, tea);
                           EXPECT_FALSE(pool.contains(id)) << "it has fired";
                           EXPECT_FALSE(pool.cancel(id));
                           got = std::move(text);
                         }),
            1U);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, "tea");
  EXPECT_TRUE(pool.empty());
}

MODEL_TEST(Pool, CancelIsTrueOnce) {
  TimerPool<int, ModelUnderTest> pool;
  const TimerId id = pool.schedule(Moment{10}, 1);
  EXPECT_TRUE(pool.cancel(id));
  EXPECT_FALSE(pool.cancel(id));
  EXPECT_FALSE(pool.contains(id));
  EXPECT_FALSE(pool.reschedule(id, Moment{20}));
  EXPECT_EQ(pool.expiry(id), std::nullopt);
  EXPECT_EQ(pool.advance(100, [](TimerId, int&&) {}), 0U);
}

MODEL_TEST(Pool, CancelDestroysThePayloadAtOnce) {
  TimerPool<std::shared_ptr<int>, ModelUnderTest> pool;
  const auto payload = std::make_shared<int>(1);
  const TimerId id = pool.schedule(Moment{10}, payload);
  EXPECT_EQ(payload.use_count(), 2);
  pool.cancel(id);
  EXPECT_EQ(payload.use_count(), 1);
}

MODEL_TEST(Pool, RescheduleMovesTheExpiry) {
  TimerPool<int, ModelUnderTest> pool;
  const TimerId id = pool.schedule(Moment{10}, 1);
  EXPECT_TRUE(pool.reschedule(id, Moment{5000}));
  EXPECT_EQ(pool.expiry(id), 5000U);
  EXPECT_EQ(pool.advance(4999, [](TimerId, int&&) {}), 0U);
  EXPECT_TRUE(pool.reschedule(id, Moment{5001}));
  EXPECT_EQ(pool.advance(5001, [](TimerId, int&&) {}), 1U);
}

MODEL_TEST(Pool, ATimerWithSlackFiresAtTheRoundestTickOfItsRange) {
  TimerPool<int, ModelUnderTest> pool;
  const TimerId first = pool.schedule(Moment{1000}, 1, 50);
  const TimerId second = pool.schedule_after(1000, 2, 23);
  EXPECT_EQ(pool.expiry(first), 1024U);
  EXPECT_EQ(pool.expiry(second), 1008U);
  EXPECT_TRUE(pool.reschedule(first, Moment{1000}, 23));
  EXPECT_TRUE(pool.reschedule_after(second, 1000, 50));
  EXPECT_EQ(pool.expiry(first), 1008U);
  EXPECT_EQ(pool.expiry(second), 1024U);
  EXPECT_TRUE(pool.reschedule(first, Moment{1001}));
  EXPECT_EQ(pool.expiry(first), 1001U);
  EXPECT_EQ(pool.advance(1024, [](TimerId, int&&) {}), 2U);
}

MODEL_TEST(Pool, ADelayCountsFromNow) {
  TimerPool<int, ModelUnderTest> pool(1000);
  const TimerId id = pool.schedule_after(5, 1);
  EXPECT_EQ(pool.expiry(id), 1005U);
  EXPECT_EQ(pool.advance(1004, [](TimerId, int&&) {}), 0U);
  EXPECT_EQ(pool.advance(1005, [](TimerId, int&&) {}), 1U);
}

MODEL_TEST(Pool, AnIdThatWasNeverGivenIsRefused) {
  TimerPool<int, ModelUnderTest> pool;
  EXPECT_FALSE(pool.cancel(TimerId{}));
  pool.schedule(Moment{10}, 1);
  EXPECT_FALSE(pool.contains(TimerId{})) << "the default id names no timer";
  EXPECT_FALSE(pool.cancel(TimerId{12345, 1}));
  EXPECT_FALSE(pool.cancel(TimerId{0xFFFFFFFF, 1}));
}

MODEL_TEST(Pool, AStaleIdNeverTouchesAStrangersTimer) {  // upg-vpp#286, arduino-timer#76
  TimerPool<int, ModelUnderTest> pool;
  const TimerId old = pool.schedule(Moment{10}, 1);
  pool.cancel(old);
  const TimerId stranger = pool.schedule(Moment{20}, 2);
  ASSERT_EQ(stranger.index, old.index) << "the cell was not reused: the test shows nothing";
  EXPECT_FALSE(pool.cancel(old));
  EXPECT_FALSE(pool.reschedule(old, Moment{30}));
  EXPECT_TRUE(pool.contains(stranger));
  EXPECT_EQ(pool.expiry(stranger), 20U);
}

MODEL_TEST(Pool, ACellIsRetiredWhenItsGenerationsAreUsedUp) {
  constexpr std::uint32_t kLastGeneration = 3;
  TimerPool<int, ModelUnderTest, kLastGeneration> pool;
  std::vector<TimerId> past;
  for (int i = 0; i < 10; ++i) {
    const TimerId id = pool.schedule(Moment{10}, i);
    EXPECT_LE(id.generation, kLastGeneration);
    for (const TimerId& old : past) {
      EXPECT_FALSE(old == id) << "an id came back";
      EXPECT_FALSE(pool.contains(old));
    }
    past.push_back(id);
    EXPECT_TRUE(pool.cancel(id));
    pool.check_invariants();
  }
  EXPECT_EQ(past.back().index, 3U) << "ten timers, three to a cell";
}

MODEL_TEST(Pool, APoolWithRetiredCellsReservesAnew) {
  TimerPool<int, ModelUnderTest, 1> pool;
  for (int i = 0; i < 5000; ++i) pool.cancel(pool.schedule(Moment{10}, i));
  pool.reserve(100);
  std::vector<TimerId> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(pool.schedule(Moment{10}, i));
  EXPECT_EQ(pool.size(), 100U);
  pool.check_invariants();
}

struct ThrowsWhenMoved {
  explicit ThrowsWhenMoved(int moves) : moves_left(moves) {}
  ThrowsWhenMoved(ThrowsWhenMoved&& other) : moves_left(other.moves_left - 1) {
    if (moves_left < 0) throw std::runtime_error("moved once too often");
  }
  int moves_left;
};

MODEL_TEST(Pool, APayloadThatThrowsOnMoveLeavesThePoolAsItWas) {
  TimerPool<ThrowsWhenMoved, ModelUnderTest> pool;
  const TimerId first = pool.schedule(Moment{10}, ThrowsWhenMoved(1));
  EXPECT_THROW(pool.schedule(Moment{10}, ThrowsWhenMoved(0)), std::runtime_error);
  pool.check_invariants();
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_TRUE(pool.contains(first));
  EXPECT_EQ(pool.advance(10,
                         [&](TimerId id, ThrowsWhenMoved&& payload) {
                           EXPECT_EQ(id, first);
                           EXPECT_EQ(payload.moves_left, 0) << "firing moves nothing by itself";
                         }),
            1U);
}

MODEL_TEST(Pool, ACallbackThatMovesAThrowingPayloadLosesNoOther) {
  TimerPool<ThrowsWhenMoved, ModelUnderTest> pool;
  pool.schedule(Moment{10}, ThrowsWhenMoved(1));
  pool.schedule(Moment{10}, ThrowsWhenMoved(5));
  int taken = 0;
  const auto take = [&](TimerId, ThrowsWhenMoved&& payload) {
    const ThrowsWhenMoved mine(std::move(payload));
    ++taken;
  };
  EXPECT_THROW(pool.advance(10, take), std::runtime_error);
  pool.check_invariants();
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool.advance(10, take), 1U);
  EXPECT_EQ(taken, 1);
}

MODEL_TEST(Pool, ACallbackMayScheduleAndCancelInThePool) {
  TimerPool<int, ModelUnderTest> pool;
  const TimerId sibling = pool.schedule(Moment{11}, 99);
  pool.schedule(Moment{10}, 0);
  std::vector<int> fired;
  pool.advance(1000, [&](TimerId, int&& payload) {
    const int mine = payload;
    // New cells are made while this payload is in use.
    for (int i = 0; i < 500 && mine == 0; ++i) pool.schedule(Moment{20}, 1000 + i);
    EXPECT_EQ(payload, mine);
    fired.push_back(mine);
    if (mine == 0) pool.cancel(sibling);
  });
  ASSERT_EQ(fired.size(), 501U);
  EXPECT_EQ(fired[500], 1499);
  pool.check_invariants();
}

// A payload whose destructor calls the pool.
struct Reentrant {
  TimerPool<Reentrant, ModelUnderTest>* pool;
  std::optional<TimerId> partner;
  int more = 0;

  Reentrant(TimerPool<Reentrant, ModelUnderTest>* in, std::optional<TimerId> cancels, int schedules)
      : pool(in), partner(cancels), more(schedules) {}
  Reentrant(Reentrant&& other) noexcept
      : pool(std::exchange(other.pool, nullptr)), partner(other.partner), more(other.more) {}
  ~Reentrant() {
    if (pool == nullptr) return;
    if (partner) pool->cancel(*partner);
    if (more > 0) pool->schedule(Moment{50}, Reentrant(pool, std::nullopt, more - 1));
  }
};

MODEL_TEST(Pool, APayloadsDestructorMayCallThePool) {
  TimerPool<Reentrant, ModelUnderTest> pool;
  const TimerId partner = pool.schedule(Moment{30}, Reentrant(&pool, std::nullopt, 0));
  const TimerId id = pool.schedule(Moment{10}, Reentrant(&pool, partner, 2));
  EXPECT_TRUE(pool.cancel(id));
  pool.check_invariants();
  EXPECT_FALSE(pool.contains(partner));
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_EQ(pool.advance(49, [](TimerId, Reentrant&&) {}), 0U);
  EXPECT_EQ(pool.advance(100, [](TimerId, Reentrant&&) {}), 2U)
      << "the one that the destructor scheduled, and the one that its own destructor scheduled";
  EXPECT_TRUE(pool.empty());
  pool.check_invariants();
}

MODEL_TEST(Pool, ClearHandsOverEveryPayload) {
  TimerPool<int, ModelUnderTest> pool;
  for (int i = 1; i <= 100; ++i) pool.schedule(Moment{static_cast<Tick>(i) * 80}, i);
  int sum = 0;
  pool.clear([&](TimerId, int&& payload) { sum += payload; });
  EXPECT_EQ(sum, 5050);
  EXPECT_TRUE(pool.empty());
  pool.check_invariants();
}

MODEL_TEST(Pool, DestroysThePayloadsThatAreLeft) {
  const auto payload = std::make_shared<int>(1);
  {
    TimerPool<std::shared_ptr<int>, ModelUnderTest> pool;
    pool.schedule(Moment{10}, payload);
    pool.schedule(Moment{8000}, payload);
    EXPECT_EQ(payload.use_count(), 3);
  }
  EXPECT_EQ(payload.use_count(), 1);
}

// The pools of the tests above are compiled once, with ModelUnderTest. This test compiles a pool
// with each model, as users do.
template <class Model>
class RandomHistory final : public Pool {
  void TestBody() override;
};

template <class Model>
void RandomHistory<Model>::TestBody() {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    TimerPool<std::uint64_t, Model, 5> pool;
    struct Known {
      TimerId id;
      Tick expiry;
      std::uint64_t payload;
      bool pending;
    };
    std::vector<Known> known;
    for (int step = 0; step < 1500; ++step) {
      const std::uint64_t choice = random() % 8;
      if (choice < 4 || known.empty()) {
        const Tick expiry = pool.now() + random() % 1000;
        const std::uint64_t payload = known.size();
        known.push_back({pool.schedule(Moment{expiry}, payload), expiry, payload, true});
      } else if (choice < 5) {
        Known& timer = known[random() % known.size()];
        ASSERT_EQ(pool.cancel(timer.id), std::exchange(timer.pending, false));
      } else if (choice < 6) {
        Known& timer = known[random() % known.size()];
        const Tick expiry = pool.now() + random() % 2000;
        ASSERT_EQ(pool.reschedule(timer.id, Moment{expiry}), timer.pending);
        timer.expiry = expiry;
      } else {
        pool.advance(pool.now() + random() % 100, [&](TimerId id, std::uint64_t&& payload) {
          Known& timer = known[payload];
          ASSERT_EQ(timer.id, id);
          ASSERT_TRUE(std::exchange(timer.pending, false));
          ASSERT_LE(timer.expiry, pool.now());
        });
      }
      pool.check_invariants();
      Known& timer = known[random() % known.size()];
      ASSERT_EQ(pool.contains(timer.id), timer.pending);
      ASSERT_EQ(pool.expiry(timer.id),
                timer.pending ? std::optional<Tick>(timer.expiry) : std::nullopt);
    }
  }
}

template <class Model>
Pool* new_random_history() {
  return new RandomHistory<Model>;
}

template <class... Each>
bool register_random_histories(const ::testing::Types<Each...>*) {
  (::testing::RegisterTest(("Pool/" + ModelNames::GetName<Each>(0)).c_str(),
                           "EveryIdAnswersTruthfullyInARandomHistory", nullptr, nullptr, __FILE__,
                           __LINE__, &new_random_history<Each>),
   ...);
  return true;
}
[[maybe_unused]] const bool kRandomHistoriesAreRegistered =
    register_random_histories(static_cast<Models*>(nullptr));

TEST(TimerId, IsAKeyOfUnorderedContainers) {
  std::unordered_set<TimerId> ids{{.index = 1, .generation = 2}, {.index = 2, .generation = 1}};
  EXPECT_TRUE(ids.contains({.index = 1, .generation = 2}));
  EXPECT_FALSE(ids.contains({.index = 1, .generation = 1}));
}

}  // namespace
}  // namespace carillon::testing
