// PutsInFlight: puts with names of their clients' own whose first answers are not out yet.
#include "server/puts_in_flight.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "server/memory_pool.h"

namespace carillon::server {
namespace {

TEST(PutsInFlight, ANameIsFreeAgainWhenNothingWasPut) {
  MemoryPool memory(1 << 20);
  PutsInFlight puts(memory);
  {
    const auto first = puts.claim("a", "seven", 0);
    ASSERT_TRUE(first);
    EXPECT_FALSE(puts.claim("a", "8", 0));
    EXPECT_EQ(puts.fingerprint_of("a"), "seven");
    EXPECT_TRUE(puts.claim("b", "9", 0));
    EXPECT_GT(memory.used(), 100u);
  }
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_TRUE(puts.claim("a", "8", 0));
}

TEST(PutsInFlight, ANameIsInFlightUntilItsChangeIsDurable) {
  MemoryPool memory(1 << 20);
  PutsInFlight puts(memory);
  puts.claim("a", "1", 10)->answered(11);
  puts.claim("b", "2", 10)->answered(12);
  EXPECT_FALSE(puts.claim("a", "1", 10));
  EXPECT_TRUE(puts.claim("a", "1", 11));
  EXPECT_FALSE(puts.claim("b", "2", 11));
  EXPECT_TRUE(puts.claim("b", "2", 12));
  EXPECT_EQ(memory.used(), 0u);
}

TEST(PutsInFlight, AClaimThatWasMovedEndsOnce) {
  MemoryPool memory(1 << 20);
  PutsInFlight puts(memory);
  auto first = puts.claim("a", "1", 0);
  {
    const PutsInFlight::Claim moved = std::move(*first);
    first.reset();
    EXPECT_FALSE(puts.claim("a", "1", 0));
  }
  EXPECT_TRUE(puts.claim("a", "1", 0));
}

}  // namespace
}  // namespace carillon::server
