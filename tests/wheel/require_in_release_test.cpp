// As a release build: dear conditions are compiled and not evaluated, and the others are checked.
#undef CARILLON_CHECK_ALL
#ifndef NDEBUG
#define NDEBUG
#endif
#include <gtest/gtest.h>

#include "carillon/require.h"

namespace carillon::testing {
namespace {

TEST(RequireInRelease, DearConditionsAreNotEvaluated) {
  int evaluated = 0;
  const auto is_sorted = [&evaluated] { return ++evaluated == 0; };
  CARILLON_REQUIRE_DEBUG(is_sorted(), evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(RequireInReleaseDeathTest, TheOthersAreChecked) {
  EXPECT_DEATH(CARILLON_REQUIRE(1 > 2), "requires: 1 > 2\n");
}

}  // namespace
}  // namespace carillon::testing
