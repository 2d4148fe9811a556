// Tests of the guard: which addresses jobs may be pushed to.

#include "server/push/address_guard.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace carillon::server::push {
namespace {

bool allows(const AddressGuard& guard, const std::string& address) {
  return guard.allows(boost::asio::ip::make_address(address));
}

TEST(AddressGuard, PublicAddressesAreAllowed) {
  const AddressGuard guard;
  for (const char* address : {"1.1.1.1",
                              "9.255.255.255",
                              "11.0.0.0",
                              "100.63.255.255",
                              "100.128.0.0",
                              "126.255.255.255",
                              "128.0.0.1",
                              "169.253.255.255",
                              "169.255.0.0",
                              "172.15.255.255",
                              "172.32.0.0",
                              "192.0.1.0",
                              "192.167.255.255",
                              "192.169.0.0",
                              "198.17.255.255",
                              "198.20.0.0",
                              "223.255.255.255",
                              "2606:4700::1111",
                              "2001:4860:4860::8888",
                              "2a00:1450::1"})
    EXPECT_TRUE(allows(guard, address)) << address;
}

TEST(AddressGuard, SpecialAddressesOfIpv4AreRefused) {
  const AddressGuard guard;
  for (const char* address :
       {"0.0.0.0",     "0.255.255.255",    // unspecified, this network
        "10.0.0.0",    "10.255.255.255",   // private
        "172.16.0.0",  "172.31.255.255",   // private
        "192.168.0.0", "192.168.255.255",  // private
        "100.64.0.0",  "100.127.255.255",  // shared by the customers of a carrier
        "127.0.0.1",   "127.255.255.255",  // loopback
        "169.254.0.0", "169.254.169.254",  // link-local: the metadata of a cloud
        "192.0.0.8",   "192.0.2.1",       "198.51.100.1",   "203.0.113.255",
        "192.88.99.1", "198.18.0.0",      "198.19.255.255",  // benchmarks
        "224.0.0.1",   "239.255.255.255",                    // multicast
        "240.0.0.1",   "255.255.255.255"})
    EXPECT_FALSE(allows(guard, address)) << address;
}

TEST(AddressGuard, SpecialAddressesOfIpv6AreRefused) {
  const AddressGuard guard;
  for (const char* address : {"::", "::1",                         // unspecified, loopback
                              "::7f00:1",                          // IPv4-compatible: 127.0.0.1
                              "fc00::1", "fdff::1",                // unique local
                              "fe80::1", "febf::1", "fec0::1",     // link-local, site-local
                              "ff02::1",                           // multicast
                              "100::1", "2001:db8::1", "3fff::1",  // discarded, documentation
                              "2001::1", "2001:10::1",             // Teredo, ORCHID
                              "64:ff9b:1::1", "4000::1"})
    EXPECT_FALSE(allows(guard, address)) << address;
}

TEST(AddressGuard, AnIpv4AddressWithinAnIpv6OneCountsAsItself) {
  const AddressGuard guard;
  EXPECT_FALSE(allows(guard, "::ffff:127.0.0.1"));
  EXPECT_FALSE(allows(guard, "::ffff:169.254.169.254"));
  EXPECT_FALSE(allows(guard, "64:ff9b::10.0.0.1"));
  EXPECT_FALSE(allows(guard, "64:ff9b::100.64.0.1"));
  EXPECT_FALSE(allows(guard, "2002:7f00:1::"));
  EXPECT_FALSE(allows(guard, "2002:c0a8:101::1"));
  EXPECT_TRUE(allows(guard, "::ffff:1.1.1.1"));
  EXPECT_TRUE(allows(guard, "64:ff9b::1.1.1.1"));
  EXPECT_TRUE(allows(guard, "2002:101:101::1"));
}

TEST(AddressGuard, WhatIsAllowedAndNothingBesideIt) {
  const AddressGuard guard(
      {parse_network("10.1.0.0/20"), parse_network("fd00:1::/32"), parse_network("127.0.0.1")});
  EXPECT_TRUE(allows(guard, "10.1.0.0"));
  EXPECT_TRUE(allows(guard, "10.1.15.255"));
  EXPECT_FALSE(allows(guard, "10.1.16.0"));
  EXPECT_FALSE(allows(guard, "10.0.255.255"));
  EXPECT_TRUE(allows(guard, "127.0.0.1"));
  EXPECT_TRUE(allows(guard, "::ffff:127.0.0.1"));
  EXPECT_FALSE(allows(guard, "127.0.0.2"));
  EXPECT_TRUE(allows(guard, "fd00:1:ffff::1"));
  EXPECT_FALSE(allows(guard, "fd00:2::1"));
  EXPECT_FALSE(allows(guard, "::1"));
}

TEST(AddressGuard, AllOfAFamilyMayBeAllowed) {
  const AddressGuard guard({parse_network("0.0.0.0/0")});
  EXPECT_TRUE(allows(guard, "10.0.0.1"));
  EXPECT_FALSE(allows(guard, "fe80::1"));
}

TEST(AddressGuard, WhatIsNoNetworkIsRefusedWithItsText) {
  for (const std::string text :
       {"", "ten", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0/8",
        "fd00::/129", "localhost", "10.0.0.0 /8"}) {
    try {
      parse_network(text);
      ADD_FAILURE() << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find('"' + text + "\": write an address"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace carillon::server::push
