// The model: which replies it refuses. Each case is a history without a server, by hand.

#include "simulator/model.h"
#include "simulator/requests.h"

#include <gtest/gtest.h>

#include <string>

#include "carillon/queue/memory_store.h"

namespace carillon::simulator {

namespace {

using queue::JobId;

class ModelTest : public testing::Test {
 protected:
  ModelTest() {
    history.open(store);
    model.connect(1);
    model.connect(2);
  }

  void judge(ClientNumber client, const Command& command, const std::string& reply) {
    std::string_view bytes = reply;
    model.judge(client, command, command.by_http ? take_answer(bytes) : take_reply(bytes),
                {now, now}, {});
    history.forget_changed();
  }
  // A put that the server has stored, with this due time.
  void put(JobId id, queue::Millis delay, queue::Priority priority = 0) {
    const queue::UtcMs due = now.utc_ns / 1'000'000 + delay;
    queue::Changes changes;
    changes.jobs.push_back({{},
                            queue::JobRecord{.id = id,
                                             .tube = 1,
                                             .priority = priority,
                                             .due = due,
                                             .ttr = 2'000,
                                             .body_bytes = 5,
                                             .history = {}},
                            "hello"});
    changes.tubes.push_back({.number = 1, .name = "default", .scheduled = ++jobs, .buried = 0});
    history.append(changes);
    judge(1,
          {.verb = Verb::kPut, .priority = priority, .delay = delay, .ttr = 2'000, .body = "hello"},
          "INSERTED " + std::to_string(id) + "\r\n");
  }
  // The server starts anew, with little memory.
  void restart(const Model::Limits& limits) {
    model.restart(limits, now);
    model.connect(1);
    model.connect(2);
  }
  static std::string reserved(JobId id) {
    return "RESERVED " + std::to_string(id) + " 5\r\nhello\r\n";
  }
  void pass(queue::Millis ms) {
    now.utc_ns += ms * 1'000'000;
    now.mono_ns += ms * 1'000'000;
  }

  const Command at_once{.verb = Verb::kReserve, .timeout = 0};
  const Command reserve{.verb = Verb::kReserve};
  queue::MemoryStore store;
  HistoryStore history;
  Model model{history};
  queue::Now now{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};
  std::uint64_t jobs = 0;
};

TEST_F(ModelTest, RefusesAJobThatIsEarlyByANanosecond) {
  put(1, 1'000);
  pass(999);
  now.mono_ns += 999'999;
  EXPECT_THROW(judge(2, at_once, reserved(1)), Violation);
  now.mono_ns += 1;
  judge(2, at_once, reserved(1));
}

TEST_F(ModelTest, RefusesAJobThatIsEarlyBecauseTheClockWasSet) {
  put(1, 1'000);
  now.utc_ns += 3'600'000'000'000;
  model.clock_was_set(now);
  EXPECT_THROW(judge(2, at_once, reserved(1)), Violation);
  pass(1'000);
  judge(2, at_once, reserved(1));
}

TEST_F(ModelTest, RefusesAJobForTwo) {
  put(1, 0);
  judge(2, at_once, reserved(1));
  EXPECT_THROW(judge(1, at_once, reserved(1)), Violation);
  pass(2'000);
  judge(1, at_once, reserved(1));
}

TEST_F(ModelTest, RefusesToLetAClientWaitForWhatIsThere) {
  put(1, 1'000);
  judge(2, reserve, "");
  model.expect_nobody_waits_in_vain(now);
  pass(1'000);
  model.expect_nobody_waits_in_vain(now);
  pass(2);
  EXPECT_THROW(model.expect_nobody_waits_in_vain(now), Violation);
  EXPECT_THROW(judge(1, at_once, "TIMED_OUT\r\n"), Violation);
}

TEST_F(ModelTest, RefusesAnotherOrder) {
  put(1, 0, 5);
  put(2, 0, 4);
  EXPECT_THROW(judge(2, at_once, reserved(1)), Violation);
  judge(2, at_once, reserved(2));
}

TEST_F(ModelTest, RefusesAnIdASecondTime) {
  put(7, 0);
  EXPECT_THROW(put(7, 0), Violation);
  EXPECT_THROW(put(6, 0), Violation);
}

TEST_F(ModelTest, RefusesAnotherBody) {
  put(1, 0);
  EXPECT_THROW(judge(2, at_once, "RESERVED 1 5\r\nHELLO\r\n"), Violation);
}

TEST_F(ModelTest, RefusesAnErrorWithoutACause) {
  EXPECT_THROW(judge(2, at_once, "INTERNAL_ERROR\r\n"), Violation);
}

TEST_F(ModelTest, RefusesADeletionThatIsNotStored) {
  put(1, 0);
  EXPECT_THROW(judge(2, {.verb = Verb::kDelete, .id = 1}, "DELETED\r\n"), Violation);
}

TEST_F(ModelTest, RefusesALargeBodyUnderAnIdThatWasGiven) {
  put(1, 0);
  EXPECT_THROW(model.begin_body(1, 1), Violation);
  model.begin_body(1, 2);
  model.told_id(3);
  EXPECT_THROW(model.begin_body(2, 3), Violation);
}

TEST_F(ModelTest, RefusesALargeBodyThatNobodyPutsAnyMore) {
  queue::Changes changes;
  changes.begun = {1, queue::kBodyPiece + 1};
  history.append(changes);
  model.begin_body(1, 1);
  model.expect_no_remains();
  model.disconnect(1, now);
  EXPECT_THROW(model.expect_no_remains(), Violation);
}

TEST_F(ModelTest, RefusesToGoOnWithABodyWhenTheTtrIsOver) {
  put(1, 0);
  judge(2, at_once, reserved(1));
  pass(1'999);
  model.judge_more_of_body(2, 1, {now, now});
  pass(1'999);
  EXPECT_THROW(model.judge_cut(2, 1, 1, true, {now, now}, {}), Violation);
  pass(4);
  EXPECT_THROW(model.judge_more_of_body(2, 1, {now, now}), Violation);
  model.judge_cut(2, 1, 1, true, {now, now}, {});
}

TEST_F(ModelTest, RefusesOutOfMemoryWhereThereIsMemory) {
  const Command small{.verb = Verb::kPut, .body = "hello"};
  const Command larger{.verb = Verb::kPut, .body = std::string(5'000, 'x')};
  EXPECT_THROW(judge(1, larger, "OUT_OF_MEMORY\r\n"), Violation);
  restart({.bodies = true});
  judge(1, larger, "OUT_OF_MEMORY\r\n");
  EXPECT_THROW(judge(1, small, "OUT_OF_MEMORY\r\n"), Violation);
}

TEST_F(ModelTest, LetsAClientReserveItsShareAndNoMore) {
  put(1, 0);
  put(2, 0);
  put(3, 0);
  restart({.reserved = 2});
  judge(1, at_once, reserved(1));
  EXPECT_THROW(judge(1, at_once, reserved(2)), Violation);
  judge(1, at_once, "TIMED_OUT\r\n");
  EXPECT_THROW(judge(2, at_once, "TIMED_OUT\r\n"), Violation);
}

TEST_F(ModelTest, LetsAClientWithTooManyJobsWaitUntilItIsChecked) {
  put(1, 0);
  put(2, 0);
  restart({.reserved = 1});
  judge(1, at_once, reserved(1));
  model.judge(1, reserve, {}, {now, now}, {});
  model.expect_nobody_waits_in_vain(now);
  pass(900);
  model.expect_nobody_waits_in_vain(now);
  pass(1'200);  // the ttr of its job is over
  model.expect_nobody_waits_in_vain(now);
  pass(101);
  model.expect_nobody_waits_in_vain(now);
  pass(2);
  EXPECT_THROW(model.expect_nobody_waits_in_vain(now), Violation);
}

TEST_F(ModelTest, RefusesATubeBeyondThoseThatMayBe) {
  restart({.tubes = 2});
  judge(1, {.verb = Verb::kUse, .tube = "a"}, "USING a\r\n");
  judge(2, {.verb = Verb::kWatch, .tube = "b"}, "OUT_OF_MEMORY\r\n");
  EXPECT_THROW(judge(2, {.verb = Verb::kUse, .tube = "a"}, "OUT_OF_MEMORY\r\n"), Violation);
  EXPECT_THROW(judge(2, {.verb = Verb::kWatch, .tube = "b"}, "WATCHING 2\r\n"), Violation);
}

// Its worker was lost with the server, and the next one has not come to it.
TEST_F(ModelTest, LetsAListCallAJobReadyThatWillBeCancelled) {
  put(1, 0);
  queue::Changes changes;
  const queue::JobRecord before = history.state().jobs.at(1).record;
  queue::JobRecord after = before;
  queue::JobExtras extras;
  extras.cancel_asked = true;
  after.extras = decltype(after.extras)(extras);
  changes.jobs.push_back({before, after, {}});
  changes.tubes.push_back({.number = 1, .name = "default", .scheduled = 1});
  history.append(changes);
  history.forget_changed();
  restart({.reserved = 2});
  const Command list{.verb = Verb::kListJobs,
                     .by_http = true,
                     .bound = 10,
                     .tube = "default",
                     .filter = {.states = queue::bit_of(queue::JobState::kReady)}};
  const std::string text =
      R"({"jobs":[{"id":1,"tube":"default","body_bytes":5}],"next_page_token":null})";
  judge(1, list,
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
  EXPECT_THROW(judge(1, at_once, reserved(1)), Violation);
}

TEST_F(ModelTest, RefusesTwoCheckpointsAtOnce) {
  Command checkpoint{.verb = Verb::kCheckpoint};
  write_request(checkpoint);
  const std::string refused = "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n";
  EXPECT_THROW(judge(1, checkpoint, refused), Violation);
  judge(1, checkpoint, "");
  judge(2, checkpoint, refused);
  EXPECT_THROW(judge(2, checkpoint, ""), Violation);
  model.disconnect(1, now);
  judge(2, checkpoint, "");
}

}  // namespace

}  // namespace carillon::simulator
