// Sizes and progress as people read them.

#include "cli/progress.h"

#include <gtest/gtest.h>

namespace carillon::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

TEST(SizeText, HasTheUnitThatFits) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1), "1 byte");
  EXPECT_EQ(size_text(1'023), "1023 bytes");
  EXPECT_EQ(size_text(1'024), "1.0 KiB");
  EXPECT_EQ(size_text(kMiB - 1), "1.0 MiB");
  EXPECT_EQ(size_text(kMiB - 60), "1023.9 KiB");
  EXPECT_EQ(size_text(27 * kGiB / 10), "2.7 GiB");
  EXPECT_EQ(size_text(1'500 * kGiB), "1.5 TiB");
  EXPECT_EQ(size_text(UINT64_MAX), "16384.0 PiB");
}

TEST(ProgressText, ShowsTheShareFirst) {
  EXPECT_EQ(progress_text(0, kGiB, 0ms), "0 %, 0 bytes of 1.0 GiB");
  EXPECT_EQ(progress_text(kGiB / 2, kGiB, 499ms), "50 %, 512.0 MiB of 1.0 GiB");
  EXPECT_EQ(progress_text(0, 0, 0ms), "100 %, 0 bytes of 0 bytes");
}

TEST(ProgressText, ThenSpeedAndTimeLeft) {
  EXPECT_EQ(progress_text(100 * kMiB, kGiB, 2s),
            "10 %, 100.0 MiB of 1.0 GiB, 50.0 MiB/s, 18s left");
  EXPECT_EQ(progress_text(kMiB, 100 * kGiB, 1s),
            "0 %, 1.0 MiB of 100.0 GiB, 1.0 MiB/s, 1d04h left");
  EXPECT_EQ(progress_text(kGiB, kGiB, 4s), "100 %, 1.0 GiB of 1.0 GiB, 256.0 MiB/s, 0s left");
  EXPECT_EQ(progress_text(0, kGiB, 10s), "0 %, 0 bytes of 1.0 GiB");
}

}  // namespace
}  // namespace carillon::cli
