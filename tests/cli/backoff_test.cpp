// Tests of the delays between a worker's attempts.

#include "cli/worker.h"

#include <gtest/gtest.h>

namespace carillon::cli {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(Backoff, DoublesPerFailure) {
  const Backoff backoff{.first = 100ms, .most = 10s};
  EXPECT_EQ(backoff.delay(0, 0), 100ms);
  EXPECT_EQ(backoff.delay(1, 0), 200ms);
  EXPECT_EQ(backoff.delay(2, 0), 400ms);
  EXPECT_EQ(backoff.delay(6, 0), 6'400ms);
}

TEST(Backoff, StopsAtTheLimit) {
  const Backoff backoff{.first = 100ms, .most = 10s};
  EXPECT_EQ(backoff.delay(7, 0), 10s);
  EXPECT_EQ(backoff.delay(8, 0), 10s);
  EXPECT_EQ(backoff.delay(UINT64_MAX, 0), 10s);
}

TEST(Backoff, AFirstDelayAboveTheLimitBecomesTheLimit) {
  const Backoff backoff{.first = 1h, .most = 1s};
  EXPECT_EQ(backoff.delay(0, 0), 1s);
  EXPECT_EQ(backoff.delay(5, 0), 1s);
}

TEST(Backoff, TheRandomPartTakesAwayUpToAQuarter) {
  const Backoff backoff{.first = 1s, .most = 10s};
  EXPECT_EQ(backoff.delay(0, 0.5), 875ms);
  EXPECT_EQ(backoff.delay(0, 0.999), 751ms);
  EXPECT_EQ(backoff.delay(20, 0.999), 7'503ms);
}

TEST(Backoff, ZeroStaysZero) {
  const Backoff backoff{.first = 0ms, .most = 10s};
  EXPECT_EQ(backoff.delay(UINT64_MAX, 0.5), 0ms);
}

TEST(Backoff, TheLongestDurationsDoNotOverflow) {
  const Backoff backoff{.first = 1ms, .most = milliseconds::max()};
  EXPECT_EQ(backoff.delay(62, 0), milliseconds(std::int64_t{1} << 62));
  EXPECT_EQ(backoff.delay(63, 0), milliseconds::max());
  EXPECT_EQ(backoff.delay(1'000, 0), milliseconds::max());
  EXPECT_GT(backoff.delay(63, 0.999), milliseconds(0));
}

}  // namespace
}  // namespace carillon::cli
