#include "cluster/model_log.h"

#include <gtest/gtest.h>

namespace carillon::cluster::model {
namespace {

constexpr Entry kClaim{.kind = Entry::Kind::kClaim, .epoch = 1, .owner = {1, 1}, .first = 1};

TEST(ModelLog, TakesAClaimOnceAndSaysSoAgainToItsMaker) {
  ModelLog log(Writes::kConditional, 2, 1);
  log.calm(true);
  Entry other = kClaim;
  other.owner = {2, 2};
  for (int i = 0; i < 2; ++i) {
    log.send(0, kClaim, {});
    log.pass(1);
    EXPECT_FALSE(log.answer(0));
    log.pass(1);
    EXPECT_FALSE(log.answer(0)->failure);
    log.send(1, other, {});
    log.pass(2);
    EXPECT_EQ(log.answer(1)->failure, Failure::kRefused);
  }
  EXPECT_EQ(log.size(), 1U);
}

TEST(ModelLog, WithoutConditionalWritesTakesEverything) {
  ModelLog log(Writes::kUnconditional, 1, 1);
  log.calm(true);
  for (int i = 0; i < 2; ++i) {
    log.send(0, kClaim, {});
    log.pass(2);
    EXPECT_FALSE(log.answer(0)->failure);
  }
  EXPECT_EQ(log.size(), 2U);
}

}  // namespace
}  // namespace carillon::cluster::model
