// Tests of numbers in texts.

#include "server/text/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace carillon::server {
namespace {

TEST(WholeNumber, AllOfTheTextIsDigits) {
  EXPECT_EQ(whole_number<std::uint64_t>("0"), 0U);
  EXPECT_EQ(whole_number<std::uint64_t>("007"), 7U);
  for (const std::string_view text : {"", " 7", "7 ", "+7", "-7", "-0", "0x7", "7.0", "7x", "x"})
    EXPECT_EQ(whole_number<std::uint64_t>(text), std::nullopt) << text;
}

TEST(WholeNumber, TheNumberFits) {
  EXPECT_EQ(whole_number<std::uint16_t>("65535"), 65'535U);
  EXPECT_EQ(whole_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551616"), std::nullopt);
}

TEST(WholeNumber, InAnotherBase) {
  EXPECT_EQ(whole_number<unsigned>("1fF", 16), 0x1FFU);
  EXPECT_EQ(whole_number<unsigned>("0x1f", 16), std::nullopt);
  EXPECT_EQ(whole_number<unsigned>("660", 8), 0660U);
  EXPECT_EQ(whole_number<unsigned>("68", 8), std::nullopt);
}

}  // namespace
}  // namespace carillon::server
