// A row and a function are all that an operation takes: here one is added.
#include "server/api/operation.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http_fixture.h"
#include "server/api/openapi.h"
#include "server/api/operations.h"
#include "server/api/problem.h"
#include "test_server.h"

namespace carillon::server {

namespace json = boost::json;

// --- The operation: what it is asked, what it answers, its function, and its row.

enum class Tone : std::uint8_t { kLow, kHigh };
template <>
struct Words<Tone> {
  static constexpr std::array<std::string_view, 2> all = {"low", "high"};
};

struct Ring {
  std::string tube;
  std::uint32_t times = 1;
  std::optional<Tone> tone;
  std::optional<Duration> after;
  std::vector<std::string> names;
  Patch<Duration> rest;
};
constexpr std::array kRingFields = {
    field<&Ring::tube>("tube", "The tube.", {.form = &kTubeForm}),
    field<&Ring::times>("times", "How often.", {.least = 1, .most = 3, .needed = true}),
    field<&Ring::tone>("tone", "Which one."),
    field<&Ring::after>("after", "From now on.", {.most = 60'000, .usual = "0s"}),
    field<&Ring::names>("names", "For whom.", {.most = 2}),
    field<&Ring::rest>("rest", "Until the next.")};
template <>
inline constexpr Shape kShape<Ring> = {.name = "Ring", .fields = kRingFields};

struct Rung {
  std::uint64_t times = 0;
  Bytes who;
  std::optional<Moment> at;
  std::optional<std::string> next;
};
constexpr std::array kRungFields = {
    field<&Rung::times>("times", "How often."), field<&Rung::who>("who", "By whom."),
    field<&Rung::at>("at", "When."),
    field<&Rung::next>("next", "What follows.", {.shows_null = true})};
template <>
inline constexpr Shape kShape<Rung> = {.name = "Rung", .fields = kRungFields};

Ring rung;  // what the function was asked last

Rung ring(RequestContext&, const Ring& asked) {
  rung = asked;
  return {.times = asked.times, .who = {"bell\xFF"}, .at = Moment{250}, .next = {}};
}

constexpr Operation kRing = operation<ring>({.method = "POST",
                                             .path = "/v1/tubes/{tube}:ring",
                                             .name = "ringTube",
                                             .tag = "tubes",
                                             .summary = "Rings.",
                                             .rights = {Needs::kWork, Reach::kTube},
                                             .appends = Appends::kNo,
                                             .problems = "400 409"});

namespace {

class Operations : public testing::Test {
 protected:
  // Carries kRing out, and returns the answer.
  json::value ask(const std::string& tube, const std::string& body,
                  std::vector<std::pair<std::string, std::string>> query = {}) {
    Request request;
    request.method = "POST";
    request.query = std::move(query);
    request.body = body;
    RequestContext x(server_.service, server_.service.engine().connect(), caller_,
                     std::move(request));
    x.names = {tube};
    x.operation = &kRing;
    kRing.run(x);
    return json::parse(x.take_reply().value().body);
  }
  // Returns the document of the problem that the request meets.
  json::value problem(const std::string& tube, const std::string& body,
                      std::vector<std::pair<std::string, std::string>> query = {}) {
    try {
      ask(tube, body, std::move(query));
    } catch (const Problem& met) {
      return json::parse(met.json(""));
    }
    return nullptr;
  }

  beanstalk::TestServer server_;
  Caller caller_{nullptr};
};

TEST_F(Operations, ReadsWhatItIsAskedAndAnswersInFields) {
  const json::value told = ask("mail", R"({"times":2,"tone":"high","after":"1.5s",)"
                                       R"("names":["a"],"rest":null})");
  EXPECT_EQ(rung.tube, "mail");
  EXPECT_EQ(rung.times, 2U);
  EXPECT_EQ(rung.tone, Tone::kHigh);
  EXPECT_EQ(rung.after.value().ms, 1'500U);
  ASSERT_EQ(rung.names.size(), 1U);
  EXPECT_EQ(rung.names[0], "a");
  EXPECT_TRUE(rung.rest.given);
  EXPECT_FALSE(rung.rest.value);
  EXPECT_EQ(told, json::parse(R"({"times":2,"who_base64":"YmVsbP8=",)"
                              R"("at":"1970-01-01T00:00:00.250Z","next":null})"));
}

TEST_F(Operations, WhatIsLeftOutStaysAsTheStructHasIt) {
  ask("mail", R"({"times":1,"tone":null})");
  EXPECT_FALSE(rung.tone);
  EXPECT_FALSE(rung.after);
  EXPECT_FALSE(rung.rest.given);
}

TEST_F(Operations, NamesAllFaultsAtOnce) {
  const json::value told = problem(
      "mail", R"({"times":4,"tone":"loud","after":"2m","names":["a",7],"rest":"soon","x":1})");
  EXPECT_EQ(told.at("errors"), json::parse(R"([
    {"pointer":"/times","detail":"4: not a whole number from 1 to 3"},
    {"pointer":"/tone","detail":"\"loud\": write one of low, high"},
    {"pointer":"/after","detail":"120000 ms: 0 to 60000 ms are allowed"},
    {"pointer":"/names/1","detail":"7: not a text"},
    {"pointer":"/rest","detail":"\"soon\": not a duration; use e.g. 250ms, 3s, 2h, 40d"},
    {"pointer":"/x","detail":"there is no such field"}])"));
}

TEST_F(Operations, SaysWhatIsMissingAndWhatIsInTheWrongPlace) {
  EXPECT_EQ(problem("mail", "{}").at("detail"), "/times: is needed: How often.");
  EXPECT_EQ(problem("mail", R"({"times":1,"tube":"other"})").at("detail"),
            "/tube: there is no such field");
  EXPECT_EQ(problem("mail", R"({"times":1})", {{"tone", "low"}}).at("detail"),
            "?tone: a POST has no query; its body says what is meant");
  EXPECT_EQ(problem("-", R"({"times":1})").at("status"), 400);
}

TEST_F(Operations, ShowsAValueAsJson) {
  EXPECT_EQ(problem("mail", R"({"times":"a\u0000\"b"})").at("detail"),
            R"(/times: "a\u0000\"b": not a whole number from 1 to 3)");
}

TEST_F(Operations, IsDescribedInOpenApi) {
  json::object document{{"paths", json::object()}, {"components", {{"schemas", json::object()}}}};
  const Operation* const all[] = {&kRing};
  describe(all, document);
  const json::value told = document;
  const json::value& post = told.at("paths").at("/v1/tubes/{tube}:ring").at("post");
  EXPECT_EQ(post.at("operationId"), "ringTube");
  EXPECT_EQ(post.at("security"), json::parse(R"([{},{"token":["work"]}])"));
  EXPECT_EQ(post.at("parameters").at(0).at("name"), "tube");
  EXPECT_EQ(post.at("parameters").at(0).at("in"), "path");
  EXPECT_TRUE(post.at("requestBody").at("required").as_bool());
  std::set<std::string> statuses;
  for (const auto& [status, response] : post.at("responses").as_object())
    statuses.insert(std::string(status));
  EXPECT_EQ(statuses, (std::set<std::string>{"200", "400", "409", "default"}));
  const json::value& schema = told.at("components").at("schemas").at("Ring");
  EXPECT_EQ(schema, json::parse(R"({
    "type": "object",
    "properties": {
      "times": {"type":"integer","minimum":1,"maximum":3,"description":"How often."},
      "tone": {"enum":["low","high"],"description":"Which one."},
      "after": {"$ref":"#/components/schemas/Duration","description":"From now on. Default: 0s."},
      "names": {"type":"array","items":{"type":"string"},"maxItems":2,"description":"For whom."},
      "rest": {"oneOf":[{"$ref":"#/components/schemas/Duration"},{"type":"null"}],
               "description":"Until the next."}
    },
    "additionalProperties": false,
    "required": ["times"]
  })"));
}

TEST_F(Operations, EachHasItsOwnNameAndReadsEachPartOfItsPath) {
  std::set<std::string_view> names;
  for (const Operation* const operation : operations()) {
    EXPECT_TRUE(names.insert(operation->name).second) << operation->name;
    for (std::size_t at = operation->path.find('{'); at != std::string_view::npos;
         at = operation->path.find('{', at + 1)) {
      const auto part = operation->path.substr(at + 1, operation->path.find('}', at) - at - 1);
      bool is_field = false;
      for (const Field& field : operation->request->fields) is_field |= field.name == part;
      EXPECT_TRUE(is_field) << operation->name << ": " << part;
    }
  }
}

// --- Each operation appends if its row says so, and waits for room in the store only then.

// {job} is the id of a new job with the key "key", and {lease} the token of a lease.
struct Sample {
  std::string_view path;
  std::string_view body;
  int status = 0;  // 0: one of success
};
const std::map<std::string_view, Sample> kSamples = {
    {"cancelJobs", {"/v1/jobs:cancel", R"({"filter":{"tube":"mail","key_prefix":"c"}})"}},
    {"retryJobs",
     {"/v1/jobs:retry", R"({"filter":{"tube":"mail","key_prefix":"r","state":"delayed"}})"}},
    {"moveJobs", {"/v1/jobs:move", R"({"filter":{"tube":"mail","key_prefix":"m"},"to":"other"})"}},
    {"spreadJobs",
     {"/v1/jobs:spread", R"({"filter":{"tube":"far","due_after":4000000000000,)"
                         R"("due_before":4000000001000},"over":"1h"})"}},
    {"clearTube", {"/v1/tubes/clear:clear", ""}},
    {"getOperation", {"/v1/operations/1", ""}},
    {"stopOperation", {"/v1/operations/1", ""}},
    {"getDead", {"/v1/tubes/mail/dead", ""}},
    {"listTubes", {"/v1/tubes", ""}},
    {"listGroups", {"/v1/tubes/mail/groups", ""}},
    {"getHealth", {"/healthz", ""}},
    {"getReadiness", {"/readyz", ""}},
    {"getStats", {"/v1/stats", ""}},
    {"getHistory", {"/v1/history", ""}},
    {"getAudit", {"/v1/audit", ""}},
    {"getWheel", {"/v1/wheel?tube=mail", ""}},
    {"listSchedules", {"/v1/schedules", ""}},
    {"putSchedule", {"/v1/schedules/s", R"({"every":"1h"})"}},
    {"getSchedule", {"/v1/schedules/s", ""}},
    {"pauseSchedule", {"/v1/schedules/s:pause", ""}},
    {"resumeSchedule", {"/v1/schedules/s:resume", ""}},
    {"triggerSchedule", {"/v1/schedules/s:trigger", ""}},
    {"deleteSchedule", {"/v1/schedules/s", ""}},
    {"listEndpoints", {"/v1/endpoints", ""}},
    {"putEndpoint", {"/v1/endpoints/e", R"({"url":"http://a.example/","tube":"mail"})"}},
    {"getEndpoint", {"/v1/endpoints/e", ""}},
    {"pauseEndpoint", {"/v1/endpoints/e:pause", ""}},
    {"resumeEndpoint", {"/v1/endpoints/e:resume", ""}},
    {"rotateEndpoint", {"/v1/endpoints/e:rotate", ""}},
    {"testEndpoint", {"/v1/endpoints/e:test", "", 409}},  // nothing is pushed here
    {"deleteEndpoint", {"/v1/endpoints/e", ""}},
    {"putJob", {"/v1/tubes/mail/jobs", "x"}},
    {"putJobs", {"/v1/tubes/mail/jobs:batch", R"({"jobs":[{},{"body":"x"}]})"}},
    {"listJobs", {"/v1/tubes/mail/jobs", ""}},
    {"getJob", {"/v1/jobs/{job}", ""}},
    {"patchJob", {"/v1/jobs/{job}", R"({"priority":1})"}},
    {"cancelJob", {"/v1/jobs/{job}", ""}},
    {"getJobBody", {"/v1/jobs/{job}/body", ""}},
    {"kickJob", {"/v1/jobs/{job}:kick", ""}},
    {"buryJob", {"/v1/jobs/{job}:bury", ""}},
    {"putKey", {"/v1/tubes/mail/keys/key", "x"}},
    {"peekTube", {"/v1/tubes/clear/next", ""}},
    {"buryJob", {"/v1/jobs/{job}:bury", ""}},
    {"getKey", {"/v1/tubes/mail/keys/key", ""}},
    {"patchKey", {"/v1/tubes/mail/keys/key", R"({"priority":1})"}},
    {"cancelKey", {"/v1/tubes/mail/keys/key", ""}},
    {"reserve", {"/v1/tubes/mail:reserve", ""}},
    {"ack", {"/v1/leases/{lease}:ack", ""}},
    {"getLeaseBody", {"/v1/leases/{lease}/body", ""}},
    {"nack", {"/v1/leases/{lease}:nack", ""}},
    {"extend", {"/v1/leases/{lease}:extend", ""}},
    {"getTube", {"/v1/tubes/mail", ""}},
    {"patchTube", {"/v1/tubes/mail", R"({"retention":"1h"})"}},
    {"pauseTube", {"/v1/tubes/mail:pause", ""}},
    {"resumeTube", {"/v1/tubes/mail:resume", ""}},
    {"kickTube", {"/v1/tubes/mail:kick", ""}},
    {"getDue", {"/v1/tubes/mail/due?by=hour", ""}},
    {"createCheckpoint", {"/v1/checkpoint", "", 409}},  // jobs are in memory alone
    {"getGroup", {"/v1/tubes/mail/groups/g", ""}},
    {"patchGroup", {"/v1/tubes/mail/groups/g", R"({"weight":2})"}},
};

class OperationAppends : public http::HttpSession {
 protected:
  using Answer = http::Answer;
  OperationAppends() {
    put(R"({"group":"g","delay":"1h"})");
    for (const std::string key : {"c", "m", "r"}) put(R"({"delay":"1h","key":")" + key + R"("})");
    put(R"({"due":4000000000500})", "far");
    put("{}", "clear");
    server.service.long_changes().begin({.list = {.tube = "mail"}, .dry_run = true}, server.now);
  }

  // Puts what the sample names, and returns its path.
  std::string prepared(const Sample& sample) {
    std::string path(sample.path);
    const auto replace = [&](std::string_view name, const std::string& by) {
      if (const std::size_t at = path.find(name); at != std::string::npos)
        path.replace(at, name.size(), by);
    };
    const json::value job = put(R"({"key":"key","delay":"1h","on_conflict":"replace"})").value();
    replace("{job}", json::serialize(job.at("id")));
    if (path.find("{lease}") != std::string::npos) {
      put("{}", "leased");
      const json::value leased = ask("POST", "/v1/tubes/leased:reserve").value();
      replace("{lease}", std::string(leased.at("jobs").at(0).at("lease").as_string()));
    }
    return path;
  }
};

TEST_F(OperationAppends, IfItsRowSaysSo) {
  for (const Operation* const operation : operations()) {
    ASSERT_TRUE(kSamples.contains(operation->name)) << operation->name << " has no sample here";
    const Sample& sample = kSamples.at(operation->name);
    const std::string path = prepared(sample);
    const queue::Sequence before = server.engine.last_sequence();
    const Answer answer = ask(operation->method, path, sample.body);
    EXPECT_TRUE(sample.status == 0 ? answer.status / 100 == 2 : answer.status == sample.status)
        << operation->name << ": " << answer.body;
    EXPECT_EQ(server.engine.last_sequence() > before, operation->appends == Appends::kYes)
        << operation->name;
  }
}

// The faults that depend on what is stored come with the others.
TEST_F(OperationAppends, NoneThatHasFaultsAndAllAreNamed) {
  const queue::Sequence before = server.engine.last_sequence();
  const Answer limits = ask("PATCH", "/v1/tubes/mail", R"({"limits":{"rate":{"burst":0}},"x":1})");
  EXPECT_EQ(limits.value().at("errors").as_array().size(), 4U) << limits.body;
  EXPECT_EQ(ask("PATCH", "/v1/tubes/mail").status, 400);
  EXPECT_EQ(ask("PATCH", "/v1/tubes/mail/groups/g").status, 400);
  const Answer body = ask("GET", "/v1/tubes/mail?y=1&y=2", R"({"x":1})");
  EXPECT_EQ(body.value().at("errors").as_array().size(), 3U) << body.body;
  EXPECT_EQ(body.value().at("errors").at(1).at("pointer"), "/x");
  EXPECT_EQ(server.engine.last_sequence(), before);
}

TEST_F(OperationAppends, AndWaitsForRoomOnlyThen) {
  for (const Operation* const operation : operations()) {
    const Sample& sample = kSamples.at(operation->name);
    const std::string path = prepared(sample);
    server.store.is_full = true;
    const bool is_answered = ask(operation->method, path, sample.body).status != 0;
    EXPECT_EQ(is_answered, operation->appends == Appends::kNo) << operation->name;
    server.store.is_full = false;
    feed("");
    EXPECT_EQ(next().status != 0, !is_answered) << operation->name;
  }
}

}  // namespace
}  // namespace carillon::server
