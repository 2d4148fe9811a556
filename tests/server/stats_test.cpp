// The YAML of stats, stats-tube and stats-job: beanstalkd's fields in beanstalkd's order, and their
// values.

#include "server/beanstalk/stats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "test_server.h"

namespace carillon::server::beanstalk {
namespace {

struct Fields {
  std::vector<std::string> names;
  std::map<std::string, std::string> values;
};

// Splits an `OK <bytes>` reply into its fields, and checks its frame.
Fields read(const std::string& reply) {
  const std::size_t line = reply.find("\r\n");
  const std::string body = reply.substr(line + 2, reply.size() - line - 4);
  EXPECT_EQ(reply.substr(0, line), "OK " + std::to_string(body.size()));
  EXPECT_TRUE(reply.ends_with("\n\r\n"));
  EXPECT_TRUE(body.starts_with("---\n"));
  Fields fields;
  std::istringstream lines(body.substr(4));
  for (std::string each; std::getline(lines, each);) {
    const std::size_t colon = each.find(": ");
    fields.names.push_back(each.substr(0, colon));
    fields.values[fields.names.back()] = each.substr(colon + 2);
  }
  return fields;
}

TEST(Stats, HasBeanstalkdsFieldsInTheirOrderAndThenItsOwn) {
  TestServer server;
  Client client(server);
  const std::string expected =
      "current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed "
      "current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried "
      "cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch cmd-ignore "
      "cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes "
      "cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs "
      "max-job-size current-tubes current-connections current-producers current-workers "
      "current-waiting total-connections pid version rusage-utime rusage-stime uptime "
      "binlog-oldest-index binlog-current-index binlog-records-migrated binlog-records-written "
      "binlog-max-size draining id hostname os platform current-jobs-loaded "
      "connections-closed-stalled connections-closed-idle connections-closed-foreign "
      "total-fired total-reserved total-deleted total-failed total-dead total-dead-deleted "
      "total-puts-too-fast lateness-p50-ms lateness-p99-ms lateness-max-ms";
  Fields stats = read(client.say("stats\r\n"));
  EXPECT_EQ(fmt::format("{}", fmt::join(stats.names, " ")), expected);
  utsname system{};
  ::uname(&system);
  EXPECT_EQ(stats.values["pid"], std::to_string(::getpid()));
  EXPECT_EQ(stats.values["hostname"], "\"" + std::string(system.nodename) + "\"");
  EXPECT_EQ(stats.values["os"], "\"" + std::string(system.version) + "\"");
  EXPECT_EQ(stats.values["platform"], "\"" + std::string(system.machine) + "\"");
  EXPECT_TRUE(std::regex_match(stats.values["rusage-utime"], std::regex("[0-9]+[.][0-9]{6}")));
}

TEST(Stats, EachCommandHasItsCounter) {
  const std::pair<std::string, std::string> lines[] = {
      {"put", "put 0 0 60 1\r\nx"},
      {"peek", "peek 1"},
      {"peek-ready", "peek-ready"},
      {"peek-delayed", "peek-delayed"},
      {"peek-buried", "peek-buried"},
      {"reserve", "reserve"},
      {"reserve-with-timeout", "reserve-with-timeout 0"},
      {"delete", "delete 1"},
      {"release", "release 1 0 0"},
      {"use", "use default"},
      {"watch", "watch default"},
      {"ignore", "ignore default"},
      {"bury", "bury 1 0"},
      {"kick", "kick 1"},
      {"touch", "touch 1"},
      {"stats", "stats"},
      {"stats-job", "stats-job 1"},
      {"stats-tube", "stats-tube default"},
      {"list-tubes", "list-tubes"},
      {"list-tube-used", "list-tube-used"},
      {"list-tubes-watched", "list-tubes-watched"},
      {"pause-tube", "pause-tube default 0"}};
  for (const auto& [name, line] : lines) {
    TestServer server;
    Client client(server);
    server.engine.put(server.engine.connect(), server.now, {.ttr = 60'000}, "x");
    client.say(line + "\r\n");
    auto stats = read(Client(server).say("stats\r\n")).values;
    for (const auto& [other, unused] : lines) {
      const int count = (name == other ? 1 : 0) + (other == "stats" ? 1 : 0);
      EXPECT_EQ(stats["cmd-" + other], std::to_string(count)) << name << ": " << other;
    }
  }
}

TEST(Stats, CountsJobsConnectionsAndCommands) {
  TestServer server;
  Client producer(server);
  Client worker(server);
  Client waiter(server);
  { Client gone(server); }
  producer.say(
      "put 1023 0 60 1\r\na\r\nput 1024 0 60 1\r\nb\r\nput 0 50 60 1\r\nc\r\n"
      "put-ms 0 0 60000 1\r\nd\r\nuse t\r\nuse -\r\n");
  worker.say("reserve\r\nreserve-job 2\r\nbury 2 0\r\npeek 1\r\ntouch 77\r\n");
  waiter.say("watch w\r\nignore default\r\nreserve\r\n");
  server.pass(3'000);

  auto stats = read(producer.say("stats\r\n")).values;
  EXPECT_EQ(stats["current-jobs-urgent"], "1");
  EXPECT_EQ(stats["current-jobs-ready"], "1");
  EXPECT_EQ(stats["current-jobs-reserved"], "1");
  EXPECT_EQ(stats["current-jobs-delayed"], "1");
  EXPECT_EQ(stats["current-jobs-buried"], "1");
  EXPECT_EQ(stats["cmd-put"], "4");
  EXPECT_EQ(stats["cmd-use"], "1");
  EXPECT_EQ(stats["cmd-reserve"], "2");
  EXPECT_EQ(stats["cmd-bury"], "1");
  EXPECT_EQ(stats["cmd-peek"], "1");
  EXPECT_EQ(stats["cmd-touch"], "1");
  EXPECT_EQ(stats["cmd-stats"], "1");
  EXPECT_EQ(stats["total-jobs"], "4");
  EXPECT_EQ(stats["max-job-size"], "65535");
  EXPECT_EQ(stats["current-tubes"], "3");
  EXPECT_EQ(stats["current-connections"], "3");
  EXPECT_EQ(stats["current-producers"], "1");
  EXPECT_EQ(stats["current-workers"], "2");
  EXPECT_EQ(stats["current-waiting"], "1");
  EXPECT_EQ(stats["total-connections"], "4");
  EXPECT_EQ(stats["uptime"], "3");
  EXPECT_EQ(stats["draining"], "false");
  EXPECT_EQ(stats["id"].size(), 16u);
  EXPECT_EQ(stats["version"].front(), '"');
}

// The server itself learns of the failure, for its log.
TEST(Stats, ProducersAndWorkersThatAreGoneAreNotCounted) {
  TestServer server;
  Client asking(server);
  Client gone(server);
  gone.say("put 0 0 60 1\r\na\r\nreserve\r\nreserve\r\n");
  gone.hang_up();
  auto stats = read(asking.say("stats\r\n")).values;
  EXPECT_EQ(stats["current-connections"], "1");
  EXPECT_EQ(stats["current-producers"], "0");
  EXPECT_EQ(stats["current-workers"], "0");
  EXPECT_EQ(stats["current-waiting"], "0");
  EXPECT_EQ(stats["total-connections"], "2");
}

TEST(Stats, IsAnsweredThoughJobsCannotBeLoaded) {
  TestServer server;
  Client client(server);
  client.say("put 0 100 60 1\r\na\r\n");
  server.store.scans_fail = true;
  server.now.utc_ns += 50'000'000'000;
  server.now.mono_ns += 50'000'000'000;
  EXPECT_EQ(read(client.say("stats\r\n")).values["current-jobs-delayed"], "1");
  EXPECT_THROW(server.engine.advance(server.now), queue::StoreError);
}

TEST(Stats, ATubesFields) {
  TestServer server;
  Client client(server);
  client.say(
      "use t\r\nput 0 0 60 1\r\na\r\nput 2000 0 60 1\r\nb\r\n"
      "delete 1\r\nwatch t\r\npause-tube t 9\r\n");
  server.pass(1'500);
  EXPECT_EQ(client.say("stats-tube t\r\n"),
            "OK 261\r\n---\nname: \"t\"\ncurrent-jobs-urgent: 0\ncurrent-jobs-ready: 1\n"
            "current-jobs-reserved: 0\ncurrent-jobs-delayed: 0\ncurrent-jobs-buried: 0\n"
            "total-jobs: 2\ncurrent-using: 1\ncurrent-watching: 1\ncurrent-waiting: 0\n"
            "cmd-delete: 1\ncmd-pause-tube: 1\npause: 9\npause-time-left: 7\n\r\n");
}

TEST(Stats, AJobsFields) {
  TestServer server;
  Client client(server);
  client.say("put 5 7 60 1\r\na\r\n");
  server.pass(2'500);
  EXPECT_EQ(client.say("stats-job 1\r\n"),
            "OK 148\r\n---\nid: 1\ntube: \"default\"\nstate: delayed\npri: 5\nage: 2\n"
            "delay: 7\nttr: 60\ntime-left: 4\nfile: 0\n"
            "reserves: 0\ntimeouts: 0\nreleases: 0\nburies: 0\nkicks: 0\n\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
