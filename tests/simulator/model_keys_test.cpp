// The model: which replies about jobs with keys it refuses. A real engine does what the replies
// say, or something else.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "carillon/queue/engine.h"
#include "carillon/queue/memory_store.h"
#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

namespace {

using queue::JobId;
using queue::OnConflict;

class ModelKeysTest : public testing::Test {
 protected:
  ModelKeysTest() {
    model.connect(1);
    model.connect(2);
  }

  void judge(ClientNumber number, const Command& command, const std::string& reply) {
    std::string_view bytes = reply;
    model.judge(number, command, take_reply(bytes), {now, now}, {});
  }
  // What the engine does from here on is the work of one command.
  void begin() { history.forget_changed(); }
  JobId put(const Command& command) {
    begin();
    return engine
        .put(client, now,
             {.priority = command.priority,
              .due_in = command.delay,
              .due_at = command.due_at,
              .ttr = command.ttr,
              .key = command.key,
              .on_conflict = command.on_conflict,
              .key_window = command.key_window,
              .group = command.group},
             command.body)
        .id;
  }
  // A job of client 1 with the key "a".
  static Command keyed(OnConflict way, queue::Millis delay = 0) {
    return {.verb = Verb::kPutJob,
            .delay = delay,
            .ttr = 2'000,
            .body = "hello",
            .key = "a",
            .on_conflict = way,
            .key_window = 1'000};
  }
  void put_first(queue::Millis delay = 0) {
    const Command command = keyed(OnConflict::kReject, delay);
    const JobId id = put(command);
    judge(1, command, "INSERTED " + std::to_string(id) + "\r\n");
  }
  void cancel_first() {
    begin();
    engine.cancel(now, 1);
    judge(1, cancel, "CANCELLED 1\r\n");
  }
  void delete_first() {
    begin();
    engine.remove(client, now, 1);
    judge(1, {.verb = Verb::kDelete, .id = 1}, "DELETED\r\n");
  }
  void pass(queue::Millis ms) {
    now.utc_ns += ms * 1'000'000;
    now.mono_ns += ms * 1'000'000;
    virtual_time() = {.utc_ns = now.utc_ns, .mono_ns = now.mono_ns};
  }

  const Command reject = keyed(OnConflict::kReject);
  const Command replace = keyed(OnConflict::kReplace);
  const Command cancel{.verb = Verb::kCancelJob, .key = "a"};
  const Command peek{.verb = Verb::kPeekJob, .key = "a"};
  queue::Now now{.utc_ns = 1'700'000'000'000'000'000, .mono_ns = 1'000'000'000};
  queue::MemoryStore store;
  HistoryStore history;
  queue::Engine engine{(history.open(store), history), {}, now};
  const queue::ClientId client = engine.connect();
  Model model{history};
};

TEST_F(ModelKeysTest, RefusesAKeyForTwo) {
  put_first();
  Command other = reject;
  other.key = "b";
  put(other);
  EXPECT_THROW(judge(1, reject, "INSERTED 2\r\n"), Violation);
}

TEST_F(ModelKeysTest, RefusesToGiveWayToNobody) {
  begin();
  EXPECT_THROW(judge(1, reject, "EXISTS 1 ready\r\n"), Violation);
}

TEST_F(ModelKeysTest, RefusesToGiveWayToAnother) {
  put_first();
  begin();
  EXPECT_THROW(judge(1, reject, "EXISTS 2 ready\r\n"), Violation);
  judge(1, reject, "EXISTS 1 ready\r\n");
}

TEST_F(ModelKeysTest, RefusesAnotherStateOfTheJobThatHasTheKey) {
  put_first(5'000);
  begin();
  for (const char* const state : {"ready", "reserved", "buried", "dead", "done"})
    EXPECT_THROW(judge(1, reject, std::string("EXISTS 1 ") + state + "\r\n"), Violation) << state;
  EXPECT_THROW(judge(1, reject, "EXISTS 1\r\n"), Violation);
  judge(1, reject, "EXISTS 1 delayed\r\n");
}

TEST_F(ModelKeysTest, RefusesToGiveWayAfterTheWindowOfTheKey) {
  put_first();
  delete_first();
  begin();
  pass(999);
  judge(1, reject, "EXISTS 1 done\r\n");
  pass(2);
  EXPECT_THROW(judge(1, reject, "EXISTS 1 done\r\n"), Violation);
}

TEST_F(ModelKeysTest, RefusesTheWindowOfAJobThatIsCancelled) {
  put_first();
  begin();
  engine.remove(client, now, 1);
  EXPECT_THROW(judge(1, cancel, "CANCELLED 1\r\n"), Violation);
}

TEST_F(ModelKeysTest, RefusesTheLossOfTheWindowOfAJobThatIsDone) {
  put_first();
  begin();
  engine.cancel(now, 1);
  EXPECT_THROW(judge(1, {.verb = Verb::kDelete, .id = 1}, "DELETED\r\n"), Violation);
}

TEST_F(ModelKeysTest, RefusesAPutThatIgnoresTheWindowOfAKey) {
  put_first();
  delete_first();
  put(replace);
  EXPECT_THROW(judge(1, reject, "INSERTED 2\r\n"), Violation);
}

TEST_F(ModelKeysTest, AllowsToReplaceAKeyInItsWindow) {
  put_first();
  delete_first();
  put(replace);
  judge(1, replace, "INSERTED 2\r\n");
}

TEST_F(ModelKeysTest, RefusesToReplaceAJobByHalves) {
  put_first();
  begin();
  EXPECT_THROW(judge(1, replace, "REPLACED 1\r\n"), Violation) << "nothing was stored";
  Command other = replace;
  other.body = "HELLO";
  put(other);
  EXPECT_THROW(judge(1, replace, "REPLACED 1\r\n"), Violation) << "another body was stored";
}

TEST_F(ModelKeysTest, RefusesToReplaceAReservedJob) {
  put_first();
  begin();
  engine.reserve(client, now, 0);
  judge(1, {.verb = Verb::kReserve, .timeout = 0}, "RESERVED 1 5\r\nhello\r\n");
  judge(1, replace, "IS_RESERVED 1\r\n");
  EXPECT_THROW(judge(1, replace, "REPLACED 1\r\n"), Violation);
  pass(2'002);
  EXPECT_THROW(judge(1, replace, "IS_RESERVED 1\r\n"), Violation) << "its ttr is over";
}

TEST_F(ModelKeysTest, RefusesADebounceThatBringsAJobForward) {
  put_first(5'000);
  put(keyed(OnConflict::kReplace, 3'000));
  EXPECT_THROW(judge(1, keyed(OnConflict::kDebounce, 3'000), "REPLACED 1\r\n"), Violation);
}

TEST_F(ModelKeysTest, RefusesAnotherDueTimeThanTheOneThatIsKept) {
  put_first(3'000);
  put(keyed(OnConflict::kReplace, 5'000));
  EXPECT_THROW(judge(1, keyed(OnConflict::kKeepDue, 5'000), "REPLACED 1\r\n"), Violation);
}

// The first job of the batch replaces the only job of the group, which the second one is put into.
// So the group need not be made, and nobody asks whether there may be one more.
TEST_F(ModelKeysTest, KnowsAGroupThatAJobLeavesWithinABatch) {
  Command first = reject;
  first.group = "g";
  put(first);
  model.restart({.tubes = 1}, now);
  model.connect(1);
  Command second = first;
  second.key.clear();
  begin();
  const auto order = [](const Command& of) {
    return queue::PutOrder{.ttr = of.ttr,
                           .key = of.key,
                           .on_conflict = of.on_conflict,
                           .key_window = of.key_window,
                           .group = of.group};
  };
  const std::vector<queue::NewJob> jobs{{order(replace), "hello"}, {order(second), "hello"}};
  engine.put_all(client, now, jobs, {});
  judge(1, {.verb = Verb::kPutJobs, .jobs = {replace, second}},
        "JOBS 2\r\nREPLACED 1\r\nINSERTED 3\r\n");  // 2 stands for a body
  put(second);
  judge(1, second, "INSERTED 4\r\n");
  second.group = "h";
  put(second);
  EXPECT_THROW(judge(1, second, "INSERTED 5\r\n"), Violation) << "there is no room for a group";
}

TEST_F(ModelKeysTest, RefusesAPatchThatIsNotStored) {
  put_first();
  begin();
  const Command patch{.verb = Verb::kPatchJob, .key = "a", .patch = {.priority = 7}};
  EXPECT_THROW(judge(1, patch, "PATCHED 1\r\n"), Violation);
  engine.patch(now, 1, {.priority = 8});
  EXPECT_THROW(judge(1, patch, "PATCHED 1\r\n"), Violation);
}

TEST_F(ModelKeysTest, RefusesACancellationThatIsNotStored) {
  put_first();
  begin();
  EXPECT_THROW(judge(1, cancel, "CANCELLED 1\r\n"), Violation);
  EXPECT_THROW(judge(1, cancel, "NOT_FOUND\r\n"), Violation);
  EXPECT_THROW(judge(1, cancel, "IS_RESERVED 1\r\n"), Violation);
}

TEST_F(ModelKeysTest, FindsAJobByItsKeyWhileItIsThere) {
  put_first();
  begin();
  judge(1, peek, "FOUND 1 5\r\nhello\r\n");
  EXPECT_THROW(judge(1, peek, "NOT_FOUND\r\n"), Violation);
  cancel_first();
  begin();
  judge(1, peek, "NOT_FOUND\r\n");
  EXPECT_THROW(judge(1, peek, "FOUND 1 5\r\nhello\r\n"), Violation);
}

}  // namespace

}  // namespace carillon::simulator
