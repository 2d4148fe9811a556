// What clients have named can neither forge a line of the log nor command a terminal.
#include "server/logging.h"

#include <gtest/gtest.h>

namespace carillon::server {
namespace {

TEST(Logging, ALineOfTheLogStaysOne) {
  EXPECT_EQ(in_one_line("closed tube \u00FCber"), "closed tube \u00FCber");
  EXPECT_EQ(in_one_line("a\n2026-11-25 error all is lost"), "a\\x0A2026-11-25 error all is lost");
  EXPECT_EQ(in_one_line("\x1B[2J\r\t\x7F"), "\\x1B[2J\\x0D\\x09\\x7F");
  EXPECT_EQ(in_one_line("\u0080\u009B\u00A0"), "\\x80\\x9B\u00A0") << "controls beyond ASCII";
  EXPECT_EQ(in_one_line("\x9B\xC2"), "\uFFFD\uFFFD") << "no UTF-8";
}

}  // namespace
}  // namespace carillon::server
