// Hosts and URLs, taken apart.

#include "server/text/address.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace carillon::server {
namespace {

using namespace std::string_literals;

std::string authority_error(std::string_view text) {
  try {
    split_authority(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(Authority, ANameOrAnAddressAndAPort) {
  struct Case {
    std::string_view text, host, port;
    bool is_address;
  };
  for (const Case& wanted : std::initializer_list<Case>{
           {"example.org", "example.org", "none", false},
           {"example.org:80", "example.org", "80", false},
           {"my_service.local.:x", "my_service.local.", "x", false},
           {"localhost:", "localhost", "", false},
           {"10.1.2.3", "10.1.2.3", "none", true},
           {"10.1.2.3:1", "10.1.2.3", "1", true},
           {"[::1]", "::1", "none", true},
           {"[::ffff:1.2.3.4]:7", "::ffff:1.2.3.4", "7", true},
       }) {
    const Authority parts = split_authority(wanted.text);
    EXPECT_EQ(parts.host, wanted.host) << wanted.text;
    EXPECT_EQ(parts.port.value_or("none"), wanted.port) << wanted.text;
    EXPECT_EQ(parts.is_address, wanted.is_address) << wanted.text;
  }
}

TEST(Authority, AnAddressInANameIsNoAddress) {
  for (const std::string_view name :
       {"127.0.0.1.example.org", "127.0.0.1a", "127.0.0.1-2", "1.2.3.4.5.x", "1.1.1.1_"}) {
    const Authority parts = split_authority(name);
    EXPECT_EQ(parts.host, name);
    EXPECT_FALSE(parts.is_address) << name;
  }
}

// What getaddrinfo(3), or a browser, takes for an IPv4 address.
TEST(Authority, AnAddressIsWrittenInOneWay) {
  for (const std::string_view host :
       {"127.1", "127.0.1", "2130706433", "0", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "0X7F.1",
        "127.0.0.01", "127.0.0.256", "1.2.3.4.5", "127.0.0.1.", "a.0x", "a.1"})
    EXPECT_NE(authority_error(host).find("write it as 127.0.0.1"), std::string::npos) << host;
  for (const std::string_view host : {"[fe80::1%eth0]", "[fe80::1%251]", "[127.0.0.1]", "[]",
                                      "[::1 ]", "[a]", "[v1.a]", "[::1]]"})
    EXPECT_NE(authority_error(host), "none") << host;
  for (const std::string& host : {"[::1\0]"s, "[%eth0]"s, "[a%eth0]"s})
    EXPECT_EQ(authority_error(host), "in the brackets is no IPv6 address") << host;
  for (const std::string_view host : {"[fe80::1%eth0]", "[fe80::1%251]:80", "[::1%]"})
    EXPECT_EQ(
        authority_error(host),
        "an IPv6 address with a zone, %eth0, means something on one machine only: use another")
        << host;
}

TEST(Authority, WhatNoNameHasIsRefused) {
  for (const std::string& text :
       {"a b"s, "a%2eb"s, "a/b"s, "a\\b"s, "a\0b"s, "127.0.0.1\0.example.org"s, "a?b"s, "a#b"s,
        "b\xc3\xbc"s, "a,b"s, "a\r\nb"s, "a\tb"s, " a"s, "*"s})
    EXPECT_NE(authority_error(text).find("a byte that no name has"), std::string::npos) << text;
  EXPECT_EQ(authority_error(""), "there is no host");
  EXPECT_EQ(authority_error(":80"), "there is no host");
  EXPECT_EQ(authority_error("a:1:2"), "there is more than one :");
  EXPECT_EQ(authority_error("::1"), "an IPv6 address is written in brackets: [::1]");
  EXPECT_EQ(authority_error("[::1"), "the ] is missing: write an IPv6 address as [::1]");
  EXPECT_EQ(authority_error("[::1]80"), "behind the ] is no port");
  for (const std::string_view text : {"me@a", "me:secret@a:80", "@a", "127.0.0.1:80@a", "a@"})
    EXPECT_EQ(authority_error(text), "there is a user or a password in front of the host") << text;
}

std::string label(std::size_t bytes) {
  return std::string(bytes, 'a');
}

TEST(Authority, ANameThatNoNameServerCanHaveIsRefused) {
  for (const std::string_view text : {"a..b", ".", "..", ".a", "a..", "a..b:80", "..a"})
    EXPECT_EQ(authority_error(text),
              "the host has nothing before or between dots: a name is written as jobs.example.org")
        << text;
  EXPECT_EQ(authority_error(label(64)),
            "a part of the host has 64 bytes; between dots are at most 63");
  EXPECT_EQ(authority_error("a." + label(100) + ".b:80"),
            "a part of the host has 100 bytes; between dots are at most 63");
  const std::string long_name =
      label(63) + "." + label(63) + "." + label(63) + "." + label(61);  // 253 bytes
  EXPECT_EQ(authority_error(long_name), "none");
  EXPECT_EQ(authority_error(long_name + "."), "none");
  EXPECT_EQ(authority_error(long_name + "a"), "the host has 254 bytes; a name has at most 253");
  for (const std::string_view text :
       {"_dmarc.a", "a-.b", "-a", "a--b", "xn--bcher-kva.example", "a."})
    EXPECT_EQ(authority_error(text), "none") << text << " is a name that a look-up may know";
}

TEST(Url, HasAnAuthorityAndWhatFollowsIt) {
  for (const std::string_view text :
       {"http://a", "http://a/b?c#d", "x://127.0.0.1.a:8?b", "http:///b", "://", "a://b://c"}) {
    const auto url = split_url(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(
        std::string(url->scheme) + "://" + std::string(url->authority) + std::string(url->resource),
        text);
    EXPECT_EQ(url->authority.find_first_of("/?#"), std::string_view::npos) << text;
  }
  EXPECT_EQ(split_url("http://a:1/b")->authority, "a:1");
  EXPECT_EQ(split_url("http://a?b/c")->resource, "?b/c");
  for (const std::string_view text : {"", "/", "//a/b", "http:/a", "mailto:a", "null", "a"})
    EXPECT_FALSE(split_url(text)) << text;
}

}  // namespace
}  // namespace carillon::server
