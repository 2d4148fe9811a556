// What CARILLON_REQUIRE prints, and that it costs no side effect.
#include "carillon/require.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "carillon/wheel/moment.h"

namespace carillon::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::sys_seconds;

enum class Phase : std::uint8_t { kFree, kArmed };

constexpr unsigned half(unsigned number) noexcept {
  CARILLON_REQUIRE(number % 2 == 0, number);
  CARILLON_REQUIRE_DEBUG(number < 1'000, number);
  return number / 2;
}
static_assert(half(8) == 4, "it can be evaluated while compiling");

void take(std::uint64_t tokens, std::uint64_t left) {
  CARILLON_REQUIRE(tokens <= left, tokens, left);
}

TEST(RequireDeathTest, PrintsTheConditionTheFileTheFunctionAndTheValues) {
  EXPECT_DEATH(take(3, 2),
               "^carillon: .*require_test.cpp:[0-9]+: take\\(\\) requires: tokens <= left; "
               "tokens = 3, left = 2\n");
}

TEST(RequireDeathTest, PrintsNoValuesIfNoneAreGiven) {
  EXPECT_DEATH(CARILLON_REQUIRE(1 > 2), "requires: 1 > 2\n");
}

TEST(RequireDeathTest, EndsANoexceptFunctionThatCouldBeConstexpr) {
  EXPECT_DEATH(half(7), "half\\(\\) requires: number % 2 == 0; number = 7\n");
}

TEST(RequireDeathTest, PrintsEachKindOfValue) {
  const std::string name = "mail";
  const milliseconds delay(1'500);
  const sys_seconds at(std::chrono::seconds(60));
  const Moment moment(9);
  EXPECT_DEATH(
      CARILLON_REQUIRE(false, name, delay, at, moment, -5, 0.25, name.empty(), Phase::kArmed,
                       std::string_view("x")),
      "name = \"mail\", delay = 1500 ms, at = 60 s, moment = 9, -5 = -5, 0.25 = 0.25, "
      "name.empty\\(\\) = false, Phase::kArmed = 1, std::string_view\\(\"x\"\\) = \"x\"\n");
}

TEST(RequireDeathTest, NamesAValueByItsWholeExpression) {
  const std::string name = "mail";
  EXPECT_DEATH(CARILLON_REQUIRE(name.empty(), name.find("l", 0), name.size()),
               "; name.find\\(\"l\", 0\\) = 3, name.size\\(\\) = 4\n");
}

TEST(RequireDeathTest, PrintsAPointer) {
  const int* const nothing = nullptr;
  EXPECT_DEATH(CARILLON_REQUIRE(nothing != nullptr, nothing), "; nothing = (\\(nil\\)|0x0|0)\n");
}

TEST(RequireDeathTest, CutsALongTextAndSaysHowLongItIs) {
  const std::string text(1'000'000, 'x');
  EXPECT_DEATH(CARILLON_REQUIRE(text.empty(), text, text.size()),
               "text = \"x{80}\\.\\.\\.\" of 1000000 bytes, text.size\\(\\) = 1000000\n");
}

TEST(RequireDeathTest, PrintsOneLineWhateverATextHolds) {
  const std::string text = "a\nb\x1b[31m";
  EXPECT_DEATH(CARILLON_REQUIRE(text.empty(), text), "text = \"a\\?b\\?\\[31m\"\n");
}

TEST(RequireDeathTest, CutsALineThatIsLongerThanItsBuffer) {
  const std::string x(80, 'x');
  EXPECT_DEATH(CARILLON_REQUIRE(x.empty(), x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
                                x, x, x, x, x, x, x, x, x),
               "x = \"x{80}\", x = \"x{80}\".*[x =\",]\n");
}

TEST(Require, EvaluatesTheValuesOnlyIfTheConditionDoesNotHold) {
  int evaluated = 0;
  CARILLON_REQUIRE(evaluated == 0, ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(Require, IsAnExpression) {
  const int number = (CARILLON_REQUIRE(true), 5);
  EXPECT_EQ(number, 5);
}

// Tests are compiled with CARILLON_CHECK_ALL.
TEST(RequireDeathTest, ChecksDearConditionsIfAllAreAskedFor) {
  EXPECT_DEATH(half(1'000), "half\\(\\) requires: number < 1'000; number = 1000\n");
}

}  // namespace
}  // namespace carillon::testing
