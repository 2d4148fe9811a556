// A body is never read as commands, whatever is wrong with the command that announces it: it is
// discarded, or the connection ends. Somebody else than the client may have written it.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::string_view kBody = "delete 1\r\nuse stolen";
const std::string kSmuggled = std::to_string(kBody.size());

class SessionSmuggling : public testing::Test {
 protected:
  SessionSmuggling() {
    Client client(server);
    client.say("use victim\r\nput 0 0 60 1\r\nv\r\nput 0 100 60 1\r\nw\r\n");
  }

  bool is_victim_whole() {
    const auto stats = server.engine.tube_stats(server.now, "victim");
    return stats && stats->jobs.ready == 1 && stats->jobs.delayed == 1;
  }

  // What the server answers to these bytes, sent in pieces of `piece` bytes, and whether it closes.
  struct Outcome {
    std::string replies;
    bool is_closed = false;
  };
  Outcome say(const std::string& bytes, std::size_t piece) {
    Client client(server);
    Outcome outcome{.replies = client.say("name-client me\r\n")};
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      outcome.replies += client.say(bytes.substr(at, piece));
    outcome.is_closed = client.session().wants() == Session::Wants::kNothing;
    if (!outcome.is_closed) {
      EXPECT_EQ(client.say("list-tube-used\r\n"), "USING default\r\n") << bytes.substr(0, 60);
    }
    EXPECT_EQ(outcome.replies.substr(0, 7), "NAMED\r\n");
    outcome.replies.erase(0, 7);
    return outcome;
  }

  void expect(const std::string& line, std::string_view answer, bool is_closed,
              std::string_view body = kBody) {
    const std::string bytes = line + "\r\n" + std::string(body) + "\r\n";
    for (const std::size_t piece : {bytes.size(), std::size_t{1}, std::size_t{7}}) {
      const Outcome outcome = say(bytes, piece);
      EXPECT_TRUE(outcome.replies.starts_with(answer)) << line.substr(0, 60) << outcome.replies;
      EXPECT_EQ(outcome.replies.find("\r\n"), outcome.replies.size() - 2) << outcome.replies;
      EXPECT_EQ(outcome.is_closed, is_closed) << line.substr(0, 60) << " in " << piece;
      EXPECT_TRUE(is_victim_whole()) << line.substr(0, 60);
    }
  }

  TestServer server{{.max_job_size = 1 << 20}};
};

TEST_F(SessionSmuggling, BehindALineThatIsTooLong) {
  const std::string text(2 * kMaxLongLine, 'k');
  for (const std::string& verb : std::initializer_list<std::string>{
           "put-job ", "put-jobs ", "delete-jobs ", "release-jobs ", "fail-job 7 "})
    expect(verb + kSmuggled + " key=" + text, "BAD_FORMAT", false);
  // Where the size stands in what was cut, or may.
  expect("put-job " + std::string(kMaxLongLine, '0') + kSmuggled, "BAD_FORMAT", true);
  expect("put-job " + std::string(kMaxLongLine, ' ') + kSmuggled, "BAD_FORMAT", true);
  expect("patch-job 1 attributes=" + text + " body=" + kSmuggled, "BAD_FORMAT", true);
  expect("patch-job key=" + text + " body=" + kSmuggled, "BAD_FORMAT", true);
  expect("patch-job 1 body=" + kSmuggled + " attributes=" + text, "BAD_FORMAT", true);
  expect("put-ms 0 0 60000" + text + " " + kSmuggled, "BAD_FORMAT", true);
}

TEST_F(SessionSmuggling, BehindAMalformedLine) {
  using namespace std::string_literals;
  for (const std::string& line :
       std::initializer_list<std::string>{"put-job x"s,
                                          "put-job -1"s,
                                          "put-job 4294967296"s,
                                          "put-job "s,
                                          "put-job  "s + kSmuggled,
                                          "put-job "s + kSmuggled + "\t"s,
                                          "put-jobs 1e3"s,
                                          "delete-jobs 0x10"s,
                                          "release-jobs"s + " x"s,
                                          "fail-job x "s + kSmuggled,
                                          "fail-job 1"s,
                                          "fail-job 18446744073709551616 "s + kSmuggled,
                                          "put-ms 0 0 60000 "s + kSmuggled + " "s,
                                          "put-ms 0 -1 60000 "s + kSmuggled,
                                          "put-ms 0 0 60000"s,
                                          "put-at 0 x 60000 "s + kSmuggled,
                                          "put-job "s + kSmuggled + " key=a\0b"s,
                                          "patch-job x body="s + kSmuggled,
                                          "patch-job body="s + kSmuggled,
                                          "patch-job 1\tbody="s + kSmuggled,
                                          "patch-job 1=body="s + kSmuggled,
                                          "patch-job key=\" body="s + kSmuggled,
                                          "patch-job 1\0 body="s + kSmuggled})
    expect(line, "BAD_FORMAT", true);
}

TEST_F(SessionSmuggling, BehindAVerbWithoutArguments) {
  for (const std::string& verb : std::initializer_list<std::string>{
           "put-ms", "put-at", "put-job", "put-jobs", "delete-jobs", "release-jobs", "fail-job"}) {
    expect(verb, "BAD_FORMAT", true);
    expect(verb + "\t" + kSmuggled, "BAD_FORMAT", true);
    expect(verb + "=" + kSmuggled + std::string(kMaxLongLine, ' '), "BAD_FORMAT", true);
  }
  expect("patch-job\t1 body=" + kSmuggled, "BAD_FORMAT", true);
  Client client(server);
  EXPECT_EQ(client.say("put\r\nput-jobb\r\n"), "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n");
  EXPECT_EQ(client.say("patch-job\r\n"), "UNKNOWN_COMMAND\r\n") << "it announces no body";
}

// The verb set-schedule was on this port once, and a client may still send it.
TEST_F(SessionSmuggling, BehindAVerbThatHasLeftThePort) {
  expect("set-schedule", "UNKNOWN_COMMAND", true);
  expect("set-schedule s " + kSmuggled, "UNKNOWN_COMMAND", true);
  expect("set-schedule s " + kSmuggled + " every=1h tube=mail", "UNKNOWN_COMMAND", true);
  expect("set-schedule s 9 cron=" + std::string(kMaxLongLine, '*'), "BAD_FORMAT", true);
}

TEST_F(SessionSmuggling, BehindOptionsThatAreRefused) {
  for (const std::string& line : std::initializer_list<std::string>{
           "put-job " + kSmuggled + " delya=3s", "put-job " + kSmuggled + " key=\"a",
           "put-jobs " + kSmuggled + " key=a", "delete-jobs " + kSmuggled + " delay=3s",
           "release-jobs " + kSmuggled + " key=a", "fail-job 1 " + kSmuggled + " ttr=5s",
           "patch-job 1 prj=2 body=" + kSmuggled,
           "patch-job 1 body=" + kSmuggled + " attributes=x"})
    expect(line, "BAD_OPTION", false);
  for (const std::string& line : std::initializer_list<std::string>{
           "patch-job 1 body=x", "patch-job 1 body=-1", "patch-job 1 body=4294967296",
           "patch-job 1 body=1 body=" + kSmuggled, "patch-job 1 body=\"" + kSmuggled,
           "patch-job 1 BODY=" + kSmuggled, "patch-job 1 pri=5,body=" + kSmuggled,
           "patch-job 1 body:" + kSmuggled, "patch-job 1 \"body=" + kSmuggled + "\"",
           "patch-job 1 delay=1s;body=" + kSmuggled})
    expect(line, "BAD_OPTION", true);
}

TEST_F(SessionSmuggling, TextInQuotesAnnouncesNoBody) {
  Client client(server);
  EXPECT_EQ(client.say("put-job 1\r\na\r\n"), "INSERTED 3\r\n");
  const std::string refused = client.say("patch-job 3 attributes=\"{} body=9\"\r\nuse a\r\n");
  EXPECT_TRUE(refused.starts_with("BAD_OPTION")) << refused;
  EXPECT_TRUE(refused.ends_with("\r\nUSING a\r\n")) << refused;
  EXPECT_EQ(client.say("patch-job 3 pri=\"5\"\r\nlist-tube-used\r\n"), "PATCHED 3\r\nUSING a\r\n");
}

// The client counts signs and not bytes, say.
TEST_F(SessionSmuggling, BehindABodyOfAnotherSize) {
  const std::string fewer = "8";
  for (const std::string& line : std::initializer_list<std::string>{
           "put-job " + fewer, "put-jobs " + fewer, "delete-jobs " + fewer, "release-jobs " + fewer,
           "fail-job 1 " + fewer, "patch-job 3 body=" + fewer, "put-ms 0 0 60000 " + fewer,
           "put-at 0 0 60000 " + fewer})
    expect(line, "EXPECTED_CRLF", true, "eight...delete 1\r\ndelete 1");
  for (const std::string& line :
       std::initializer_list<std::string>{"put-job " + fewer + " delya=3s", "fail-job 1 8 ttr=5s"})
    expect(line, "BAD_OPTION", true, "eight...delete 1\r\ndelete 1");
}

// As beanstalkd has it, and its clients rely on it.
TEST_F(SessionSmuggling, APutIsAsInBeanstalkd) {
  Client client(server);
  EXPECT_EQ(client.say("put 0 0 60 5 \r\nuse a\r\n"), "BAD_FORMAT\r\nUSING a\r\n");
  EXPECT_EQ(client.say("put 0 0 60 5" + std::string(300, ' ') + "\r\nuse b\r\n"),
            "BAD_FORMAT\r\nUSING b\r\n");
  EXPECT_EQ(client.say("put 0 0 60 1\r\nabcuse c\r\n"), "EXPECTED_CRLF\r\nUSING c\r\n");
}

TEST_F(SessionSmuggling, WhenTheStoreFails) {
  // A large body asks for the rate of its tube, and begins to be written.
  server.store.appends_fail = true;
  const std::string body = "\r\ndelete 1\r\n" + std::string(300'000, 'x');
  for (const std::string& verb :
       std::initializer_list<std::string>{"put-job ", "put 0 0 60 ", "put-ms 0 0 60000 "}) {
    Client client(server);
    const std::string bytes = verb + std::to_string(body.size()) + "\r\n" + body + "\r\n";
    EXPECT_EQ(client.say(bytes), "INTERNAL_ERROR\r\n") << verb;
  }
  EXPECT_TRUE(is_victim_whole());
}

}  // namespace
}  // namespace carillon::server::beanstalk
