// Entries are read as they were written, and other bytes are none.

#include "queue/store/entries.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "queue/seed.h"

namespace carillon::queue {
namespace {

using Plain = std::tuple<Family, bool, std::string, std::string>;

std::vector<Plain> read(std::string_view bytes) {
  std::vector<Plain> all;
  for_each_entry(bytes, [&all](const Entry& entry) {
    all.emplace_back(entry.family, entry.is_put, std::string(entry.key), std::string(entry.value));
  });
  return all;
}

TEST(Entries, AreReadAsTheyWereWritten) {
  std::mt19937_64 random(seed_or(std::random_device()()));
  std::string bytes;
  std::vector<Plain> all;
  for (int i = 0; i < 1'000; ++i) {
    const auto family = static_cast<Family>(random() % kFamilies);
    const std::string key(random() % 30, static_cast<char>(random()));
    const std::string value(random() % 50 == 0 ? random() % 100'000 : random() % 300,
                            static_cast<char>(random()));
    if (random() % 3 == 0) {
      append_erase(bytes, family, key);
      all.emplace_back(family, false, key, "");
    } else {
      append_put(bytes, family, key, value);
      all.emplace_back(family, true, key, value);
    }
  }
  EXPECT_EQ(read(bytes), all);
  EXPECT_EQ(read(""), std::vector<Plain>{});
}

TEST(Entries, AreNoneWhereTheyAreCutShortOrOfNoFamily) {
  std::string bytes;
  append_put(bytes, kJobs, "key", "value");
  const std::size_t first = bytes.size();
  append_erase(bytes, kIndex, "another");
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    if (size == 0 || size == first || size == bytes.size()) {
      EXPECT_EQ(read(bytes.substr(0, size)).size(), size == 0 ? 0u : size == first ? 1u : 2u);
    } else {
      EXPECT_THROW(read(bytes.substr(0, size)), StoreError) << size;
    }
  }
  std::string alien;
  append_put(alien, static_cast<Family>(kFamilies), "key", "value");
  EXPECT_THROW(read(alien), StoreError);
}

}  // namespace
}  // namespace carillon::queue
