// Addresses, as the command line passes them.

#include "server/text/address.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace carillon::server {
namespace {

std::string address_error(std::string_view text) {
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
  EXPECT_EQ(address_error("::1"),
            "\"::1\": an IPv6 address is written in brackets: [::1] (HOST:PORT, [V6]:PORT or "
            "unix:PATH)");
  EXPECT_EQ(address_error("[::1").find("\"[::1\": the ] is missing"), 0u);
}

TEST(Address, UnixSocketsHaveAPath) {
  const Address a = parse_address("unix:/run/carillon.sock");
  EXPECT_TRUE(a.is_unix());
  EXPECT_EQ(a.path, "/run/carillon.sock");
  EXPECT_EQ(to_string(a), "unix:/run/carillon.sock");
  EXPECT_EQ(address_error("unix:"), "\"unix:\": names no file; write unix:PATH");
  EXPECT_EQ(parse_address("unix:" + std::string(107, 'p')).path.size(), 107u);
  EXPECT_NE(address_error("unix:" + std::string(108, 'p'))
                .find("the path has 108 bytes; the limit is 107"),
            std::string::npos);
}

TEST(Address, AMalformedAddressIsRefusedWithTheReason) {
  EXPECT_EQ(address_error("host:x"), "\"host:x\": the port is not a number from 0 to 65535");
  EXPECT_EQ(address_error("host:65536"),
            "\"host:65536\": the port is not a number from 0 to 65535");
  EXPECT_EQ(address_error("host:"), "\"host:\": the port is not a number from 0 to 65535");
  EXPECT_EQ(address_error("11301"), "\"11301\": a port needs its host; write 127.0.0.1:11301");
  const std::string allowed = " (HOST:PORT, [V6]:PORT or unix:PATH)";
  EXPECT_EQ(address_error(""), "\"\": there is no host" + allowed);
  EXPECT_EQ(address_error(":11300"), "\":11300\": there is no host" + allowed);
  EXPECT_EQ(address_error("[::1]x"), "\"[::1]x\": behind the ] is no port" + allowed);
  EXPECT_EQ(address_error("http://a"), "\"http://a\": the port is not a number from 0 to 65535");
  EXPECT_EQ(
      address_error("[fe80::1%eth0]:80"),
      "\"[fe80::1%eth0]:80\": an IPv6 address with a zone, %eth0, means something on one machine "
      "only: use another" +
          allowed);
  for (const char* const text : {"127.1", "0x7f000001:80", "me@host", "a%2eb", "[fe80::1%lo]:80"})
    EXPECT_TRUE(address_error(text).ends_with(allowed)) << text;
}

TEST(Address, HttpIsAnsweredBesideIt) {
  const auto beside = [](const char* text) { return to_string(http_beside(parse_address(text))); };
  EXPECT_EQ(beside("127.0.0.1:11300"), "127.0.0.1:11380");
  EXPECT_EQ(beside("[::1]:11400"), "[::1]:11480");
  EXPECT_EQ(beside("localhost:0"), "localhost:0");
  EXPECT_EQ(beside("unix:/run/c.sock"), "unix:/run/c.sock.http");
  EXPECT_EQ(beside("host:65455"), "host:65535");
  const auto fault = [&](const std::string& text) -> std::string {
    try {
      return beside(text.c_str());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  EXPECT_EQ(fault("host:65456"),
            "\"host:65456\": there is no port 65536 for HTTP beside it; name an address with "
            "--http");
  EXPECT_NE(fault("unix:" + std::string(103, 'p')).find("the limit is 107 for HTTP beside it"),
            std::string::npos);
}

}  // namespace
}  // namespace carillon::server
