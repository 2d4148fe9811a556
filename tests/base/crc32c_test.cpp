// CRC-32C gives the published values, and the same by tables as by instruction.

#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "queue/seed.h"

namespace carillon::base {

namespace {

TEST(Crc32c, IsAsInRfc3720) {
  std::string up;
  std::string down;
  for (int byte = 0; byte < 32; ++byte) {
    up += static_cast<char>(byte);
    down += static_cast<char>(31 - byte);
  }
  EXPECT_EQ(crc32c(0, std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(0, std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(0, up), 0x46dd794eu);
  EXPECT_EQ(crc32c(0, down), 0x113fdb5cu);
  EXPECT_EQ(crc32c(0, "123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(0, ""), 0u);
}

TEST(Crc32c, CanBeComputedInParts) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (std::size_t split = 0; split <= text.size(); ++split) {
    EXPECT_EQ(crc32c(crc32c(0, text.substr(0, split)), text.substr(split)), crc32c(0, text))
        << split;
  }
}

TEST(Crc32c, IsTheSameByTables) {
  std::mt19937_64 random(queue::seed_or(std::random_device()()));
  for (int round = 0; round < 1'000; ++round) {
    std::string bytes(random() % 100, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto so_far = static_cast<std::uint32_t>(random());
    EXPECT_EQ(crc32c(so_far, bytes), crc32c_by_tables(so_far, bytes));
  }
}

}  // namespace
}  // namespace carillon::base
