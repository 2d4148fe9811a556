// put-jobs, reserve-jobs, delete-jobs and release-jobs: many jobs in one command.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

std::string with_data(std::string_view verb, std::string_view data, std::string_view options = "") {
  std::string command(verb);
  command += " " + std::to_string(data.size());
  if (!options.empty()) command += " " + std::string(options);
  return command + "\r\n" + std::string(data) + "\r\n";
}

std::string put_jobs(std::string_view data, std::string_view options = "") {
  return with_data("put-jobs", data, options);
}

class SessionBatches : public testing::Test {
 protected:
  std::uint64_t ready() { return server.engine.stats().jobs.ready; }

  TestServer server;
  Client client{server};
  Client worker{server};
};

TEST_F(SessionBatches, ManyJobsArePutInOneAppend) {
  const queue::Sequence before = server.engine.last_sequence();
  EXPECT_EQ(client.say(put_jobs("5\r\nhello\r\n0 delay=1m pri=7\r\n\r\n3\r\nyou\r\n")),
            "JOBS 3\r\nINSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\n");
  EXPECT_EQ(server.engine.last_sequence(), before + 1);
  EXPECT_EQ(client.say("peek 2\r\n"), "FOUND 2 0\r\n\r\n");
  EXPECT_EQ(worker.say("reserve\r\nreserve\r\n"),
            "RESERVED 1 5\r\nhello\r\nRESERVED 3 3\r\nyou\r\n");
  EXPECT_EQ(client.say(put_jobs("")), "JOBS 0\r\n");
}

// A default may concern only some of the jobs.
TEST_F(SessionBatches, DefaultsOfKeysAndExpiriesAreOfTheJobsThatHaveThem) {
  const std::string_view data = "1\r\na\r\n1 key=k expires-in=1h\r\nb\r\n";
  EXPECT_EQ(client.say(put_jobs(data, "on-conflict=ignore key-window=1h at-expiry=dead")),
            "JOBS 2\r\nINSERTED 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say(put_jobs("1 key=k\r\nb\r\n", "on-conflict=ignore")),
            "JOBS 1\r\nEXISTS 2 ready\r\n");
  EXPECT_EQ(client.say(put_jobs("1 key-window=1h\r\na\r\n")),
            "REFUSED 1 BAD_OPTION key-window: needs `key`\r\n");
}

// A reply has room for 17 jobs of this size, and not for the next one.
TEST_F(SessionBatches, GroupsTakeTurnsFromReplyToReply) {
  const std::string rest(59'999, 'x');
  for (int n = 0; n < 17; ++n)
    for (const char* group : {"a", "b"})
      client.say("put-job 60000 group=" + std::string(group) + "\r\n" + group + rest + "\r\n");
  std::string order;
  for (int call = 0; call < 2; ++call) {
    const std::string reply = worker.say("reserve-jobs 1000 timeout=0s\r\n");
    for (const char c : reply)
      if (c == 'a' || c == 'b') order += c;
  }
  std::string turns;
  for (int n = 0; n < 17; ++n) turns += "ab";
  EXPECT_EQ(order, turns);
}

TEST_F(SessionBatches, AReleaseIsNoFailure) {
  client.say("put-job 1\r\na\r\n");
  EXPECT_EQ(worker.say("reserve\r\n"), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(worker.say(with_data("release-jobs", "1", "max-attempts=3")),
            "BAD_OPTION \"max-attempts\": no such option; there are pri delay\r\n");
  EXPECT_EQ(worker.say(with_data("release-jobs", "1", "pri=7 delay=1s")),
            "JOBS 1\r\nRELEASED 1\r\n");
}

TEST_F(SessionBatches, OptionsOfTheLineAreThoseOfAllJobs) {
  client.say(put_jobs("1\r\na\r\n1 delay=2m\r\nb\r\n1 pri=1 due=1700000060000\r\nc\r\n",
                      "delay=3m pri=9 max-attempts=2"));
  const auto job = [&](queue::JobId id) { return *server.engine.job_stats(server.now, id); };
  EXPECT_EQ(job(1).record.delay, 180'000U);
  EXPECT_EQ(job(1).record.priority, 9U);
  EXPECT_EQ(job(1).record.extras->retry.max_attempts, 2U);
  EXPECT_EQ(job(2).record.delay, 120'000U);
  EXPECT_EQ(job(2).record.priority, 9U);
  EXPECT_EQ(job(3).record.delay, 60'000U);
  EXPECT_EQ(job(3).record.priority, 1U);
}

TEST_F(SessionBatches, EachJobHasTheAnswerOfItsOwnPut) {
  client.say("put-job 1 key=a\r\nx\r\nput-job 1 key=b\r\ny\r\n");
  EXPECT_EQ(client.say(put_jobs("1 key=a on-conflict=ignore\r\n1\r\n1 key=b "
                                "on-conflict=replace\r\n2\r\n1 key=c\r\n3\r\n")),
            "JOBS 3\r\nEXISTS 1 ready\r\nREPLACED 2\r\nINSERTED 4\r\n");
  EXPECT_EQ(client.say("peek-job key=b\r\n"), "FOUND 2 1\r\n2\r\n");
}

TEST_F(SessionBatches, TheJobThatIsWrongIsNamedAndNothingIsPut) {
  client.say("put-job 1 key=a\r\nx\r\n");
  const std::string good = "1\r\na\r\n";
  const std::pair<std::string, std::string> wrong[] = {
      {"1 key=a\r\nb\r\n", "EXISTS 1 ready"},
      {"1 delya=3s\r\nb\r\n",
       "BAD_OPTION \"delya\": no such option; there are pri delay due ttr spread expires-in "
       "expires-at at-expiry key on-conflict key-window group attributes max-attempts backoff "
       "jitter lost buried"},
      {"1 due=9999999999999999\r\nb\r\n", "OUT_OF_RANGE"},
      {"70000\r\n" + std::string(70'000, 'b') + "\r\n", "JOB_TOO_BIG"},
      {"2\r\nb\r\n", "EXPECTED_CRLF"},
      {"1\r\nbb\r\n", "EXPECTED_CRLF"},
      {"9\r\nb\r\n", "EXPECTED_CRLF"},
      {"1\r\nb", "EXPECTED_CRLF"},
      {"b\r\n", "BAD_FORMAT"},
      {"-1\r\nb\r\n", "BAD_FORMAT"},
      {"\r\nb\r\n", "BAD_FORMAT"},
      {"1", "BAD_FORMAT"},
      {"1 " + std::string(kMaxLongLine, ' ') + "\r\nb\r\n", "BAD_FORMAT"},
      {"1 key=k\r\nb\r\n1 key=k\r\nb\r\n", "BAD_OPTION key: another job of the batch has it"}};
  for (const auto& [data, why] : wrong) {
    const std::string number = data.find("k\r\nb") != std::string::npos ? "4 " : "3 ";
    EXPECT_EQ(client.say(put_jobs(good + good + data) + "list-tube-used\r\n"),
              "REFUSED " + number + why + "\r\nUSING default\r\n")
        << data.substr(0, 40);
  }
  EXPECT_EQ(ready(), 1U);
}

TEST_F(SessionBatches, ABatchIsRefusedAsAWholeAndItsDataIsDiscarded) {
  EXPECT_EQ(client.say(put_jobs("6\r\nquit\r\n\r\n", "delya=3s")).substr(0, 18),
            "BAD_OPTION \"delya\"");
  EXPECT_EQ(client.say(put_jobs("1\r\na\r\n", "key=a")).substr(0, 16), "BAD_OPTION \"key\"");
  EXPECT_EQ(client.say(put_jobs("1\r\na\r\n", "window=1h")), "BAD_OPTION window: needs `once`\r\n");
  EXPECT_EQ(client.say(put_jobs(std::string(kMaxBatchBytes + 1, 'q'))), "BATCH_TOO_BIG\r\n");
  std::string many;
  for (std::size_t i = 0; i < kMaxBatch; ++i) many += "0\r\n\r\n";
  EXPECT_EQ(client.say(put_jobs(many + "0\r\n\r\n")), "REFUSED 1001 TOO_MANY\r\n");
  Client other(server);
  EXPECT_EQ(other.say("put-jobs 3\r\n0\r\nquit\r\n"), "EXPECTED_CRLF\r\n");
  EXPECT_EQ(Client(server).say("put-jobs\r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(ready(), 0U);
  EXPECT_EQ(client.say(put_jobs(many)).substr(0, 22), "JOBS 1000\r\nINSERTED 1\r");
  EXPECT_EQ(ready(), 1'000U);
}

TEST_F(SessionBatches, TheAnswerDoesNotDependOnHowTheBytesAreCut) {
  const std::string bytes = put_jobs("5 key=a\r\nhello\r\n1\r\nx\r\n", "once=t") +
                            put_jobs("1\r\nab\r\n") + put_jobs("1\r\na\r\n", "bad=1") +
                            "reserve-jobs 2\r\n" + with_data("release-jobs", "1 9", "pri=3") +
                            with_data("delete-jobs", "1 2") + "list-tube-used\r\n";
  const std::string whole = client.say(bytes);
  EXPECT_TRUE(whole.ends_with("JOBS 2\r\nDELETED 1\r\nDELETED 2\r\nUSING default\r\n")) << whole;
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    TestServer other;
    Client second(other);
    const std::string answer = second.say(bytes.substr(0, cut));
    EXPECT_EQ(answer + second.say(bytes.substr(cut)), whole) << cut;
  }
  TestServer other;
  Client second(other);
  std::string answer;
  for (const char byte : bytes) answer += second.say(std::string(1, byte));
  EXPECT_EQ(answer, whole);
}

TEST_F(SessionBatches, ABatchThatCannotBeStoredHasPutNothing) {
  server.store.appends_fail = true;
  EXPECT_EQ(client.say(put_jobs("1\r\na\r\n1\r\nb\r\n", "once=t")), "INTERNAL_ERROR\r\n");
  server.store.appends_fail = false;
  EXPECT_EQ(ready(), 0U);
  EXPECT_EQ(client.say(put_jobs("1\r\na\r\n1\r\nb\r\n", "once=t")).substr(0, 8), "JOBS 2\r\n");
}

TEST_F(SessionBatches, ABatchIsSafeToRepeatWithAToken) {
  const std::string batch = put_jobs("1\r\na\r\n1\r\nb\r\n", "once=import-7/3 window=1h");
  EXPECT_EQ(client.say(batch), "JOBS 2\r\nINSERTED 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say(batch), "ALREADY 2\r\nINSERTED 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(worker.say("use other\r\n" + batch),
            "USING other\r\nALREADY 2\r\nINSERTED 1\r\nINSERTED 2\r\n");
  EXPECT_EQ(client.say(put_jobs("1\r\nc\r\n", "once=import-7/3 window=1h")), "OTHER_BATCH\r\n");
  server.pass(3'600'000);
  EXPECT_EQ(client.say(batch).substr(0, 8), "JOBS 2\r\n");
}

TEST_F(SessionBatches, AReplyWaitsForTheChangeThatItReports) {
  client.durable = 0;
  EXPECT_EQ(client.say(put_jobs("1\r\na\r\n", "once=t") + put_jobs("1\r\na\r\n", "once=t")), "");
  client.durable = server.engine.last_sequence();
  EXPECT_EQ(client.say(""), "JOBS 1\r\nINSERTED 1\r\nALREADY 1\r\nINSERTED 1\r\n");
  client.durable = 0;
  EXPECT_EQ(client.say(with_data("delete-jobs", "1")), "");
}

TEST_F(SessionBatches, ABatchIsRefusedWhileTheServerDrains) {
  server.service.drain();
  EXPECT_EQ(client.say(put_jobs("4\r\nquit\r\n")), "DRAINING\r\n");
}

TEST_F(SessionBatches, ABatchIsRefusedWhileItsTubeIsDrained) {
  const std::string batch = put_jobs("1\r\na\r\n", "once=t");
  EXPECT_EQ(client.say(batch), "JOBS 1\r\nINSERTED 1\r\n");
  server.engine.set_tube(server.now, "default", {.refuses_puts = true});
  EXPECT_EQ(client.say(put_jobs("1\r\nb\r\n")), "DRAINING\r\n");
  EXPECT_EQ(client.say(put_jobs("")), "JOBS 0\r\n") << "it adds nothing";
  EXPECT_EQ(client.say(batch), "ALREADY 1\r\nINSERTED 1\r\n");
}

TEST_F(SessionBatches, ABatchCountsInTheMemoryOfAllConnections) {
  TestServer small({.memory = 1 << 20});
  Client producer(small);
  const std::string data = "65000\r\n" + std::string(65'000, 'b') + "\r\n";
  EXPECT_EQ(producer.say(put_jobs(data)), "JOBS 1\r\nINSERTED 1\r\n");
  EXPECT_EQ(producer.say(put_jobs(data + data + data + "list-tube-used")), "OUT_OF_MEMORY\r\n");
}

// --- reserve-jobs

TEST_F(SessionBatches, ManyJobsAreReservedAtOnce) {
  client.say(put_jobs("1 pri=3\r\na\r\n0 pri=1\r\n\r\n2 pri=2\r\nbc\r\n"));
  EXPECT_EQ(worker.say("reserve-jobs 2\r\n"),
            "JOBS 2\r\nRESERVED 2 0\r\n\r\nRESERVED 3 2\r\nbc\r\n");
  EXPECT_EQ(worker.say("reserve-jobs 9\r\n"), "JOBS 1\r\nRESERVED 1 1\r\na\r\n");
  EXPECT_EQ(worker.say("reserve-jobs 9 timeout=0\r\n"), "TIMED_OUT\r\n");
}

TEST_F(SessionBatches, AReserveOfManyWaitsForTheFirstAndTakesWhatIsThereThen) {
  Client other(server);
  EXPECT_EQ(worker.say("reserve-jobs 5 timeout=1s\r\n"), "");
  EXPECT_EQ(other.say("reserve-jobs 5\r\n"), "");
  client.say(put_jobs("1\r\na\r\n1\r\nb\r\n1\r\nc\r\n1\r\nd\r\n"));
  EXPECT_EQ(worker.read(),
            "JOBS 3\r\nRESERVED 1 1\r\na\r\nRESERVED 3 1\r\nc\r\nRESERVED 4 1\r\nd\r\n");
  EXPECT_EQ(other.read(), "JOBS 1\r\nRESERVED 2 1\r\nb\r\n") << "each that waits gets one first";
  EXPECT_EQ(worker.say("reserve-jobs 5 timeout=1s\r\n"), "");
  server.pass(1'000);
  EXPECT_EQ(worker.read(), "TIMED_OUT\r\n");
}

TEST_F(SessionBatches, AReserveOfManyIsRefusedByName) {
  EXPECT_EQ(worker.say("reserve-jobs 0\r\nreserve-jobs 1001\r\nreserve-jobs x\r\n"),
            "BAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
  EXPECT_EQ(worker.say("reserve-jobs 1 timeout=3\r\n").substr(0, 24), "BAD_OPTION timeout: \"3\":");
}

TEST_F(SessionBatches, AReplyHasNoMoreThanAMebibyteOfBodies) {
  const std::string put = "put 0 0 60 65000\r\n" + std::string(65'000, 'b') + "\r\n";
  for (int i = 0; i < 20; ++i) client.say(put);
  EXPECT_EQ(worker.say("reserve-jobs 100\r\n").substr(0, 9), "JOBS 16\r\n");
  EXPECT_EQ(ready(), 4U);
  EXPECT_EQ(server.engine.job_stats(server.now, 17)->record.history.reserves, 0U);
}

TEST_F(SessionBatches, ALargeJobGoesAlone) {
  TestServer large({.max_job_size = 1 << 20});
  Client both(large);
  const std::string body(300'000, 'b');
  both.say("put 5 0 60 1\r\na\r\nput 5 0 60 300000\r\n" + body + "\r\nput 5 0 60 1\r\nc\r\n");
  EXPECT_EQ(both.say("reserve-jobs 3\r\n"), "JOBS 1\r\nRESERVED 1 1\r\na\r\n");
  EXPECT_EQ(both.say("reserve-jobs 3\r\n"), "JOBS 1\r\nRESERVED 2 300000\r\n" + body + "\r\n");
  EXPECT_EQ(both.say("reserve-jobs 3\r\n"), "JOBS 1\r\nRESERVED 3 1\r\nc\r\n");
}

TEST_F(SessionBatches, BodiesThatAreOnDiskAreWaitedFor) {
  client.say(put_jobs("1\r\na\r\n1 ttr=1s\r\nb\r\n1\r\nc\r\n"));
  server.store.bodies_are_on_disk = true;
  EXPECT_EQ(worker.say("reserve-jobs 3\r\n"), "");
  server.read_bodies();
  EXPECT_EQ(worker.read(), "");
  server.read_bodies();
  server.read_bodies();
  EXPECT_EQ(worker.read(),
            "JOBS 3\r\nRESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\nRESERVED 3 1\r\nc\r\n");
}

TEST_F(SessionBatches, AJobWhoseTtrIsOverBeforeAllBodiesAreReadIsNotInTheReply) {
  client.say(put_jobs("1 ttr=1s\r\na\r\n1\r\nb\r\n"));
  server.store.bodies_are_on_disk = true;
  EXPECT_EQ(worker.say("reserve-jobs 2\r\n"), "");
  server.read_bodies();
  server.pass(1'100);
  server.read_bodies();
  EXPECT_EQ(worker.read(), "JOBS 1\r\nRESERVED 2 1\r\nb\r\n");
  EXPECT_EQ(ready(), 1U);
}

TEST_F(SessionBatches, ABodyThatCannotBeReadEndsTheReply) {
  client.say(put_jobs("1\r\na\r\n1\r\nb\r\n"));
  server.store.bodies_are_on_disk = true;
  EXPECT_EQ(worker.say("reserve-jobs 2\r\n"), "");
  server.read_bodies();
  server.store.bodies_fail = true;
  server.read_bodies();
  EXPECT_EQ(worker.read(), "JOBS 1\r\nRESERVED 1 1\r\na\r\n");
  EXPECT_EQ(ready(), 1U);
  EXPECT_EQ(worker.say("reserve-jobs 2\r\n"), "");
  server.read_bodies();
  EXPECT_EQ(worker.read(), "INTERNAL_ERROR\r\n");
  EXPECT_EQ(ready(), 1U);
}

TEST_F(SessionBatches, JobsThatAreBeingGatheredComeBackWhenTheClientLeaves) {
  client.say(put_jobs("1\r\na\r\n1\r\nb\r\n"));
  server.store.bodies_are_on_disk = true;
  EXPECT_EQ(worker.say("reserve-jobs 2\r\n"), "");
  server.read_bodies();
  worker.hang_up();
  server.pass(1);
  EXPECT_EQ(ready(), 2U);
}

TEST_F(SessionBatches, OthersAreServedWhileManyJobsAreReserved) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += "1\r\nx\r\n";
  client.say(put_jobs(many));
  server.reading_takes_ns = 1'000;
  const std::string command = "reserve-jobs 100\r\n";
  std::size_t turns = 0;
  std::size_t used = worker.session().receive(command, server.now.mono_ns + 10'000);
  for (; worker.session().wants() == Session::Wants::kTurn; ++turns)
    used += worker.session().receive(std::string_view(command).substr(used),
                                     server.now.mono_ns + 10'000);
  EXPECT_GT(turns, 5U);
  EXPECT_EQ(worker.read().substr(0, 10), "JOBS 100\r\n");
}

// --- delete-jobs and release-jobs

TEST_F(SessionBatches, ManyJobsAreDeletedWithAnAnswerForEach) {
  client.say(put_jobs("1\r\na\r\n1 delay=1h\r\nb\r\n1\r\nc\r\n"));
  EXPECT_EQ(worker.say("reserve\r\n"), "RESERVED 1 1\r\na\r\n");
  EXPECT_EQ(client.say(with_data("delete-jobs", "1  2 3 2 77")),
            "JOBS 5\r\nNOT_FOUND 1\r\nDELETED 2\r\nDELETED 3\r\nNOT_FOUND 2\r\nNOT_FOUND 77\r\n");
  EXPECT_EQ(worker.say(with_data("delete-jobs", "1")), "JOBS 1\r\nDELETED 1\r\n");
  EXPECT_EQ(client.say(with_data("delete-jobs", "")), "JOBS 0\r\n");
}

TEST_F(SessionBatches, ManyJobsAreReleased) {
  client.say(put_jobs("1 pri=5\r\na\r\n1 pri=6\r\nb\r\n"));
  worker.say("reserve-jobs 2\r\n");
  EXPECT_EQ(worker.say(with_data("release-jobs", "1 9")),
            "JOBS 2\r\nRELEASED 1\r\nNOT_FOUND 9\r\n");
  EXPECT_EQ(server.engine.job_stats(server.now, 1)->record.priority, 5U);
  EXPECT_EQ(worker.say(with_data("release-jobs", "2", "pri=1 delay=3s")),
            "JOBS 1\r\nRELEASED 2\r\n");
  const auto second = *server.engine.job_stats(server.now, 2);
  EXPECT_EQ(second.record.priority, 1U);
  EXPECT_EQ(second.record.delay, 3'000U);
}

TEST_F(SessionBatches, IdsThatAreWrongChangeNothing) {
  client.say("put 0 0 60 1\r\na\r\n");
  std::string many;
  for (std::size_t i = 0; i <= kMaxBatch; ++i) many += "1 ";
  EXPECT_EQ(client.say(with_data("delete-jobs", "1 x") + with_data("delete-jobs", "1,2") +
                       with_data("delete-jobs", many)),
            "BAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n");
  EXPECT_EQ(client.say(with_data("delete-jobs", "1", "delay=3s")),
            "BAD_OPTION delete-jobs has no options\r\n");
  EXPECT_EQ(client.say(with_data("release-jobs", "1", "delay=300000000000s")), "OUT_OF_RANGE\r\n");
  EXPECT_EQ(ready(), 1U);
}

// Each step of 64 jobs reads the clock: the first two readings let the delay end in the year 9999.
TEST_F(SessionBatches, ADelayThatFitsNoMoreIsRefusedInTheMiddle) {
  std::string jobs;
  std::string ids;
  for (int id = 1; id <= 65; ++id) {
    jobs += "0\r\n\r\n";
    ids += std::to_string(id) + " ";
  }
  client.say(put_jobs(jobs));
  worker.say("reserve-jobs 65\r\n");
  server.reading_takes_ns = 1'000'000'000;
  const queue::Millis delay = queue::kLastDue - server.now.utc_ns / 1'000'000 - 2'500;
  const std::string answer =
      worker.say(with_data("release-jobs", ids, "delay=" + std::to_string(delay) + "ms"));
  EXPECT_TRUE(answer.starts_with("JOBS 65\r\nRELEASED 1\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("RELEASED 64\r\nOUT_OF_RANGE 65\r\n")) << answer;
}

TEST_F(SessionBatches, JobsThatCannotBeDeletedStay) {
  client.say(put_jobs("1\r\na\r\n1\r\nb\r\n"));
  server.store.appends_fail = true;
  EXPECT_EQ(client.say(with_data("delete-jobs", "1 2")),
            "JOBS 2\r\nINTERNAL_ERROR 1\r\nINTERNAL_ERROR 2\r\n");
  server.store.appends_fail = false;
  EXPECT_EQ(ready(), 2U);
}

TEST_F(SessionBatches, ManyDeletesAreDoneInSteps) {
  std::string many;
  std::string ids;
  for (int i = 1; i <= 200; ++i) {
    many += "1\r\nx\r\n";
    ids += std::to_string(i) + " ";
  }
  client.say(put_jobs(many));
  const queue::Sequence before = server.engine.last_sequence();
  EXPECT_EQ(client.say(with_data("delete-jobs", ids)).substr(0, 10), "JOBS 200\r\n");
  EXPECT_EQ(server.engine.last_sequence(), before + 4) << "64 in an append";
  EXPECT_EQ(ready(), 0U);
}

}  // namespace
}  // namespace carillon::server::beanstalk
