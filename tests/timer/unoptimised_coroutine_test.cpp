// Compiled without optimisation: there g++ makes no jump of the transfer from one coroutine to
// another, so that each transfer takes stack.
#include <gtest/gtest.h>

#include "carillon/timer/coroutine.h"

// g++ 12 gives this warning for code that it generates itself for a coroutine.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

namespace carillon::testing {
namespace {

Coroutine<int> one() {
  co_return 1;
}

TEST(CoroutineWithoutOptimisation, AMillionThatEndAtOnceDoNotUseUpTheStack) {
  const auto add_up = []() -> Coroutine<int> {
    int sum = 0;
    for (int i = 0; i < 1'000'000; ++i) sum += co_await one();
    co_return sum;
  };
  EXPECT_EQ(add_up().wait(), 1'000'000);
}

}  // namespace
}  // namespace carillon::testing
