// HistoryStore: what it accepts of a store after a start, and what it does not.

#include "simulator/history.h"

#include <gtest/gtest.h>

#include <string>

#include "carillon/queue/memory_store.h"

namespace carillon::simulator {

namespace {

using queue::JobRecord;
using queue::MemoryStore;

JobRecord job(queue::JobId id) {
  return {.id = id, .tube = 1, .due = 1'000, .body_bytes = 5, .history = {}};
}

void put(queue::Store& store, queue::JobId id, const std::string& body = "hello") {
  queue::Changes changes;
  changes.jobs.push_back({{}, job(id), body});
  changes.tubes.push_back({.number = 1, .name = "default", .scheduled = id, .buried = 0});
  store.append(changes);
}

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() {
    history.open(first);
    for (queue::JobId id = 1; id <= 3; ++id) put(history, id);
    history.write();
  }

  MemoryStore first;
  MemoryStore second;
  HistoryStore history;
};

TEST_F(HistoryTest, AcceptsTheLossOfTheLastAppendsIfNobodyKnewThem) {
  history.told(2, true);
  put(second, 1);
  put(second, 2);
  history.open(second);
  EXPECT_EQ(history.last(), 2U);
  EXPECT_EQ(history.state().jobs.size(), 2U);
}

TEST_F(HistoryTest, RefusesTheLossOfWhatWasTold) {
  history.told(3, true);
  put(second, 1);
  put(second, 2);
  EXPECT_THROW(history.open(second), Violation);
}

TEST_F(HistoryTest, RefusesToReportWhatIsNotDurable) {
  EXPECT_THROW(history.told(3, false), Violation);
  history.told(3, true);
  history.sync();
  history.told(3, false);
  put(history, 4);
  EXPECT_THROW(history.told(4, true), Violation);
}

TEST_F(HistoryTest, RefusesTheLossOfWhatWasSynced) {
  history.sync();
  history.lose_power_unless_synced();
  put(second, 1);
  EXPECT_THROW(history.open(second), Violation);
}

TEST_F(HistoryTest, RefusesALossInTheMiddle) {
  put(second, 1);
  put(second, 3);
  EXPECT_THROW(history.open(second), Violation);
}

TEST_F(HistoryTest, RefusesAnotherBody) {
  put(second, 1);
  put(second, 2, "HELLO");
  put(second, 3);
  EXPECT_THROW(history.open(second), Violation);
}

TEST_F(HistoryTest, RefusesACountThatIsWrong) {
  queue::Changes changes;
  changes.jobs.push_back({{}, job(4), "hello"});
  changes.tubes.push_back({.number = 1, .name = "default", .scheduled = 3, .buried = 0});
  EXPECT_THROW(history.append(changes), Violation);
}

TEST_F(HistoryTest, KnowsWhichStatesACheckpointMayHave) {
  put(second, 1);
  EXPECT_THROW(history.expect_state_since(2, second), Violation);
  put(second, 2);
  history.expect_state_since(2, second);
  put(second, 3);
  history.expect_state_since(2, second);
  put(second, 4);
  EXPECT_THROW(history.expect_state_since(2, second), Violation);
}

// --- Large bodies.

constexpr std::uint32_t kLarge = queue::kBodyPiece + 1;
constexpr queue::JobId kId = 7;

void begin(queue::Store& store) {
  queue::Changes changes;
  changes.begun = {kId, kLarge};
  store.append(changes);
}

void add_piece(queue::Store& store, std::uint32_t number) {
  const std::string bytes(number == 0 ? queue::kBodyPiece : 1, 'x');
  queue::Changes changes;
  changes.piece = {kId, number, bytes};
  store.append(changes);
}

void finish(queue::Store& store) {
  queue::Changes changes;
  JobRecord record = job(kId);
  record.body_bytes = kLarge;
  changes.jobs.push_back({{}, record, {}});
  changes.tubes.push_back({.number = 1, .name = "default", .scheduled = 4, .buried = 0});
  store.append(changes);
}

void give_up(queue::Store& store) {
  queue::Changes changes;
  changes.given_up = {kId, kLarge};
  store.append(changes);
}

TEST_F(HistoryTest, FollowsALargeBodyOverAStart) {
  begin(history);
  add_piece(history, 0);
  add_piece(history, 1);
  finish(history);
  history.open(first);
  EXPECT_EQ(history.state().jobs.at(kId).body.size(), kLarge);
}

TEST_F(HistoryTest, RefusesAJobWithAPartOfItsBody) {
  begin(history);
  add_piece(history, 0);
  EXPECT_THROW(finish(history), Violation);
}

TEST_F(HistoryTest, RefusesPiecesOutOfOrder) {
  begin(history);
  EXPECT_THROW(add_piece(history, 1), Violation);
}

TEST_F(HistoryTest, RefusesABodyThatIsGivenUpTwice) {
  begin(history);
  give_up(history);
  EXPECT_THROW(give_up(history), Violation);
}

// Has a piece of a body that was given up.
class BodyLeavingStore : public MemoryStore {
 public:
  std::string body(queue::JobId id, std::uint32_t piece) const override {
    return id == kId && piece == 1 ? "x" : MemoryStore::body(id, piece);
  }
};

TEST_F(HistoryTest, RefusesWhatIsLeftOfABodyThatWasGivenUp) {
  begin(history);
  give_up(history);
  BodyLeavingStore leaving;
  for (queue::JobId id = 1; id <= 3; ++id) put(leaving, id);
  EXPECT_THROW(history.open(leaving), Violation);
}

}  // namespace

}  // namespace carillon::simulator
