// HistoryStore: what it refuses of keys, and of bodies that were replaced.

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "carillon/queue/memory_store.h"
#include "simulator/clock.h"
#include "simulator/history.h"

namespace carillon::simulator {

namespace {

using queue::Changes;
using queue::JobRecord;
using queue::KeyRecord;
using queue::MemoryStore;

constexpr queue::UtcMs kKeyEnd = 5'000;

JobRecord keyed_job(queue::JobId id, queue::JobId body = 0) {
  JobRecord record{.id = id, .tube = 1, .due = 1'000, .body_bytes = 5, .history = {}};
  record.extras = queue::detail::Rare(
      queue::JobExtras{.key = "a", .key_window = 1'000, .body = body, .newer = {}});
  return record;
}

KeyRecord key(queue::JobId id, queue::UtcMs until = 0) {
  return {.tube = 1, .key = "a", .id = id, .until = until};
}

// The count of jobs and of keys that have ended, after a change.
queue::TubeRecord tube(std::uint64_t jobs, std::uint64_t ended_keys) {
  return {.number = 1, .name = "default", .scheduled = jobs, .ended_keys = ended_keys};
}

Changes put(queue::JobId id) {
  return {.jobs = {{{}, keyed_job(id), "hello"}},
          .keys = {{{}, key(id)}},
          .tubes = {tube(1, 0)},
          .watermarks = {}};
}

Changes remove(queue::JobId id) {
  return {.jobs = {{keyed_job(id), {}, {}}},
          .keys = {{key(id), key(id, kKeyEnd)}},
          .tubes = {tube(0, 1)},
          .watermarks = {}};
}

Changes forget(queue::JobId id) {
  return {.jobs = {}, .keys = {{key(id, kKeyEnd), {}}}, .tubes = {tube(0, 0)}, .watermarks = {}};
}

Changes replace_body(queue::JobId id, queue::JobId body) {
  return {.jobs = {{keyed_job(id), keyed_job(id, body), "HELLO"}},
          .tubes = {tube(1, 0)},
          .watermarks = {}};
}

class HistoryKeysTest : public testing::Test {
 protected:
  HistoryKeysTest() {
    history.open(first);
    virtual_time().utc_ns = 1'000'000'000;
  }

  MemoryStore first;
  MemoryStore second;
  HistoryStore history;
};

TEST_F(HistoryKeysTest, FollowsAKeyUntilItIsForgotten) {
  history.append(put(1));
  EXPECT_EQ(history.key_before("default", "a"), std::nullopt);
  history.forget_changed();
  EXPECT_EQ(history.key_before("default", "a"), key(1));
  history.append(remove(1));
  EXPECT_EQ(history.key_before("default", "a"), key(1));
  EXPECT_EQ(history.first_end_of_keys(), kKeyEnd);
  virtual_time().utc_ns = kKeyEnd * 1'000'000;
  history.append(forget(1));
  EXPECT_EQ(history.first_end_of_keys(), std::nullopt);
  history.open(first);
  EXPECT_EQ(history.state().find_key(1, "a"), std::nullopt);
}

TEST_F(HistoryKeysTest, FindsAKeyAndItsEndAfterAStart) {
  history.append(put(1));
  history.append(remove(1));
  history.open(first);
  EXPECT_EQ(history.state().find_key(1, "a"), key(1, kKeyEnd));
}

TEST_F(HistoryKeysTest, RefusesAJobWithoutTheRecordOfItsKey) {
  Changes changes = put(1);
  changes.keys.clear();
  EXPECT_THROW(history.append(changes), Violation);
}

TEST_F(HistoryKeysTest, RefusesAKeyThatTheJobDoesNotSay) {
  history.append(put(1));
  EXPECT_THROW(
      history.append(
          {.jobs = {}, .keys = {{key(1), key(2)}}, .tubes = {tube(1, 0)}, .watermarks = {}}),
      Violation);
}

TEST_F(HistoryKeysTest, RefusesTheKeyOfAJobThatIsGone) {
  history.append(put(1));
  Changes changes = remove(1);
  changes.keys.clear();
  changes.tubes = {tube(0, 0)};
  EXPECT_THROW(history.append(changes), Violation);
}

TEST_F(HistoryKeysTest, RefusesToForgetAKeyInItsWindow) {
  history.append(put(1));
  history.append(remove(1));
  virtual_time().utc_ns = (kKeyEnd - 1) * 1'000'000;
  EXPECT_THROW(history.append(forget(1)), Violation);
}

TEST_F(HistoryKeysTest, RefusesAWrongCountOfKeysThatHaveEnded) {
  history.append(put(1));
  Changes changes = remove(1);
  changes.tubes = {tube(0, 2)};
  EXPECT_THROW(history.append(changes), Violation);
}

TEST_F(HistoryKeysTest, KnowsWhichJobsHaveLostTheirLastChange) {
  history.append(put(1));
  history.append(replace_body(1, 2));
  second.append(put(1));
  history.open(second);
  EXPECT_TRUE(history.has_lost_change_of(1));
  EXPECT_FALSE(history.has_lost_change_of(2));
}

// Keeps a key, or a body, for ever.
class KeyLeavingStore : public MemoryStore {
 public:
  std::optional<KeyRecord> find_key(std::uint32_t tube, std::string_view name) const override {
    return leaves_key ? key(1, kKeyEnd) : MemoryStore::find_key(tube, name);
  }
  std::string body(queue::JobId id, std::uint32_t piece) const override {
    return leaves_body && id == 1 ? "hello" : MemoryStore::body(id, piece);
  }
  bool leaves_key = false;
  bool leaves_body = false;
};

TEST_F(HistoryKeysTest, RefusesAKeyThatIsLeft) {
  KeyLeavingStore leaving;
  history.open(leaving);
  virtual_time().utc_ns = kKeyEnd * 1'000'000;
  leaving.leaves_key = true;
  history.append(put(1));
  history.append(remove(1));
  history.append(forget(1));
  EXPECT_THROW(history.open(leaving), Violation);
}

TEST_F(HistoryKeysTest, RefusesABodyThatIsLeftOfAReplacedJob) {
  KeyLeavingStore leaving;
  history.open(leaving);
  history.append(put(1));
  history.append(replace_body(1, 2));
  leaving.leaves_body = true;
  EXPECT_THROW(history.open(leaving), Violation);
}

}  // namespace

}  // namespace carillon::simulator
