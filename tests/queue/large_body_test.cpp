// Bodies in pieces: in every store, and through the engine, over restarts.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/memory_store.h"
#include "queue/numbered_jobs.h"
#include "queue/store_media.h"

namespace carillon::queue {
namespace {

constexpr Now kEarly{.utc_ns = 1'000'000'000'000, .mono_ns = 1'000'000};
constexpr std::uint32_t kBytes = 5 * kBodyPiece / 2;

std::string_view piece_of(std::string_view body, const LargeBody& so_far) {
  return body.substr(so_far.put, kBodyPiece);
}

template <class Medium>
class LargeBodyTest : public testing::Test {
 protected:
  Store& store() { return store_of(medium_); }

  JobRecord record(JobId id) { return store().find(id).value(); }
  std::string whole(JobId id) { return whole_body(store(), id, record(id).body_bytes); }
  bool has_piece(JobId id, std::uint32_t piece) {
    try {
      return !store().body(id, piece).empty();
    } catch (const StoreDamage&) {
      return false;
    }
  }

  Medium medium_;
};
TYPED_TEST_SUITE(LargeBodyTest, Media);

TYPED_TEST(LargeBodyTest, IsWholeAfterARestartAndGoesWithItsJob) {
  const std::string body = body_of(1, kBytes);
  JobId id = 0;
  {
    Engine engine(this->store(), {}, kEarly);
    const ClientId client = engine.connect();
    LargeBody large = engine.begin_body(kBytes);
    while (large.put < large.bytes) {
      EXPECT_EQ(this->store().find(large.id), std::nullopt);
      engine.add_piece(large, piece_of(body, large));
    }
    id = engine.put(client, kEarly, {.priority = 7}, large).id;
    EXPECT_EQ(id, large.id);
    engine.check_invariants();
  }
  this->medium_.reopen();
  EXPECT_TRUE(this->store().recover().unfinished.empty());
  Engine engine(this->store(), {}, kEarly);
  const ClientId client = engine.connect();
  const auto job = engine.reserve(client, kEarly, 0);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->job.id, id);
  EXPECT_EQ(job->job.body_bytes, kBytes);
  EXPECT_TRUE(this->whole(id) == body);
  EXPECT_TRUE(engine.remove(client, kEarly, id).done);
  for (std::uint32_t piece = 0; piece < pieces_of(kBytes); ++piece)
    EXPECT_FALSE(this->has_piece(id, piece)) << piece;
}

TYPED_TEST(LargeBodyTest, IsCutIntoPiecesByAPutOfAllOfIt) {
  Engine engine(this->store(), {}, kEarly);
  const ClientId client = engine.connect();
  for (const std::size_t size : {kBodyPiece - 1, kBodyPiece, kBodyPiece + 1, 3 * kBodyPiece}) {
    const std::string body = body_of(size, size);
    const JobId id = engine.put(client, kEarly, {}, body).id;
    EXPECT_TRUE(this->whole(id) == body) << size;
    EXPECT_LE(this->store().body(id).size(), kBodyPiece);
  }
}

TYPED_TEST(LargeBodyTest, LeavesNothingIfItIsGivenUp) {
  Engine engine(this->store(), {}, kEarly);
  const ClientId client = engine.connect();
  LargeBody large = engine.begin_body(kBytes);
  engine.add_piece(large, piece_of(body_of(1, kBytes), large));
  engine.give_up(large);
  EXPECT_FALSE(this->has_piece(large.id, 0));
  const PutOutcome refused = engine.put(client, kEarly, {.due_in = kLastDue}, body_of(2, kBytes));
  EXPECT_EQ(refused.id, 0U);
  EXPECT_TRUE(this->store().recover().unfinished.empty());
  engine.check_invariants();
}

// Its client, or the process, was gone before the last piece came.
TYPED_TEST(LargeBodyTest, LeavesNothingAfterTheNextStartIfItWasNotFinished) {
  std::vector<JobId> ids;
  {
    Engine engine(this->store(), {}, kEarly);
    for (int pieces = 0; pieces <= 3; ++pieces) {
      LargeBody large = engine.begin_body(kBytes);
      ids.push_back(large.id);
      for (int n = 0; n < pieces; ++n) engine.add_piece(large, piece_of(body_of(1, kBytes), large));
    }
  }
  this->medium_.reopen();
  EXPECT_EQ(this->store().recover().unfinished.size(), ids.size());
  Engine engine(this->store(), {}, kEarly);
  EXPECT_TRUE(this->store().recover().unfinished.empty());
  for (const JobId id : ids) {
    EXPECT_EQ(this->store().find(id), std::nullopt);
    for (std::uint32_t piece = 0; piece < 3; ++piece) EXPECT_FALSE(this->has_piece(id, piece));
  }
  const ClientId client = engine.connect();
  EXPECT_GT(engine.put(client, kEarly, {}, "later").id, ids.back());
}

// The allocator is asked what is in use. (It knows nothing of that under a sanitizer.)
TEST(LargeBodyInMemory, TakesWhatTheStoreSays) {
  const std::string piece(kBodyPiece, 'b');
  MemoryStore store;
  Engine engine(store, {}, kEarly);
  const auto before = ::mallinfo2();
  LargeBody body = engine.begin_body(20 * kBodyPiece);
  while (body.put < 17 * kBodyPiece) engine.add_piece(body, piece);
  const auto after = ::mallinfo2();
  EXPECT_EQ(store.bytes(), 17 * kBodyPiece);
  EXPECT_LE(after.uordblks + after.hblkhd,
            before.uordblks + before.hblkhd + store.bytes() + kBodyPiece);
  engine.give_up(body);
  EXPECT_EQ(store.bytes(), 0U);
}

}  // namespace
}  // namespace carillon::queue
