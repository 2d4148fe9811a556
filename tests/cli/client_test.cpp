// Tests of the client: the bytes of each command, and the meaning of each reply.

#include "cli/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>

#include "cli/scripted_server.h"

namespace carillon::cli {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

class ClientTest : public testing::Test {
 protected:
  ScriptedServer server;
  Client client{server.stream()};
};

TEST_F(ClientTest, PutWithADelay) {
  server.answer("INSERTED 18446744073709551615\r\n");
  EXPECT_EQ(client.put("hello", {.delay = 250ms, .due_at = {}, .ttr = 90s, .priority = 5}).id,
            18'446'744'073'709'551'615U);
  EXPECT_EQ(server.received(), "put-ms 5 250 90000 5\r\nhello\r\n");
}

TEST_F(ClientTest, PutAtATime) {
  server.answer("INSERTED 1\r\n");
  EXPECT_EQ(
      client.put("", {.delay = 0ms, .due_at = 1'893'488'400'000U, .ttr = 60s, .priority = 0}).id,
      1U);
  EXPECT_EQ(server.received(), "put-at 0 1893488400000 60000 0\r\n\r\n");
}

TEST_F(ClientTest, PutSendsTheBodyByteForByte) {
  server.answer("INSERTED 1\r\n");
  client.put("\0\r\n\xFF"s, {});
  EXPECT_EQ(server.received(), "put-ms 65536 0 60000 4\r\n\0\r\n\xFF\r\n"s);
}

TEST_F(ClientTest, ARefusedPutSaysWhy) {
  server.answer("DRAINING\r\n");
  EXPECT_EQ(failure_of([&] { client.put("x", {}); }),
            "the server takes no new jobs: it is draining, or the tube is");
  server.answer("OUT_OF_RANGE\r\n");
  EXPECT_EQ(failure_of([&] { client.put("x", {}); }),
            "the job would be due after the year 9999; the server refused it");
  server.answer("NOT_MILLISECONDS\r\n");
  EXPECT_EQ(failure_of([&] { client.put("x", {}); }),
            "the job would be due in 1970; the server refused it, because seconds that are "
            "taken for milliseconds look like that");
  server.answer("BURIED 9\r\n");
  EXPECT_EQ(failure_of([&] { client.put("x", {}); }),
            "the server is out of memory and buried the job, as number 9");
  server.answer("OUT_OF_MEMORY\r\n");
  EXPECT_EQ(failure_of([&] { client.put("x", {}); }),
            "the server is out of memory, disk space or connections; its log says which");
  server.answer("INTERNAL_ERROR\r\n");
  EXPECT_EQ(failure_of([&] { client.put("x", {}); }),
            "the server had an internal error; its log says which");
}

TEST_F(ClientTest, TheConnectionIsUsableAfterARefusedCommand) {
  for (const std::string reply : {"INTERNAL_ERROR", "OUT_OF_MEMORY"}) {
    server.answer(reply + "\r\nDELETED\r\n");
    try {
      client.delete_job(7);
      ADD_FAILURE() << reply;
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.reply, reply);
    }
    EXPECT_TRUE(client.delete_job(7));
  }
}

TEST_F(ClientTest, ABodyThatIsTooBigNamesTheLimit) {
  server.answer("JOB_TOO_BIG\r\nOK 24\r\n---\nmax-job-size: 65535\n\r\n");
  EXPECT_EQ(failure_of([&] { client.put(std::string(70'000, 'x'), {}); }),
            "the body has 70000 bytes; the limit of the server is 65535, see carillon serve "
            "--max-job-size");
  EXPECT_TRUE(server.received().ends_with("x\r\nstats\r\n"));
}

TEST_F(ClientTest, ABodyTooLargeForEveryServerIsNotSent) {
  // Address space that is never read, so it takes no memory.
  constexpr std::size_t kBytes = std::size_t{5} << 30;
  void* zeros =
      ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  for (const std::size_t bytes : {kBytes, std::size_t{1'073'741'825}}) {
    EXPECT_EQ(
        failure_of([&] {
          client.put({static_cast<const char*>(zeros), bytes}, {});
        }),
        fmt::format("the body has {} bytes; the most that any server takes is 1073741824", bytes));
  }
  ::munmap(zeros, kBytes);
  EXPECT_EQ(server.received(), "");
}

TEST_F(ClientTest, AnUnknownVerbMeansThatItIsNotCarillon) {
  server.answer("UNKNOWN_COMMAND\r\n");
  EXPECT_EQ(failure_of([&] { client.put("x", {}); }),
            "the server does not know \"put-ms\": it is not Carillon, or an older one");
}

TEST_F(ClientTest, UseChecksTheEcho) {
  server.answer("USING mail\r\n");
  client.use("mail");
  EXPECT_EQ(server.received(), "use mail\r\n");
  server.answer("USING other\r\n");
  EXPECT_EQ(
      failure_of([&] { client.use("mail"); }),
      "the server answered \"USING other\" to \"use mail\", which is not the beanstalk protocol");
}

TEST_F(ClientTest, WatchOnlyIgnoresDefault) {
  server.answer("WATCHING 2\r\nWATCHING 3\r\nWATCHING 2\r\n");
  client.watch_only({"mail", "sms"});
  EXPECT_EQ(server.received(), "watch mail\r\nwatch sms\r\nignore default\r\n");
}

TEST_F(ClientTest, WatchOnlyKeepsDefaultIfItIsNamed) {
  server.answer("WATCHING 1\r\nWATCHING 2\r\n");
  client.watch_only({"default", "sms"});
  EXPECT_EQ(server.received(), "watch default\r\nwatch sms\r\n");
}

TEST_F(ClientTest, ReserveWaitsForEver) {
  server.answer("RESERVED 7 5\r\nhello\r\n");
  const auto job = client.reserve(std::nullopt);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, 7U);
  EXPECT_EQ(job->body, "hello");
  EXPECT_EQ(server.received(), "reserve\r\n");
}

TEST_F(ClientTest, ReserveWithATimeout) {
  server.answer("TIMED_OUT\r\n");
  EXPECT_FALSE(client.reserve(1500ms));
  EXPECT_EQ(server.received(), "reserve-with-timeout-ms 1500\r\n");
}

TEST_F(ClientTest, TheLongestTimeoutDoesNotOverflow) {
  server.answer("TIMED_OUT\r\n");
  EXPECT_FALSE(client.reserve(std::chrono::milliseconds::max()));
}

TEST_F(ClientTest, ABodyMayHoldLineEndsAndReplies) {
  server.answer("RESERVED 7 15\r\nTIMED_OUT\r\n\r\n\r\n\r\nDELETED\r\n");
  EXPECT_EQ(client.reserve(std::nullopt)->body, "TIMED_OUT\r\n\r\n\r\n");
  EXPECT_TRUE(client.delete_job(7));
}

TEST_F(ClientTest, YesOrNotFound) {
  server.answer(
      "DELETED\r\nNOT_FOUND\r\nRELEASED\r\nNOT_FOUND\r\nBURIED\r\nNOT_FOUND\r\n"
      "TOUCHED\r\nNOT_FOUND\r\n");
  EXPECT_TRUE(client.delete_job(1));
  EXPECT_FALSE(client.delete_job(2));
  EXPECT_TRUE(client.release(3, 65'536, 250ms));
  EXPECT_FALSE(client.release(4, 0, 0ms));
  EXPECT_TRUE(client.bury(5, 9));
  EXPECT_FALSE(client.bury(6, 9));
  EXPECT_TRUE(client.touch(7));
  EXPECT_FALSE(client.touch(8));
  EXPECT_EQ(server.received(),
            "delete 1\r\ndelete 2\r\nrelease-ms 3 65536 250\r\nrelease-ms 4 0 0\r\n"
            "bury 5 9\r\nbury 6 9\r\ntouch 7\r\ntouch 8\r\n");
}

TEST_F(ClientTest, Peek) {
  server.answer("FOUND 7 2\r\nhi\r\nFOUND 8 0\r\n\r\nNOT_FOUND\r\n");
  EXPECT_EQ(client.peek("ready")->body, "hi");
  EXPECT_EQ(client.peek("delayed")->id, 8U);
  EXPECT_FALSE(client.peek("buried"));
  EXPECT_EQ(server.received(), "peek-ready\r\npeek-delayed\r\npeek-buried\r\n");
}

TEST_F(ClientTest, Stats) {
  server.answer("OK 11\r\n---\nttr: 5\n\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  EXPECT_EQ(client.stats().number("ttr"), 5U);
  EXPECT_FALSE(client.stats_job(7));
  EXPECT_FALSE(client.stats_tube("mail"));
  EXPECT_EQ(server.received(), "stats\r\nstats-job 7\r\nstats-tube mail\r\n");
}

TEST_F(ClientTest, OtherProtocolsAreQuotedWithoutControlCharacters) {
  server.answer("HTTP/1.1 400 \x1B[31mBad Request\r\n");
  EXPECT_EQ(failure_of([&] { client.touch(1); }),
            "the server answered \"HTTP/1.1 400 ?[31mBad Request\" to \"touch 1\", which is not "
            "the beanstalk protocol");
}

TEST_F(ClientTest, MalformedRepliesAreRefused) {
  for (const std::string reply :
       {"", "INSERTED", "INSERTED ", "INSERTED x", "INSERTED 1 2", "INSERTED -1",
        "INSERTED 18446744073709551616", "inserted 1", "TIMED_OUT"}) {
    server.answer(reply + "\r\n");
    EXPECT_NE(failure_of([&] { client.put("x", {}); }).find("is not the beanstalk protocol"),
              std::string::npos)
        << reply;
  }
  for (const std::string reply :
       {"RESERVED 7", "RESERVED 7 x", "RESERVED 7 5 5", "FOUND 7 5", "DEADLINE_SOON"}) {
    server.answer(reply + "\r\n");
    EXPECT_NE(failure_of([&] { client.reserve(0ms); }).find("is not the beanstalk protocol"),
              std::string::npos)
        << reply;
  }
}

TEST_F(ClientTest, DataWithoutItsLineEndIsRefused) {
  server.answer("RESERVED 7 5\r\nhello!!");
  EXPECT_EQ(failure_of([&] { client.reserve(0ms); }),
            "the server sent 5 bytes of data that no line end follows");
}

TEST_F(ClientTest, AnImpossibleSizeIsRefusedAtOnce) {
  server.answer("RESERVED 7 18446744073709551615\r\n");
  EXPECT_EQ(failure_of([&] { client.reserve(0ms); }),
            "the server announced 18446744073709551615 bytes; no job has more than 4294967296");
}

}  // namespace
}  // namespace carillon::cli
