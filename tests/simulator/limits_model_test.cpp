// The model of the limits of tubes: which starts it refuses, and when a job must go out.

#include "simulator/limits_model.h"

#include <gtest/gtest.h>

#include "carillon/queue/memory_store.h"
#include "simulator/disk.h"

namespace carillon::simulator {

namespace {

constexpr std::uint64_t kSlack = 2'000'000;

class LimitsModelTest : public testing::Test {
 protected:
  LimitsModelTest() { history.open(store); }

  static queue::Now at(std::uint64_t ms) {
    return {.utc_ns = ms * 1'000'000, .mono_ns = (10'000 + ms) * 1'000'000};
  }
  void set(const queue::Limits& limits, std::uint64_t ms = 0) {
    model.set("mail", limits, at(ms), at(ms));
  }
  void start(std::uint64_t ms, std::size_t running = 0) {
    model.start("mail", running, at(ms), at(ms));
  }
  bool lets_start(std::uint64_t ms, std::size_t running = 0) const {
    return model.lets_start("mail", running, at(ms), kSlack);
  }

  queue::MemoryStore store;
  HistoryStore history;
  LimitsModel model{history};
};

TEST_F(LimitsModelTest, WithoutLimitsAllMayStart) {
  for (int n = 0; n < 1'000; ++n) start(0, 1'000'000);
  EXPECT_TRUE(lets_start(0, 1'000'000));
}

TEST_F(LimitsModelTest, NoMoreRunThanMaxRunning) {
  set({.max_running = 2});
  EXPECT_TRUE(lets_start(0, 1));
  EXPECT_FALSE(lets_start(0, 2));
  start(0, 1);
  EXPECT_THROW(start(0, 2), Violation);
}

TEST_F(LimitsModelTest, NoMoreStartThanTheBucketHas) {
  set({.rate = 1, .period = 100, .burst = 2});
  start(5);
  start(5);
  EXPECT_FALSE(lets_start(90));
  EXPECT_TRUE(lets_start(110));
  start(106);
  EXPECT_THROW(start(180), Violation);
}

TEST_F(LimitsModelTest, AJobThatWasAskedForByItsIdTakesATokenAndIsNotRefused) {
  set({.rate = 1, .period = 100, .burst = 1});
  for (int n = 0; n < 3; ++n) model.start_anyway("mail", at(0), at(0));
  EXPECT_FALSE(lets_start(50));
  EXPECT_TRUE(lets_start(110));
}

TEST_F(LimitsModelTest, TokensThatMayBeLostAreNotCounted) {
  set({.rate = 1, .period = 100, .burst = 1});
  EXPECT_TRUE(lets_start(10));
  model.lose_tokens("mail", at(10));
  EXPECT_FALSE(lets_start(100));
  EXPECT_TRUE(lets_start(115));
}

TEST_F(LimitsModelTest, AServerStartsWithEmptyBuckets) {
  queue::Changes changes;
  changes.tubes.push_back({.number = 1,
                           .name = "mail",
                           .settings = queue::detail::Rare(queue::TubeSettings{
                               .limits = {.rate = 1, .period = 100, .burst = 2}})});
  history.append(changes);
  model.restart(at(0), at(1));
  EXPECT_FALSE(lets_start(99));
  EXPECT_TRUE(lets_start(110));
  start(101);
  EXPECT_THROW(start(150), Violation);
}

}  // namespace

}  // namespace carillon::simulator
