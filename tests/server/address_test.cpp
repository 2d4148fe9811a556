// Addresses, as the command line passes them.

#include "server/address.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace carillon::server {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_address(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(Address, HostAndPort) {
  const Address a = parse_address("127.0.0.1:11400");
  EXPECT_EQ(a.host, "127.0.0.1");
  EXPECT_EQ(a.port, 11'400);
  EXPECT_FALSE(a.is_unix());
  EXPECT_EQ(to_string(a), "127.0.0.1:11400");
}

TEST(Address, WithoutAPortThePortIsTheDefault) {
  EXPECT_EQ(parse_address("localhost").port, 11'300);
  EXPECT_EQ(parse_address("localhost", 4444).port, 4'444);
  EXPECT_EQ(parse_address("[::1]").port, 11'300);
}

TEST(Address, Ipv6IsInBrackets) {
  const Address a = parse_address("[::1]:80");
  EXPECT_EQ(a.host, "::1");
  EXPECT_EQ(a.port, 80);
  EXPECT_EQ(to_string(a), "[::1]:80");
  EXPECT_EQ(error_of("::1"), "\"::1\": an IPv6 address is written in brackets: [::1]");
  EXPECT_EQ(error_of("[::1"), "\"[::1\": the ] is missing; write [::1]:11300");
}

TEST(Address, UnixSocketsHaveAPath) {
  const Address a = parse_address("unix:/run/carillon.sock");
  EXPECT_TRUE(a.is_unix());
  EXPECT_EQ(a.path, "/run/carillon.sock");
  EXPECT_EQ(to_string(a), "unix:/run/carillon.sock");
  EXPECT_EQ(error_of("unix:"), "\"unix:\": names no file; write unix:PATH");
  EXPECT_EQ(parse_address("unix:" + std::string(107, 'p')).path.size(), 107u);
  EXPECT_NE(
      error_of("unix:" + std::string(108, 'p')).find("the path has 108 bytes; the limit is 107"),
      std::string::npos);
}

TEST(Address, AMalformedAddressIsRefusedWithTheReason) {
  EXPECT_EQ(error_of("host:x"), "\"host:x\": the port is not a number from 0 to 65535");
  EXPECT_EQ(error_of("host:65536"), "\"host:65536\": the port is not a number from 0 to 65535");
  EXPECT_EQ(error_of("host:"), "\"host:\": the port is not a number from 0 to 65535");
  EXPECT_EQ(error_of("11301"), "\"11301\": a port needs its host; write 127.0.0.1:11301");
  EXPECT_EQ(error_of(""), "\"\": none of HOST:PORT, [V6]:PORT and unix:PATH");
  EXPECT_EQ(error_of(":11300"), "\":11300\": none of HOST:PORT, [V6]:PORT and unix:PATH");
  EXPECT_EQ(error_of("[::1]x"), "\"[::1]x\": none of HOST:PORT, [V6]:PORT and unix:PATH");
}

}  // namespace
}  // namespace carillon::server
