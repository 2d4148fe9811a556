// Leases over HTTP: who has a job, for how long, and what becomes of it.
// Row Q11 of the product's table.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

class HttpLeases : public HttpSession {
 protected:
  Answer reserve(std::string_view body = "{}") {
    return ask("POST", "/v1/tubes/mail:reserve", body);
  }
  Answer end(std::string_view token, std::string_view verb, std::string_view body = "") {
    return ask("POST", "/v1/leases/" + std::string(token) + ":" + std::string(verb), body);
  }
  static json::array jobs(const Answer& answer) { return answer.value().at("jobs").as_array(); }
  static std::string token(const json::value& job) {
    return std::string(job.at("lease").as_string());
  }
  std::string state(int id) {
    const Answer job = ask("GET", "/v1/jobs/" + std::to_string(id));
    return job.status == 200 ? std::string(job.value().at("state").as_string()) : "gone";
  }
  // Without its body.
  queue::JobState engine_state(queue::JobId id) {
    return server.engine.job_stats(server.now, id)->state;
  }
  static std::string kind(const Answer& problem) {
    const std::string type(problem.value().at("type").as_string());
    return type.substr(type.rfind('#') + 1);
  }
};

TEST_F(HttpLeases, AJobIsReservedAndDone) {
  put(R"({"body":"hello","ttr":"10s"})");
  const Answer got = reserve(R"({"worker":"host-7"})");
  EXPECT_EQ(got.status, 200);
  ASSERT_EQ(jobs(got).size(), 1u);
  const json::object job = jobs(got)[0].as_object();
  EXPECT_EQ(job.at("id"), 1);
  EXPECT_EQ(job.at("body"), "hello");
  EXPECT_EQ(job.at("state"), "reserved");
  EXPECT_EQ(job.at("lease_ends"), "2023-11-14T22:13:29.999Z");
  EXPECT_EQ(end(token(job), "ack").status, 204);
  EXPECT_EQ(state(1), "gone");
  const Answer again = end(token(job), "ack");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(kind(again), "lease-over");
}

TEST_F(HttpLeases, AnEmptyTubeIsAnsweredAtOnceOrWaitedFor) {
  EXPECT_TRUE(jobs(reserve()).empty());
  EXPECT_EQ(reserve(R"({"wait":"20s"})").status, 0);
  EXPECT_EQ(session.wants(), Protocol::Wants::kDelivery);
  pass(19'999);
  EXPECT_EQ(next().status, 0);
  pass(1);
  EXPECT_TRUE(jobs(next()).empty());

  EXPECT_EQ(reserve(R"({"wait":"20s","max":2})").status, 0);
  Session producer(server.service, names);
  speaker = &producer;
  put(R"({"body":"a"})");
  put(R"({"body":"b"})");
  speaker = &session;
  deliver();
  EXPECT_EQ(jobs(next()).size(), 2u) << "those that are ready then";
  EXPECT_EQ(server.service.leases().size(), 1u);
}

TEST_F(HttpLeases, ALeaseOutlivesItsConnection) {
  put("{}");
  Session worker(server.service, names);
  speaker = &worker;
  const std::string lease = token(jobs(reserve())[0]);
  worker.close();
  speaker = &session;
  EXPECT_EQ(state(1), "reserved");
  EXPECT_EQ(end(lease, "ack").status, 204);
  EXPECT_EQ(server.service.leases().size(), 0u);
}

TEST_F(HttpLeases, AClientThatLeavesWhileItWaitsGetsNoJob) {
  Session worker(server.service, names);
  speaker = &worker;
  EXPECT_EQ(reserve(R"({"wait":"1h"})").status, 0);
  worker.close();
  speaker = &session;
  put("{}");
  EXPECT_EQ(state(1), "ready");
  EXPECT_EQ(server.service.leases().size(), 0u);
}

TEST_F(HttpLeases, AClientThatSendsNoMoreWaitsNoMore) {
  EXPECT_EQ(reserve(R"({"wait":"1h"})").status, 0);
  session.end_of_input();
  deliver();
  EXPECT_TRUE(jobs(next()).empty());
}

// The job is another worker's then: the first one can do nothing to it.
TEST_F(HttpLeases, ATokenIsStaleWhenTheTimeIsOver) {
  put(R"({"ttr":"10s"})");
  const std::string first = token(jobs(reserve())[0]);
  pass(10'000);
  EXPECT_EQ(state(1), "ready");
  for (const char* verb : {"ack", "nack", "extend"}) EXPECT_EQ(end(first, verb).status, 409);
  EXPECT_EQ(state(1), "ready");
  const std::string second = token(jobs(reserve())[0]);
  for (const char* verb : {"ack", "nack", "extend"}) EXPECT_EQ(end(first, verb).status, 409);
  EXPECT_EQ(state(1), "reserved");
  EXPECT_EQ(end(second, "ack").status, 204);
}

// A client with a lease knows nothing about other leases: each worker's token ends with 128 random
// bits.
TEST_F(HttpLeases, TheTokenOfAnotherLeaseCannotBeGuessed) {
  ask("POST", "/v1/tubes/mail/jobs", "a");
  ask("POST", "/v1/tubes/mail/jobs", "b");
  const std::string mine = token(jobs(reserve())[0]);
  const std::string other = token(jobs(reserve())[0]);
  const std::string secret = mine.substr(mine.rfind('-') + 1);
  EXPECT_EQ(secret.size(), 32u);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  const std::string guess = other.substr(0, other.rfind('-') + 1) + secret;
  EXPECT_NE(guess, other);
  EXPECT_EQ(end(guess, "ack").status, 409);
  EXPECT_EQ(end(other, "ack").status, 204);
}

TEST_F(HttpLeases, RefusesTokensThatItHasNotGiven) {
  put("{}");
  const std::string lease = token(jobs(reserve())[0]);
  const std::string other_process = lease.substr(0, lease.size() - 1) + "x";
  for (const std::string& wrong : {std::string("x"), std::string("1-1"), std::string("-"),
                                   other_process, "f" + lease, lease + "0"}) {
    const Answer refused = end(wrong, "ack");
    EXPECT_EQ(refused.status, 409) << wrong;
    EXPECT_EQ(kind(refused), "lease-over");
  }
  EXPECT_EQ(state(1), "reserved");
}

TEST_F(HttpLeases, ALeaseHasATimeOfItsOwn) {
  put(R"({"ttr":"10s"})");
  const std::string lease = token(jobs(reserve(R"({"lease":"1m"})"))[0]);
  pass(59'998);
  EXPECT_EQ(state(1), "reserved");
  const Answer extended = end(lease, "extend", R"({"lease":"30s"})");
  EXPECT_EQ(extended.status, 200);
  EXPECT_EQ(extended.value().at("cancel_requested"), false);
  pass(29'999);
  EXPECT_EQ(end(lease, "extend").status, 200);
  pass(9'999);
  EXPECT_EQ(state(1), "reserved");
  pass(1);
  EXPECT_EQ(state(1), "ready");
}

TEST_F(HttpLeases, AFailedAttemptIsCountedAndComesAgain) {
  put(R"({"retry":{"max_attempts":2,"backoff":{"type":"fixed","initial":"5s"}}})");
  const std::string first = token(jobs(reserve(R"({"worker":"host-7"})"))[0]);
  const json::object failed = end(first, "nack", R"({"error":"disk full"})").value().as_object();
  EXPECT_EQ(failed.at("state"), "delayed");
  EXPECT_EQ(failed.at("delay_ms"), 5000);
  EXPECT_EQ(server.service.leases().size(), 0u);
  pass(5'000);
  const json::object job = jobs(reserve())[0].as_object();
  EXPECT_EQ(job.at("failed_attempts"), 1);
  const json::value story = ask("GET", "/v1/jobs/1").value().at("attempts");
  EXPECT_EQ(story.at(0).at("worker"), "host-7");
  EXPECT_EQ(story.at(0).at("error"), "disk full");
  EXPECT_EQ(end(token(job), "nack").value().at("state"), "dead");
  EXPECT_EQ(state(1), "dead");
}

TEST_F(HttpLeases, AJobThatIsHandedBackHasNotFailed) {
  put("{}");
  const std::string lease = token(jobs(reserve())[0]);
  const Answer back = end(lease, "nack", R"({"failed":false,"delay":"3s"})");
  EXPECT_EQ(back.value().at("state"), "delayed");
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("failed_attempts"), 0);
  EXPECT_EQ(end(lease, "nack", R"({"failed":false})").status, 409);
}

TEST_F(HttpLeases, TheWorkerLearnsThatACancelIsAskedFor) {
  put("{}");
  const std::string lease = token(jobs(reserve())[0]);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/1?if_reserved=ask").status, 202);
  EXPECT_EQ(end(lease, "extend").value().at("cancel_requested"), true);
  EXPECT_EQ(end(lease, "nack").value().at("state"), "cancelled");
  EXPECT_EQ(state(1), "gone");
  put("{}");
  const std::string second = token(jobs(reserve())[0]);
  ask("DELETE", "/v1/jobs/2?if_reserved=ask");
  EXPECT_EQ(end(second, "nack", R"({"failed":false,"delay":"1h"})").value().at("state"),
            "cancelled");
  EXPECT_EQ(state(2), "gone");
}

// No worker has had the job, so it is no failed attempt.
TEST_F(HttpLeases, AReserveThatCannotBeStoredLeavesTheJobAsItWas) {
  put(R"({"retry":{"max_attempts":1,"lost_fails":true}})");
  server.store.appends_fail = true;
  EXPECT_EQ(reserve().status, 500);
  server.store.appends_fail = false;
  const Answer job = ask("GET", "/v1/jobs/1");
  EXPECT_EQ(job.value().at("state"), "ready");
  EXPECT_EQ(server.engine.job_stats(server.now, 1)->record.history.reserves, 0u);
  EXPECT_EQ(jobs(reserve()).size(), 1u);
}

// A lease of two hours does not become one of the ttr.
TEST_F(HttpLeases, AnAckThatCannotBeStoredLeavesTheLeaseAsItWas) {
  put(R"({"ttr":"1m"})");
  const std::string lease = token(jobs(reserve(R"({"lease":"2h"})"))[0]);
  server.store.appends_fail = true;
  EXPECT_EQ(end(lease, "ack").status, 500);
  server.store.appends_fail = false;
  pass(3'600'000);
  EXPECT_EQ(end(lease, "ack").status, 204);
}

TEST_F(HttpLeases, AnOperatorEndsTheLeaseOfAWorkerThatIsGone) {
  put("{}");
  put(R"({"delay":"1h"})");
  const std::string lease = token(jobs(reserve(R"({"lease":"24h"})"))[0]);
  const Answer released = ask("POST", "/v1/jobs/1:release");
  EXPECT_EQ(released.status, 200);
  EXPECT_EQ(released.value().at("state"), "ready");
  EXPECT_EQ(end(lease, "ack").status, 409);
  EXPECT_EQ(ask("POST", "/v1/jobs/1:release").status, 409) << "it has no lease";
  EXPECT_EQ(ask("POST", "/v1/jobs/2:release").status, 409);
  EXPECT_EQ(ask("POST", "/v1/jobs/9:release").status, 404);
  EXPECT_EQ(jobs(reserve()).size(), 1u);
}

// A token is not good before the waiting worker has its answer.
TEST_F(HttpLeases, ATokenIsGoodOnceItWasGiven) {
  Session other(server.service, names);
  put("{}");
  EXPECT_EQ(jobs(reserve()).size(), 1u);
  EXPECT_EQ(reserve(R"({"wait":"1h"})").status, 0);
  speaker = &other;
  put("{}");
  const queue::ClientId worker = server.service.engine().holder_of(2).value();
  const std::string early = server.service.leases().token({.worker = worker, .job = 2});
  EXPECT_EQ(end(early, "ack").status, 409);
  speaker = &session;
  deliver();
  const json::array got = jobs(next());
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(token(got[0]), early);
  EXPECT_EQ(end(early, "ack").status, 204);
}

TEST_F(HttpLeases, AServerThatStopsTellsThoseWhoWait) {
  EXPECT_EQ(reserve(R"({"wait":"1h"})").status, 0);
  session.close();
  const Answer stopped = next();
  EXPECT_EQ(stopped.status, 503);
  EXPECT_EQ(kind(stopped), "draining");
  EXPECT_NE(stopped.head.find("Connection: close"), std::string::npos);
}

TEST_F(HttpLeases, ManyJobsComeWithinWhatAReplyMayHave) {
  const std::string body = R"({"body":")" + std::string(60'000, 'x') + R"("})";
  for (int n = 0; n < 30; ++n) EXPECT_EQ(put(body).status, 201);
  const json::array first = jobs(reserve(R"({"max":1000})"));
  EXPECT_EQ(first.size(), 17u) << "a MiB of bodies";
  EXPECT_EQ(jobs(reserve(R"({"max":1000})")).size(), 13u);
  EXPECT_EQ(jobs(reserve()).size(), 0u);
}

// The bodies come late, and so the leases begin late. A job whose time was over is left out of the
// answer.
TEST_F(HttpLeases, ALeaseBeginsWhenTheBodiesAreThere) {
  put(R"({"ttr":"10s"})");
  server.store.bodies_are_on_disk = true;
  EXPECT_EQ(reserve().status, 0);
  pass(9'000);
  session.body_read(read_body(server.store, {.id = 1}));
  const Answer got = next();
  ASSERT_EQ(jobs(got).size(), 1u);
  pass(9'998);
  EXPECT_EQ(engine_state(1), queue::JobState::kReserved);
  pass(1'000);

  EXPECT_EQ(reserve().status, 0);
  pass(10'000);
  session.body_read(read_body(server.store, {.id = 1}));
  EXPECT_TRUE(jobs(next()).empty());
  EXPECT_EQ(engine_state(1), queue::JobState::kReady);
}

TEST_F(HttpLeases, AJobWithoutABodyIsSetAside) {
  put("{}");
  server.store.bodies_fail = true;
  EXPECT_EQ(reserve().status, 500);
  EXPECT_EQ(engine_state(1), queue::JobState::kReady);
  server.store.bodies_fail = false;
  server.store.bodies_are_damaged = true;
  EXPECT_EQ(kind(reserve()), "damaged");
  EXPECT_EQ(engine_state(1), queue::JobState::kBuried);
  EXPECT_EQ(server.service.leases().size(), 0u);
}

TEST_F(HttpLeases, RefusesWhatIsOutOfRange) {
  for (const char* wrong :
       {R"({"max":0})", R"({"max":1001})", R"({"lease":"999ms"})", R"({"wait":"25h"})"})
    EXPECT_EQ(kind(reserve(wrong)), "bad-field") << wrong;
  put("{}");
  const std::string lease = token(jobs(reserve())[0]);
  EXPECT_EQ(end(lease, "extend", R"({"lease":"0s"})").status, 400);
  EXPECT_EQ(end(lease, "nack", R"({"delay":"9999999d"})").status, 400);
  EXPECT_EQ(end(lease, "nack", R"({"failed":false,"error":"x"})").status, 400);
  EXPECT_EQ(state(1), "reserved");
}

TEST_F(HttpLeases, WorkersWhoseLeasesAreOverAreForgotten) {
  for (int n = 0; n < 100; ++n) put(R"({"ttr":"1s"})");
  for (int round = 0; round < 10; ++round) {
    for (int n = 0; n < 100; ++n) EXPECT_EQ(jobs(reserve()).size(), 1u);
    EXPECT_EQ(server.service.leases().size(), 100u);
    pass(1'000);
    for (int turn = 0; turn < 50; ++turn) server.service.leases().look(server.now);
    EXPECT_EQ(server.service.leases().size(), 0u);
  }
}

TEST_F(HttpLeases, AreRefusedWhenThereIsNoMemory) {
  put("{}");
  MemoryPool::Share others(server.service.memory());
  others.set(server.service.memory().bytes());
  EXPECT_EQ(reserve().status, 503);
  EXPECT_EQ(state(1), "ready");
}

// It has 8 KiB of its own, whatever the others take.
TEST_F(HttpLeases, TakeWhatAConnectionHasOfItsOwn) {
  for (int n = 0; n < 10; ++n) put(R"({"body":")" + std::string(500, 'x') + R"("})");
  MemoryPool::Share others(server.service.memory());
  others.set(server.service.memory().bytes() - 10'000);
  EXPECT_EQ(jobs(reserve(R"({"max":10})")).size(), 10u);
}

TEST_F(HttpLeases, LeaveHalfOfTheMemoryToOthers) {
  ServiceOptions options;
  options.memory = 64 << 10;
  beanstalk::TestServer small(options);
  Session worker(small.service, names);
  speaker = &worker;
  int leased = 0;
  for (int n = 0; n < 60; ++n) {
    EXPECT_EQ(put("{}").status, 201);
    const Answer got = reserve();
    if (got.status == 503) break;
    leased += static_cast<int>(jobs(got).size());
  }
  EXPECT_GT(leased, 20);
  EXPECT_LT(leased, 40);
}

}  // namespace
}  // namespace carillon::server::http
