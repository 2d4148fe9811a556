// The hash table in parts behaves like a map, and its parts grow one at a time.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "carillon/queue/detail/split_table.h"
#include "queue/allocations.h"
#include "queue/seed.h"

namespace carillon::queue::detail {
namespace {

using testing::Types;

template <class Table>
class SplitTables : public testing::Test {};

using Tables = Types<std::unordered_map<std::uint64_t, std::string>,
                     boost::unordered_flat_map<std::uint64_t, std::string>>;
TYPED_TEST_SUITE(SplitTables, Tables);

template <class Table>
std::map<std::uint64_t, std::string> contents(const SplitTable<Table>& table) {
  std::map<std::uint64_t, std::string> all;
  table.for_each([&all](std::uint64_t key, const std::string& value) {
    EXPECT_TRUE(all.emplace(key, value).second) << key << " comes twice";
  });
  return all;
}

TYPED_TEST(SplitTables, RandomHistories) {
  const std::uint64_t seed = seed_or(1);
  SCOPED_TRACE("CARILLON_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  SplitTable<TypeParam> table;
  std::map<std::uint64_t, std::string> model;
  for (int step = 0; step < 200'000; ++step) {
    // Numbers as ids are, and others.
    const std::uint64_t id = random() % 20'000;
    const std::uint64_t key = id % 2 == 0 ? id : id * 0x1234'5678'9ABC'DEF1;
    const std::string value = std::to_string(step);
    switch (random() % 3) {
      case 0:
        ASSERT_EQ(table.try_emplace(key, value), model.try_emplace(key, value).first->second);
        break;
      case 1:
        ASSERT_EQ(table.erase(key), model.erase(key) > 0);
        break;
      default: {
        const auto expected = model.find(key);
        std::string* found = table.find(key);
        ASSERT_EQ(found != nullptr, expected != model.end());
        ASSERT_EQ(std::as_const(table).find(key), found);
        if (found == nullptr) break;
        ASSERT_EQ(*found, expected->second);
        *found = expected->second = value;
      }
    }
    ASSERT_EQ(table.size(), model.size());
  }
  EXPECT_GT(model.size(), 5'000u);
  EXPECT_EQ(contents(table), model);
}

TYPED_TEST(SplitTables, AFailedInsertionChangesNothing) {
  SplitTable<TypeParam> table;
  table.try_emplace(7, "seven");
  const std::string text = "eight";
  EXPECT_THROW(table.try_emplace(8, text, 6), std::out_of_range);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.find(8), nullptr);
  EXPECT_EQ(table.try_emplace(7, text, 6), "seven") << "nothing is made for a key that is there";
}

// The keys are ids as an engine gives them. As one table, the 60 000 elements take 2 MB at once.
TYPED_TEST(SplitTables, PartsGrowOneAtATime) {
  SplitTable<TypeParam> table;
  std::size_t most = 0;
  std::size_t most_of_256 = 0;
  for (std::uint64_t key = 1; key < 60'000;) {
    std::size_t sum = 0;
    for (int i = 0; i < 256; ++i, ++key) {
      const std::size_t bytes =
          bytes_allocated_by([&table, key] { table.try_emplace(key, "short"); });
      most = std::max(most, bytes);
      sum += bytes;
    }
    most_of_256 = std::max(most_of_256, sum);
  }
  EXPECT_LT(most, 64'000u);
  EXPECT_LT(most_of_256, 128'000u);
}

}  // namespace
}  // namespace carillon::queue::detail
