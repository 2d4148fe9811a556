// Numbers in sentences.

#include "cli/output.h"

#include <gtest/gtest.h>

namespace carillon::cli {
namespace {

TEST(Counted, OnlyOneIsSingular) {
  EXPECT_EQ(counted(0, "job"), "0 jobs");
  EXPECT_EQ(counted(1, "job"), "1 job");
  EXPECT_EQ(counted(2, "job"), "2 jobs");
  EXPECT_EQ(counted(UINT64_MAX, "job"), "18446744073709551615 jobs");
}

TEST(LineNumbers, AreARangeUnlessItIsOneLine) {
  EXPECT_EQ(line_numbers(3, 3), "line 3");
  EXPECT_EQ(line_numbers(3, 5), "lines 3 to 5");
}

}  // namespace
}  // namespace carillon::cli
