// set-schedule and the other commands for schedules.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/beanstalk/session.h"
#include "session_fixture.h"

namespace carillon::server::beanstalk {
namespace {

constexpr queue::Millis kMinute = 60'000;
constexpr queue::Millis kDay = 24 * (60 * kMinute);

// The server's clock starts at 2023-11-14T22:13:20Z.
class SessionSchedules : public SessionTest {
 protected:
  std::string set(const std::string& options, const std::string& name = "s") {
    return client.say("set-schedule " + name + " 4 " + options + "\r\ntick\r\n");
  }
  std::string stat(std::string_view name, const std::string& schedule = "s") {
    return field("stats-schedule " + schedule, name);
  }
};

TEST_F(SessionSchedules, AScheduleFires) {
  EXPECT_EQ(client.say("use reports\r\n"), "USING reports\r\n");
  EXPECT_EQ(set("every=1m pri=7 ttr=2m"), "SCHEDULED\r\n");
  EXPECT_EQ(client.say("watch reports\r\nreserve\r\n"), "WATCHING 2\r\n");
  server.pass(kMinute - 1);
  EXPECT_EQ(client.read(), "");
  server.pass(1);
  EXPECT_EQ(client.read(), "RESERVED 1 4\r\ntick\r\n");
  EXPECT_EQ(stat("fired"), "1");
  EXPECT_EQ(stat("last-job"), "1");
  EXPECT_EQ(stat("last"), "2023-11-14T22:14:20Z");
}

TEST_F(SessionSchedules, StatsTellAllThatWasAsked) {
  EXPECT_EQ(set("cron=\"30 8 * * MON-FRI\" zone=Europe/Berlin catch-up=all:1h "
                "overlap=queue spread=5m tube=mail"),
            "SCHEDULED\r\n");
  EXPECT_EQ(client.say("stats-schedule s\r\n"),
            "OK 395\r\n---\nname: \"s\"\ntube: \"mail\"\npri: 65536\nttr: 60000ms\nbody-bytes: 4\n"
            "cron: \"30 8 * * MON-FRI\"\nzone: \"Europe/Berlin\"\ngap: after\n"
            "catch-up: all:3600000ms\noverlap: queue\nspread: 300000ms\npaused: false\nfired: 0\n"
            "skipped: 0\nlast-job: 0\n"
            "next-1: 2023-11-15T08:30:00+01:00\nnext-2: 2023-11-16T08:30:00+01:00\n"
            "next-3: 2023-11-17T08:30:00+01:00\nnext-4: 2023-11-20T08:30:00+01:00\n"
            "next-5: 2023-11-21T08:30:00+01:00\n\r\n");
  EXPECT_EQ(set("every=90s start=2023-11-14T22:00:00Z", "e"), "SCHEDULED\r\n");
  EXPECT_EQ(stat("every", "e"), "90000ms");
  EXPECT_EQ(stat("start", "e"), "2023-11-14T22:00:00Z");
  EXPECT_EQ(stat("next-1", "e"), "2023-11-14T22:13:30Z");
  EXPECT_EQ(stat("catch-up", "e"), "last");
  EXPECT_EQ(client.say("stats-schedule none\r\n"), "NOT_FOUND\r\n");
}

TEST_F(SessionSchedules, FollowTheClocksOfTheirZone) {
  server.pass(137 * kDay);  // 2024-03-30T22:13:20Z; the clocks go forward at 1:00Z
  EXPECT_EQ(set("cron=\"30 2 * * *\" zone=Europe/Berlin gap=skip", "skip"), "SCHEDULED\r\n");
  EXPECT_EQ(stat("next-1", "skip"), "2024-04-01T02:30:00+02:00");
  EXPECT_EQ(set("cron=\"30 2 * * *\" zone=Europe/Berlin", "after"), "SCHEDULED\r\n");
  EXPECT_EQ(stat("next-1", "after"), "2024-03-31T03:00:00+02:00");
  server.pass(kDay / 2);
  EXPECT_EQ(stat("skipped", "skip"), "1");
  EXPECT_EQ(stat("fired", "skip"), "0");
  EXPECT_EQ(stat("fired", "after"), "1");
}

TEST_F(SessionSchedules, PauseResumeTriggerAndDelete) {
  EXPECT_EQ(set("every=1m"), "SCHEDULED\r\n");
  EXPECT_EQ(client.say("pause-schedule s\r\n"), "PAUSED\r\n");
  EXPECT_EQ(stat("paused"), "true");
  EXPECT_EQ(stat("next-1"), "none");
  server.pass(2 * kMinute);
  EXPECT_EQ(client.say("trigger-schedule s\r\n"), "INSERTED 1\r\n");
  EXPECT_EQ(client.say("peek 1\r\n"), "FOUND 1 4\r\ntick\r\n");
  EXPECT_EQ(client.say("resume-schedule s\r\n"), "RESUMED\r\n");
  EXPECT_EQ(stat("skipped"), "2");
  EXPECT_EQ(stat("next-1"), "2023-11-14T22:16:20Z");
  EXPECT_EQ(client.say("delete-schedule s\r\n"), "DELETED\r\n");
  for (const char* verb : {"delete", "pause", "resume", "trigger", "stats"})
    EXPECT_EQ(client.say(std::string(verb) + "-schedule s\r\n"), "NOT_FOUND\r\n") << verb;
}

TEST_F(SessionSchedules, AreListedByName) {
  EXPECT_EQ(client.say("list-schedules\r\n"), "OK 4\r\n---\n\r\n");
  for (const char* name : {"b", "a", "c"}) set("every=1h", name);
  EXPECT_EQ(client.say("list-schedules\r\n"), "OK 16\r\n---\n- a\n- b\n- c\n\r\n");
  EXPECT_EQ(client.say("list-schedules a\r\n"), "OK 12\r\n---\n- b\n- c\n\r\n");
  EXPECT_EQ(client.say("list-schedulesa\r\n"), "BAD_FORMAT\r\n");
}

TEST_F(SessionSchedules, WhatIsRefusedIsNamedAndTheBodyIsDiscarded) {
  EXPECT_EQ(set("evry=1m"),
            "BAD_OPTION \"evry\": no such option; there are cron zone gap every start catch-up "
            "overlap tube paused pri ttr spread expires-in at-expiry group attributes max-attempts "
            "backoff jitter lost\r\n");
  EXPECT_EQ(set(""), "BAD_OPTION cron: write it, or every\r\n");
  EXPECT_EQ(set("every=1m cron=@daily"), "BAD_OPTION every: does not go with cron\r\n");
  EXPECT_EQ(set("every=1m zone=UTC"), "BAD_OPTION zone: needs cron\r\n");
  EXPECT_EQ(set("every=0"), "BAD_OPTION every: \"0\": at least 1s\r\n");
  EXPECT_EQ(set("every=1m every=2m"), "BAD_OPTION every: comes twice\r\n");
  EXPECT_EQ(set("every=999ms"), "BAD_OPTION every: 999 ms; at least 1000\r\n");
  EXPECT_EQ(set("cron=\"30 8"), "BAD_OPTION \"cron\": the quote at its end is missing\r\n");
  EXPECT_EQ(set("cron=\"@daily\"x"),
            "BAD_OPTION \"cron\": a space must follow the quote at its end\r\n");
  EXPECT_EQ(set("cron=@daily catch-up=all"),
            "BAD_OPTION catch-up: \"all\": none, last or all:DURATION\r\n");
  EXPECT_EQ(set("cron=@daily zone=Mars/Olympus").substr(0, 11), "BAD_OPTION ");
  EXPECT_EQ(set("cron=\"99 8 * * *\"").substr(0, 11), "BAD_OPTION ");
  EXPECT_EQ(set("cron=\"a\nb\"").find("\n"), set("cron=\"a\nb\"").size() - 1);
  EXPECT_EQ(client.say("set-schedule s 65536 every=1m\r\n" + std::string(65'536, 'x') + "\r\n"),
            "JOB_TOO_BIG\r\n");
  EXPECT_EQ(client.say("set-schedule s 4 every=1m\r\ntickxx"), "EXPECTED_CRLF\r\n");
}

TEST_F(SessionSchedules, JobsHaveAllThatPutJobGives) {
  EXPECT_EQ(set("every=1m group=acme max-attempts=3 backoff=1s..1h jitter=10% lost=fails "
                "attributes={\"n\":1} expires-in=2m at-expiry=dead"),
            "SCHEDULED\r\n");
  EXPECT_EQ(stat("group"), "\"acme\"");
  EXPECT_EQ(stat("max-attempts"), "3");
  EXPECT_EQ(stat("backoff-longest-ms"), "3600000");
  EXPECT_EQ(stat("attributes"), "\"{\\\"n\\\":1}\"");
  EXPECT_EQ(stat("expires-in"), "120000ms");
  server.pass(kMinute);
  EXPECT_EQ(client.say("list-jobs default group=acme\r\n").substr(6),
            "\r\n{\"id\":1,\"tube\":\"default\",\"state\":\"ready\","
            "\"due\":\"2023-11-14T22:14:20.000Z\",\"pri\":65536,\"ttr\":\"60000ms\","
            "\"created\":\"2023-11-14T22:14:20.000Z\",\"group\":\"acme\",\"max_attempts\":3,"
            "\"backoff\":\"1000ms..3600000ms\",\"jitter\":\"10%\",\"lost\":\"fails\","
            "\"attributes\":{\"n\":1},\"expires_at\":\"2023-11-14T22:16:20.000Z\","
            "\"at_expiry\":\"dead\",\"body_bytes\":4}\n"
            "{\"next\":null,\"looked_at\":1}\n\r\n");
  EXPECT_EQ(set("every=1m at-expiry=dead"), "BAD_OPTION at-expiry: needs expires-in\r\n");
  EXPECT_EQ(set("every=1m expires-in=0"),
            "BAD_OPTION expires-in: 0 is not allowed; without it no job expires\r\n");
  EXPECT_EQ(set("every=1m key=k").substr(0, 32), "BAD_OPTION \"key\": no such option");
  EXPECT_EQ(set("every=1m pri=1 pri=2"), "BAD_OPTION pri: comes twice\r\n");
}

// What is shown can be sent again.
// As those of the timer library do.
TEST_F(SessionSchedules, ADailyRunComesOnTheDayWhoseMidnightTheClocksSkip) {
  server.pass(136 * kDay);  // 2024-03-29T22:13:20Z
  EXPECT_EQ(set("cron=@daily zone=Asia/Beirut"), "SCHEDULED\r\n");
  EXPECT_EQ(stat("gap"), "after");
  EXPECT_EQ(stat("next-1"), "2024-03-31T01:00:00+03:00");
  server.pass(kDay);
  EXPECT_EQ(stat("fired"), "1");
  EXPECT_EQ(stat("skipped"), "0");
}

TEST_F(SessionSchedules, AreShownAsTheyAreSet) {
  EXPECT_EQ(
      set("cron=\"30 8 * * *\" zone=Europe/Berlin gap=skip tube=mail group=a attributes={\"n\":1} "
          "backoff=30s catch-up=all:1h paused=yes"),
      "SCHEDULED\r\n");
  EXPECT_EQ(client.say("show-schedule s\r\n"),
            "OK 301\r\n{\"name\":\"s\",\"tube\":\"mail\",\"pri\":65536,\"ttr\":\"60000ms\","
            "\"group\":\"a\",\"max_attempts\":0,\"backoff\":\"30000ms\",\"jitter\":\"0%\","
            "\"lost\":\"returns\",\"attributes\":{\"n\":1},\"cron\":\"30 8 * * *\","
            "\"zone\":\"Europe/Berlin\",\"gap\":\"skip\",\"catch_up\":\"all:3600000ms\","
            "\"overlap\":\"allow\",\"spread\":\"0ms\",\"paused\":\"yes\",\"body\":\"tick\"}\n"
            "\r\n");
  EXPECT_EQ(set("every=90s start=2023-11-14T22:00:00Z expires-in=5s", "e"), "SCHEDULED\r\n");
  const std::string shown = client.say("show-schedule e\r\n");
  EXPECT_NE(shown.find("\"expires_in\":\"5000ms\",\"at_expiry\":\"drop\",\"every\":\"90000ms\","
                       "\"start\":\"2023-11-14T22:00:00.000Z\","),
            std::string::npos)
      << shown;
  EXPECT_EQ(client.say("show-schedule none\r\n"), "NOT_FOUND\r\n");
}

TEST_F(SessionSchedules, AreSetPaused) {
  EXPECT_EQ(set("every=1m paused=yes"), "SCHEDULED\r\n");
  server.pass(2 * kMinute);
  EXPECT_EQ(stat("paused"), "true");
  EXPECT_EQ(stat("fired"), "0");
  EXPECT_EQ(set("every=1m paused=no"),
            "BAD_OPTION paused: \"no\": yes; resume-schedule ends a pause\r\n");
}

// All names and texts as long as they may be.
TEST_F(SessionSchedules, TheLongestLine) {
  const std::string attributes = "{\"a\":\"" + std::string(queue::kMaxAttributes - 8, 'a') + "\"}";
  const std::string options = "every=90s start=2023-11-14T22:00:00Z tube=" + std::string(200, 't') +
                              " group=" + std::string(200, 'g') + " attributes=" + attributes;
  EXPECT_EQ(set(options, std::string(200, 's')), "SCHEDULED\r\n");
  const std::size_t used = options.size() + 200 + std::string("set-schedule  4 \r\n").size();
  EXPECT_EQ(set(options + std::string(kMaxScheduleLine - used, ' '), std::string(200, 's')),
            "SCHEDULED\r\n");
  EXPECT_EQ(set(options + std::string(kMaxScheduleLine - used + 1, ' '), std::string(200, 's')),
            "BAD_FORMAT\r\n");
  EXPECT_EQ(client.say("list-tube-used\r\n"), "USING default\r\n");
}

TEST_F(SessionSchedules, MalformedLines) {
  EXPECT_EQ(client.say("trigger-schedule \r\n"), "BAD_FORMAT\r\n");
  EXPECT_EQ(client.say("list-schedules *\r\n"), "BAD_FORMAT\r\n");
}

TEST_F(SessionSchedules, WhileDrainingNothingIsTriggered) {
  EXPECT_EQ(set("every=1m"), "SCHEDULED\r\n");
  server.service.drain();
  EXPECT_EQ(client.say("trigger-schedule s\r\n"), "DRAINING\r\n");
  EXPECT_EQ(set("every=1m", "t"), "DRAINING\r\n");
}

}  // namespace
}  // namespace carillon::server::beanstalk
