#include "cluster/simulated_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "cluster/entries.h"
#include "cluster/rule_names.h"
#include "wheel/seeds.h"

namespace carillon::cluster::model {
namespace {

class SimulatedClusterOf : public ::testing::TestWithParam<Writes> {};

// Each seed is five minutes of troubles, with calm in between.
TEST_P(SimulatedClusterOf, LosesNothingAcknowledgedAndIsServedAgainWhenTheTroublesEnd) {
  Millis longest = 0;
  std::size_t acknowledged = 0;
  std::size_t take_overs = 0;
  for (const std::uint64_t seed : carillon::testing::seeds(200)) {
    SCOPED_TRACE(carillon::testing::replay_with(seed));
    SimulatedCluster cluster(GetParam(), seed);
    for (int round = 0; round < 20; ++round) {
      cluster.run(15'000);
      longest = std::max(longest, cluster.time_to_serve());
    }
    acknowledged += cluster.acknowledged();
    take_overs += cluster.take_overs();
    ASSERT_EQ(cluster.fault(), "");
    ASSERT_TRUE(cluster.all_alike());
  }
  std::printf("%zu commands acknowledged, %zu take-overs, served after at most %llu ms\n",
              acknowledged, take_overs, static_cast<unsigned long long>(longest));
  EXPECT_GT(acknowledged, 1'000U);
  EXPECT_GT(take_overs, 10U);
  EXPECT_LE(longest, 6'000U);
}

// The simulation finds the harm of a broken rule, if delays, repeats and deaths are enough for it.
TEST_P(SimulatedClusterOf, FindsABrokenRule) {
  for (const Rule broken : {Rule::kBarrier, Rule::kCommit, Rule::kUnknown, Rule::kOwnClaim}) {
    std::uint64_t seed = 1;
    std::string fault;
    for (; seed <= 200 && fault.empty(); ++seed) {
      SimulatedCluster cluster(GetParam(), seed, broken);
      cluster.run(60'000);
      fault = cluster.fault();
    }
    EXPECT_NE(fault, "") << name_of(broken);
    std::printf("%s: seed %d: %s\n", name_of(broken).c_str(), static_cast<int>(seed) - 1,
                fault.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Writes, SimulatedClusterOf,
                         ::testing::Values(Writes::kConditional, Writes::kUnconditional),
                         [](const ::testing::TestParamInfo<Writes>& one) {
                           return name_of(one.param);
                         });

TEST(SimulatedCluster, FollowsFromItsSeed) {
  const auto entries = [](std::uint64_t seed) {
    SimulatedCluster cluster(Writes::kConditional, seed);
    cluster.run(20'000);
    return cluster.log().size() * 1'000'000 + cluster.acknowledged();
  };
  EXPECT_EQ(entries(3), entries(3));
  EXPECT_NE(entries(3), entries(4));
}

TEST(SimulatedCluster, NodesThatHaveReadWhatIsCutOffStop) {
  for (const Writes writes : {Writes::kConditional, Writes::kUnconditional}) {
    SimulatedCluster cluster(writes, 5);
    cluster.run(20'000);
    cluster.time_to_serve();
    EXPECT_TRUE(cluster.all_alike());
    cluster.cut(cluster.log().size() - 1);
    const std::size_t acknowledged = cluster.acknowledged();
    cluster.run(100);
    EXPECT_EQ(cluster.acknowledged(), acknowledged);
    EXPECT_NE(cluster.fault().find("the state is ahead of the shared log"), std::string::npos)
        << cluster.fault();
  }
}

}  // namespace
}  // namespace carillon::cluster::model
