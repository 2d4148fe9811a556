// RequestsInFlight: requests with names of their clients' own whose first answers are not out yet.
#include "server/api/requests_in_flight.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "server/net/memory_pool.h"

namespace carillon::server {
namespace {

TEST(RequestsInFlight, ANameIsFreeAgainWhenNothingWasPut) {
  MemoryPool memory(1 << 20);
  RequestsInFlight requests(memory);
  {
    const auto first = requests.claim("a", "seven", 0);
    ASSERT_TRUE(first);
    EXPECT_FALSE(requests.claim("a", "8", 0));
    EXPECT_EQ(requests.fingerprint_of("a"), "seven");
    EXPECT_TRUE(requests.claim("b", "9", 0));
    EXPECT_GT(memory.used(), 100u);
  }
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_TRUE(requests.claim("a", "8", 0));
}

TEST(RequestsInFlight, ANameIsInFlightUntilItsChangeIsDurable) {
  MemoryPool memory(1 << 20);
  RequestsInFlight requests(memory);
  requests.claim("a", "1", 10)->answered(11);
  requests.claim("b", "2", 10)->answered(12);
  EXPECT_FALSE(requests.claim("a", "1", 10));
  EXPECT_TRUE(requests.claim("a", "1", 11));
  EXPECT_FALSE(requests.claim("b", "2", 11));
  EXPECT_TRUE(requests.claim("b", "2", 12));
  EXPECT_EQ(memory.used(), 0u);
}

TEST(RequestsInFlight, AClaimThatWasMovedEndsOnce) {
  MemoryPool memory(1 << 20);
  RequestsInFlight requests(memory);
  auto first = requests.claim("a", "1", 0);
  {
    const RequestsInFlight::Claim moved = std::move(*first);
    first.reset();
    EXPECT_FALSE(requests.claim("a", "1", 0));
  }
  EXPECT_TRUE(requests.claim("a", "1", 0));
}

}  // namespace
}  // namespace carillon::server
