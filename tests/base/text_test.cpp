// Texts that are shortened.

#include "base/text.h"

#include <gtest/gtest.h>

namespace carillon::base {
namespace {

TEST(Text, IsCutWhereASignEnds) {
  EXPECT_EQ(beginning("", 0), "");
  EXPECT_EQ(beginning("abc", 3), "abc");
  EXPECT_EQ(beginning("abcd", 3), "abc");
  EXPECT_EQ(beginning("a\xc3\xa4", 2), "a");
  EXPECT_EQ(beginning("a\xc3\xa4z", 3), "a\xc3\xa4");
  EXPECT_EQ(beginning("a\xf0\x9f\x94\x94", 4), "a");
  EXPECT_EQ(beginning("\xf0\x9f\x94\x94", 1), "");
}

TEST(Text, TextThatIsNotUtf8IsCutAnywhere) {
  EXPECT_EQ(beginning("a\x80\x80\x80\x80\x80", 5), "a\x80\x80\x80\x80");
  EXPECT_EQ(beginning("\xff\xfe\xfd", 2), "\xff\xfe");
}

}  // namespace
}  // namespace carillon::base
