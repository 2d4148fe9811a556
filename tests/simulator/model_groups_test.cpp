// The model, and whose turn it is among the groups of a tube. Histories without a server, by hand.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

#include "carillon/queue/memory_store.h"
#include "simulator/model.h"

namespace carillon::simulator {

namespace {

using queue::JobId;

class ModelGroupsTest : public testing::Test {
 protected:
  ModelGroupsTest() {
    history.open(store);
    model.connect(1);
  }

  void judge(const Command& command, const std::string& reply) {
    std::string_view bytes = reply;
    model.judge(1, command, take_reply(bytes), {now, now}, {});
    history.forget_changed();
  }
  // Puts that the server has stored.
  void put(const std::string& group, JobId from, JobId to, queue::Priority priority = 0) {
    for (JobId id = from; id <= to; ++id) {
      const std::uint32_t lane =
          lanes.try_emplace(group, 2 + static_cast<std::uint32_t>(lanes.size())).first->second;
      queue::Changes changes;
      changes.jobs.push_back({{},
                              queue::JobRecord{.id = id,
                                               .tube = lane,
                                               .priority = priority,
                                               .due = now.utc_ns / 1'000'000,
                                               .ttr = 2'000,
                                               .body_bytes = 5,
                                               .history = {}},
                              "hello"});
      changes.tubes.push_back(
          {.number = 1, .name = "default", .lanes = static_cast<std::uint32_t>(lanes.size())});
      changes.tubes.push_back(
          {.number = lane, .name = group, .scheduled = ++jobs[group], .head = 1});
      history.append(changes);
      judge({.verb = Verb::kPutJob,
             .priority = priority,
             .ttr = 2'000,
             .body = "hello",
             .group = group},
            "INSERTED " + std::to_string(id) + "\r\n");
    }
    now.utc_ns += 10'000'000;
    now.mono_ns += 10'000'000;
  }
  void reserve(JobId id) {
    judge({.verb = Verb::kReserve, .timeout = 0},
          "RESERVED " + std::to_string(id) + " 5\r\nhello\r\n");
  }

  void reserve_all(std::initializer_list<JobId> ids) {
    for (const JobId id : ids) reserve(id);
  }

  queue::MemoryStore store;
  HistoryStore history;
  Model model{history};
  queue::Now now{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};
  std::map<std::string, std::uint32_t> lanes;
  std::map<std::string, std::uint64_t> jobs;
};

TEST_F(ModelGroupsTest, RefusesAnotherOrderWithinAGroup) {
  put("a", 1, 2);
  put("b", 3, 3);
  EXPECT_THROW(reserve(2), Violation);
  reserve(3);
  reserve(1);
}

TEST_F(ModelGroupsTest, RefusesATurnBeforeAPriority) {
  put("a", 1, 1, 5);
  put("b", 2, 2, 1);
  EXPECT_THROW(reserve(1), Violation);
  reserve(2);
  reserve(1);
}

TEST_F(ModelGroupsTest, LetsGroupsTakeTurnsInAnyOrder) {
  put("a", 1, 6);
  put("b", 7, 12);
  reserve_all({1, 7, 8, 2, 3, 9, 4, 10});
}

TEST_F(ModelGroupsTest, RefusesThatOneGroupGetsMoreThanItsShare) {
  put("a", 1, 6);
  put("b", 7, 12);
  reserve_all({1, 2, 3});
  EXPECT_THROW(reserve(4), Violation);
}

TEST_F(ModelGroupsTest, AGroupThatWasNotThereHasNoShare) {
  put("a", 1, 6);
  reserve_all({1, 2, 3});
  put("b", 7, 12);
  reserve_all({4, 5, 7});
}

}  // namespace

}  // namespace carillon::simulator
