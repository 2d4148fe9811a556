// The store and its parts end the process when they are used against their contracts, and say how.
#include <gtest/gtest.h>

#include <string>

#include "carillon/queue/disk_store.h"
#include "queue/engine/tubes/tube_removals.h"
#include "queue/engine/workers/limiter.h"
#include "queue/engine_fixture.h"
#include "queue/local_log_fixture.h"
#include "queue/store/log/log_segment.h"
#include "queue/store/log/log_window.h"
#include "queue/store/state/stored_bytes.h"
#include "queue/store/state/tagged_fields.h"
#include "queue/temporary_directory.h"

namespace carillon::queue {
namespace {

using LogPreconditionsDeathTest = LocalLogTest;

TEST_F(LogPreconditionsDeathTest, OnlyWhatIsDurableIsTrimmed) {
  const auto log = open();
  append(*log, 100);
  EXPECT_DEATH(log->trim({.number = 1}),
               "trim\\(\\) requires: number <= durable_; number = 1, durable_ = 0");
}

TEST_F(LogPreconditionsDeathTest, ALogIsReadOnce) {
  const auto log = open();
  EXPECT_DEATH(log->read({}, [](LogNumber, std::string_view) {}), "read\\(\\) requires: ");
}

TEST(StorePreconditionsDeathTest, AWindowHasRoomForTheChange) {
  LogWindow window;
  EXPECT_DEATH(window.append("change"),
               "append\\(\\) requires: .*; size_ = 0, change.size\\(\\) = 6");
}

TEST(StorePreconditionsDeathTest, BlocksAreAllocatedWhole) {
  EXPECT_DEATH(allocate_blocks(4'097), "requires: size % kLogBlock == 0; size = 4097");
}

TEST(StorePreconditionsDeathTest, ANumberIsReadWithinTheBytes) {
  EXPECT_DEATH(number_at<std::uint32_t>("1234567", 4),
               "number_at\\(\\) requires: .*; at = 4, bytes.size\\(\\) = 7");
}

TEST(StorePreconditionsDeathTest, AFieldHasATag) {
  std::string bytes;
  EXPECT_DEATH(append_number(bytes, 0, 7), "append_number\\(\\) requires: tag >= 1");
}

TEST(StorePreconditionsDeathTest, ACheckpointIsBegunBeforeItIsAwaited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // RocksDB has threads
  const TemporaryDirectory directory;
  DiskStore store(directory.path());
  EXPECT_DEATH(static_cast<void>(store.poll_checkpoint()), "poll_checkpoint\\(\\) requires: ");
  store.begin_checkpoint();
  EXPECT_DEATH(store.begin_checkpoint(), "begin_checkpoint\\(\\) requires: ");
}

using EnginePreconditionsDeathTest = EngineTest;

TEST_F(EnginePreconditionsDeathTest, ASmallBodyIsPutAtOnce) {
  EXPECT_DEATH(engine.begin_body(kBodyPiece), "begin_body\\(\\) requires: .*; bytes = 262144");
}

TEST_F(EnginePreconditionsDeathTest, EachPieceOfABodyIsWholeButTheLast) {
  LargeBody body = engine.begin_body(kBodyPiece + 1);
  EXPECT_DEATH(engine.add_piece(body, "a"),
               "add_piece\\(\\) requires: .*; body.id = 1, body.put = 0, ");
  engine.add_piece(body, std::string(kBodyPiece, 'a'));
  EXPECT_DEATH(engine.add_piece(body, "ab"), "add_piece\\(\\) requires: .*piece.size\\(\\) = 2\n");
  engine.add_piece(body, "b");
  EXPECT_DEATH(engine.add_piece(body, "c"), "add_piece\\(\\) requires: body.put < body.bytes");
}

TEST_F(EnginePreconditionsDeathTest, ATubeHasANameOfAtMost200Bytes) {
  engine.use(producer, std::string(200, 'a'));
  EXPECT_DEATH(engine.use(producer, std::string(201, 'a')), "made\\(\\) requires: .* of 201 bytes");
  EXPECT_DEATH(engine.use(producer, ""), "made\\(\\) requires: ");
}

TEST_F(EnginePreconditionsDeathTest, TimersAreCountedToTheEndAndNoFurther) {
  TimerCount count;
  while (!engine.count_timers(count)) {
  }
  EXPECT_DEATH(engine.count_timers(count), "count_timers\\(\\) requires: .*; count.wheel = 7");
}

TEST(LimiterPreconditionsDeathTest, NoMoreTokensAreTakenThanThereAre) {
  Limiter limiter({.rate = 1, .period = 1'000, .burst = 1}, 0);
  EXPECT_DEATH(limiter.take(1, 999), "take\\(\\) requires: .*; tokens = 1, left = 999, ");
}

TEST(LimiterPreconditionsDeathTest, WithoutARateThereAreNoTokens) {
  const Limiter limiter({.max_running = 1}, 0);
  EXPECT_DEATH(static_cast<void>(limiter.tokens(0)), "full\\(\\) requires: limits_.rate > 0");
}

TEST(TubePreconditionsDeathTest, AListEndsOnce) {
  TubeRemovals removals;
  EXPECT_DEATH(removals.end_listing(), "end_listing\\(\\) requires: listings_ > 0");
}

}  // namespace
}  // namespace carillon::queue
