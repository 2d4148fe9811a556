// How descriptors are shared out.

#include "server/descriptors.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/start_error.h"

namespace carillon::server {
namespace {

TEST(Descriptors, WithEnoughOfThemEverybodyHasWhatHeWants) {
  const DescriptorShares shares = share_descriptors(SIZE_MAX, 10'000, true);  // unlimited
  EXPECT_EQ(shares.connections, 10'000U);
  EXPECT_EQ(shares.open_files, 512U);
  EXPECT_EQ(shares.pushes, 644U);
}

TEST(Descriptors, WithFewPushesHaveAnEighthAndTheStoreAThirdOfTheRest) {
  EXPECT_EQ(share_descriptors(256, 10'000, true).pushes, 16U);
  EXPECT_EQ(share_descriptors(256, 10'000, true).connections, 75U);
  EXPECT_EQ(share_descriptors(256, 10'000, true).open_files, 37U);
  EXPECT_EQ(share_descriptors(1'024, 10'000, true).pushes, 112U);
  EXPECT_EQ(share_descriptors(1'024, 10'000, true).connections, 523U);
  EXPECT_EQ(share_descriptors(1'024, 10'000, true).open_files, 261U);
}

TEST(Descriptors, WhatConnectionsDoNotNeedTheStoreHas) {
  const DescriptorShares shares = share_descriptors(1'024, 400, true);
  EXPECT_EQ(shares.connections, 400U);
  EXPECT_EQ(shares.open_files, 384U);
}

TEST(Descriptors, InMemoryNoFilesAreCounted) {
  EXPECT_EQ(share_descriptors(256, 10'000, false).connections, 182U);
  EXPECT_EQ(share_descriptors(256, 10'000, false).open_files, 0U);
}

TEST(Descriptors, AllSharesTogetherFitAnyLimit) {
  constexpr std::size_t kOther = 128;
  for (std::size_t limit = 184; limit < 20'000; ++limit) {
    for (const std::size_t wanted : {1U, 16U, 100U, 1'000U, 10'000U}) {
      const DescriptorShares shares = share_descriptors(limit, wanted, true);
      ASSERT_LE(kOther + shares.connections + shares.open_files + shares.pushes, limit) << wanted;
      ASSERT_GE(shares.connections, std::min<std::size_t>(wanted, 16)) << limit;
      ASSERT_GE(shares.open_files, 32U) << limit << " " << wanted;
      ASSERT_GE(shares.pushes, 8U) << limit;
    }
  }
}

TEST(Descriptors, ALimitThatIsTooSmallIsRefused) {
  try {
    share_descriptors(183, 10'000, true);
    FAIL();
  } catch (const base::StartError& error) {
    EXPECT_STREQ(error.what(),
                 "the process may have 183 descriptors, and needs at least 184 (see ulimit -n)");
  }
}

}  // namespace
}  // namespace carillon::server
