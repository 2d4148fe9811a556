// However the network cuts the bytes, the replies are the same. Lines and bodies that are too long
// are discarded as they come.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

// Every kind of input, one after the other: lines, bodies, a swallowed body, a body with a wrong
// end, and a line that is too long.
std::string script() {
  return "use a\r\n"
         "put 3 0 60 5\r\nhello\r\n"
         "put 3 0 60 4\r\n\r\n\r\n\r\n"
         "put 0 0 60 21\r\n" +
         std::string(21, 'b') + "\r\n" +  // JOB_TOO_BIG
         "put 0 0 60 3\r\nabcde"          // EXPECTED_CRLF
         "delete 99\r\n" +
         std::string(300, 'z') + "\r\n" +  // BAD_FORMAT
         std::string(223, 'z') + "\r\n" +  // one byte too long
         std::string(222, 'z') + "\r\n" +  // UNKNOWN_COMMAND
         "watch a\r\nreserve\r\n"
         "peek 2\r\n"
         "quit\r\n"
         "use never\r\n";
}

constexpr std::string_view kAnswer =
    "USING a\r\nINSERTED 1\r\nINSERTED 2\r\n"
    "JOB_TOO_BIG\r\nEXPECTED_CRLF\r\nNOT_FOUND\r\n"
    "BAD_FORMAT\r\nBAD_FORMAT\r\nUNKNOWN_COMMAND\r\n"
    "WATCHING 2\r\nRESERVED 1 5\r\nhello\r\nFOUND 2 4\r\n\r\n\r\n\r\n";

ServiceOptions small_jobs() {
  return {.max_job_size = 20};
}

TEST(SessionInput, AllAtOnce) {
  TestServer server(small_jobs());
  Client client(server);
  EXPECT_EQ(client.say(script()), kAnswer);
}

TEST(SessionInput, CutInTwoAtEveryByte) {
  const std::string bytes = script();
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    TestServer server(small_jobs());
    Client client(server);
    const std::string first = client.say(bytes.substr(0, cut));
    ASSERT_EQ(first + client.say(bytes.substr(cut)), kAnswer) << "cut at byte " << cut;
  }
}

TEST(SessionInput, InPiecesOfEverySize) {
  const std::string bytes = script();
  for (std::size_t size = 1; size <= 230; ++size) {
    TestServer server(small_jobs());
    Client client(server);
    std::string answer;
    for (std::size_t at = 0; at < bytes.size(); at += size)
      answer += client.say(bytes.substr(at, size));
    ASSERT_EQ(answer, kAnswer) << "pieces of " << size << " bytes";
  }
}

TEST(SessionInput, ATurnEndsWithTheFirstStepThatTakesItsTime) {
  TestServer server(small_jobs());
  server.reading_takes_ns = 10;
  Client client(server);
  Session& session = client.session();
  const std::string bytes = "delete 7\r\ndelete 8\r\ndelete 9\r\n";
  EXPECT_EQ(session.receive(bytes, server.now.mono_ns + 11), 20u);
  EXPECT_EQ(session.wants(), Session::Wants::kTurn);
  EXPECT_EQ(session.receive(bytes.substr(20), server.now.mono_ns), 10u) << "always one step";
  EXPECT_EQ(session.wants(), Session::Wants::kInput);
  EXPECT_EQ(client.say(script()).substr(33), kAnswer);
}

TEST(SessionInput, CommandsThatNeedNoClockEndATurnToo) {
  TestServer server;
  server.reading_takes_ns = 10;
  Client client(server);
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += "use a\r\n";
  EXPECT_EQ(client.session().receive(bytes, server.now.mono_ns + 11), 15u * 7);
  EXPECT_EQ(client.session().wants(), Session::Wants::kTurn);
}

TEST(SessionInput, InTurnsOfEveryLength) {
  for (std::uint64_t turn = 0; turn <= 30; ++turn) {
    TestServer server(small_jobs());
    server.reading_takes_ns = 1;
    server.turn_ns = turn;
    Client client(server);
    ASSERT_EQ(client.say(script()), kAnswer) << "turns of " << turn << " ns";
  }
}

TEST(SessionInput, ALineOf224BytesIsTheLongest) {
  TestServer server;
  Client client(server);
  const std::string tube(200, 't');
  EXPECT_EQ(client.say("pause-tube " + tube + " 4294967295\r\n"), "NOT_FOUND\r\n");
  EXPECT_EQ(client.say("pause-tube  " + tube + " 4294967295\r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(client.say("list-tube-used\r\n"), "USING default\r\n");
}

TEST(SessionInput, ALongLineIsDiscardedAsItComes) {
  TestServer server;
  Client client(server);
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(client.say(std::string(1'000, '\r')), "");
    EXPECT_LE(client.unused().size(), 1u);
  }
  EXPECT_EQ(client.say("\nuse a\r\n"), "BAD_FORMAT\r\nUSING a\r\n");
}

TEST(SessionInput, ALoneCrOrLfIsAByteOfTheLine) {
  TestServer server;
  Client client(server);
  EXPECT_EQ(client.say("use a\nb\r\nuse a\rb\r\nkick \r1\r\n\n\r\n"),
            "BAD_FORMAT\r\nBAD_FORMAT\r\nKICKED 0\r\nUNKNOWN_COMMAND\r\n");
}

TEST(SessionInput, ABodyThatNeverEndsIsDroppedWithItsConnection) {
  TestServer server({.max_job_size = kLargestMaxJobSize});
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 1073741824\r\nabc"), "");
  EXPECT_EQ(client.end_input(), "");
  EXPECT_EQ(client.session().wants(), Session::Wants::kNothing);
}

TEST(SessionInput, TellsIfItIsInTheMiddleOfACommand) {
  TestServer server(small_jobs());
  Client client(server);
  const auto mid_command_after = [&](std::string_view bytes) {
    client.say(bytes);
    return client.session().mid_command();
  };
  EXPECT_FALSE(client.session().mid_command());
  EXPECT_FALSE(mid_command_after("put 0 0 60 5"));  // nothing of it is used yet
  EXPECT_TRUE(mid_command_after("\r\n"));
  EXPECT_TRUE(mid_command_after("hello\r"));
  EXPECT_FALSE(mid_command_after("\n"));
  EXPECT_TRUE(mid_command_after("put 0 0 60 21\r\n" + std::string(22, 'b')));  // JOB_TOO_BIG
  EXPECT_FALSE(mid_command_after("\n"));
  EXPECT_TRUE(mid_command_after(std::string(300, 'z')));
  EXPECT_FALSE(mid_command_after("\r\n"));
  EXPECT_FALSE(mid_command_after("watch w\r\nignore default\r\nreserve\r\n"));
}

}  // namespace
}  // namespace carillon::server::beanstalk
