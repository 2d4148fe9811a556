// Standard input, cut into batches of lines.

#include "cli/line_batches.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "server/beanstalk/batch.h"

namespace carillon::cli {
namespace {

using Lines = std::vector<std::string>;

// Returns what comes in pieces of `piece` bytes.
std::function<std::string()> input(std::string text, std::size_t piece) {
  return [text = std::move(text), piece, at = std::size_t{0}]() mutable {
    const std::string next = text.substr(at, piece);
    at += next.size();
    return next;
  };
}

TEST(LineBatches, LinesAreTheSameHoweverTheyCome) {
  for (const std::size_t piece : {1U, 2U, 3U, 100U}) {
    LineBatches batches(input("a\n\nbc\r\n\n\nd", piece));
    EXPECT_EQ(batches.next(), (Lines{"a", "bc\r", "d"})) << piece;
    EXPECT_EQ(batches.first_line(), 1U);
    EXPECT_EQ(batches.last_line(), 6U);
    EXPECT_EQ(batches.next(), Lines());
  }
}

TEST(LineBatches, ABatchHasAThousandLines) {
  std::string text;
  for (int i = 0; i < 2'001; ++i) text += std::to_string(i) + "\n";
  LineBatches batches(input(text, 7));
  EXPECT_EQ(batches.next().size(), 1'000U);
  EXPECT_EQ(batches.next().size(), 1'000U);
  EXPECT_EQ(batches.number(), 2U);
  EXPECT_EQ(batches.first_line(), 1'001U);
  EXPECT_EQ(batches.last_line(), 2'000U);
  EXPECT_EQ(batches.next(), Lines{"2000"});
  EXPECT_EQ(batches.next(), Lines());
}

TEST(LineBatches, ABatchHasNoMoreBytesThanACommandTakes) {
  constexpr std::size_t kHalf = server::kMaxBatchBytes / 2;
  const std::string line(kHalf, 'x');
  LineBatches batches(input(line + "\n" + line + "\nshort\n", 65'536));
  EXPECT_EQ(batches.next(), Lines{line});
  EXPECT_EQ(batches.last_line(), 1U);
  EXPECT_EQ(batches.next(), (Lines{line, "short"}));
  EXPECT_EQ(batches.first_line(), 2U);
  EXPECT_EQ(batches.last_line(), 3U);
  LineBatches too_long(input(line + line, 65'536));
  EXPECT_THROW(too_long.next(), Failure);
}

}  // namespace
}  // namespace carillon::cli
