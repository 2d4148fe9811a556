// A row and a function are all that an operation takes: here one is added.
#include "server/api/operation.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operation_world.h"
#include "server/api/operations.h"
#include "server/api/problem.h"
#include "test_server.h"

namespace carillon::server {

namespace json = boost::json;

// --- The operation: what it is asked, what it answers, its function, and its row.

enum class Tone : std::uint8_t { kLow, kHigh };
template <>
inline constexpr auto kWords<Tone> = words("low", "high");

struct Ring {
  std::string tube;
  std::uint32_t times = 1;
  std::optional<Tone> tone;
  std::optional<Duration> after;
  std::vector<std::string> names;
  Patch<Duration> rest;
};
template <>
inline constexpr auto kFields<Ring> =
    fields(field<&Ring::tube>("The tube.", {.form = &kTubeForm}),
           field<&Ring::times>("How often.", {.least = 1, .most = 3, .needed = true}),
           field<&Ring::tone>("Which one."),
           field<&Ring::after>("From now on.", {.most = 60'000, .usual = "0s"}),
           field<&Ring::names>("For whom.", {.most = 2}), field<&Ring::rest>("Until the next."));

struct Rung {
  std::uint64_t times = 0;
  Bytes who;
  std::optional<Moment> at;
  std::optional<std::string> next;
};
template <>
inline constexpr auto kFields<Rung> =
    fields(field<&Rung::times>("How often."), field<&Rung::who>("By whom."),
           field<&Rung::at>("When."), field<&Rung::next>("What follows.", {.shows_null = true}));

Ring rung;  // what the function was asked last

Rung ring_tube(RequestContext&, const Ring& asked) {
  rung = asked;
  return {.times = asked.times, .who = {"bell\xFF"}, .at = Moment{250}, .next = {}};
}

constexpr auto kRows =
    rows("tubes", operation<ring_tube>("POST /v1/tubes/{tube}:ring", {Needs::kWork, Reach::kTube},
                                       "Rings.", {.problems = "409"}));
constexpr const Operation& kRing = kRows.front();

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
  EXPECT_EQ(statuses, (std::set<std::string>{"200", "400", "409", "412", "422", "default"}));
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

using http::OperationWorld;

std::vector<http::Route> operation_routes() {
  std::vector<http::Route> all;
  for (const http::Route& route : http::routes())
    if (route.operation != nullptr) all.push_back(route);
  return all;
}

TEST(OperationAppends, IfItsRowSaysSo) {
  for (const http::Route& route : operation_routes()) {
    OperationWorld world;
    const OperationWorld::Asked asked = world.sample_of(route);
    const queue::Sequence before = world.server.engine.last_sequence();
    const std::string answer = world.ask(asked);
    const std::string status = answer.substr(9, 3);
    EXPECT_TRUE(asked.status == 0 ? status[0] == '2' : status == std::to_string(asked.status))
        << route.operation->name << ": " << asked.method << " " << asked.path << " " << asked.body
        << "\nis answered " << answer << "\nA body that it needs is its sample in operations.json.";
    EXPECT_EQ(world.server.engine.last_sequence() > before,
              route.operation->appends == Appends::kYes)
        << route.operation->name;
  }
}

TEST(OperationAppends, AndWaitsForRoomOnlyThen) {
  const std::vector<std::string> names;
  for (const http::Route& route : operation_routes()) {
    OperationWorld world;
    const OperationWorld::Asked asked = world.sample_of(route);
    http::Session session(world.server.service, names);
    world.server.store.is_full = true;
    const bool is_answered = !OperationWorld::send(session, asked, "").empty();
    EXPECT_EQ(is_answered, route.operation->appends == Appends::kNo) << route.operation->name;
    world.server.store.is_full = false;
    session.receive("", UINT64_MAX);
    EXPECT_EQ(session.replies().sendable(UINT64_MAX).empty(), is_answered) << route.operation->name;
  }
}

// A worker that writes {"failed":true} behind :ack does not want the job to be deleted.
TEST(OperationAppends, NothingIfTheRequestHasAFieldThatItDoesNotKnow) {
  for (const http::Route& route : operation_routes()) {
    OperationWorld world;
    OperationWorld::Asked asked = world.sample_of(route);
    const queue::Sequence before = world.server.engine.last_sequence();
    if (route.operation->has_query()) {
      asked.path += asked.path.find('?') == std::string::npos ? "?x=1" : "&x=1";
    } else {
      json::object body = asked.body.empty() ? json::object() : json::parse(asked.body).as_object();
      body["x"] = true;
      asked.body = json::serialize(body);
    }
    const std::string answer = world.ask(asked);
    EXPECT_EQ(answer.substr(9, 3), "400") << route.operation->name;
    EXPECT_NE(answer.find("x: there is no such field"), std::string::npos) << answer;
    EXPECT_EQ(world.server.engine.last_sequence(), before) << route.operation->name;
  }
}

TEST(OperationAppends, NothingIfItHasAQueryThatItDoesNotKnow) {
  for (const http::Route& route : operation_routes()) {
    OperationWorld world;
    OperationWorld::Asked asked = world.sample_of(route);
    const queue::Sequence before = world.server.engine.last_sequence();
    asked.path += asked.path.find('?') == std::string::npos ? "?x=1" : "&x=1";
    EXPECT_EQ(world.ask(asked).substr(9, 3), "400") << asked.method << " " << asked.path;
    EXPECT_EQ(world.server.engine.last_sequence(), before) << route.operation->name;
  }
}

TEST(OperationSamples, EachIsOfAnOperation) {
  std::set<std::string_view> names;
  for (const Operation* const operation : operations()) names.insert(operation->name);
  for (const auto& [name, sample] : OperationWorld::samples())
    EXPECT_TRUE(names.contains(name)) << name;
}

// The faults that depend on what is stored come with the others.
TEST(OperationAppends, NothingIfItHasFaultsAndAllAreNamed) {
  OperationWorld world;
  const queue::Sequence before = world.server.engine.last_sequence();
  const auto faults = [&](const OperationWorld::Asked& asked) {
    const std::string reply = world.ask(asked);
    EXPECT_EQ(reply.substr(9, 3), "400") << reply;
    return json::parse(reply.substr(reply.find("\r\n\r\n") + 4)).at("errors").as_array();
  };
  EXPECT_EQ(faults({"PATCH", "/v1/tubes/mail", R"({"limits":{"rate":{"burst":0}},"x":1})"}).size(),
            4U);
  for (const char* const path : {"/v1/tubes/mail", "/v1/tubes/mail/groups/g"})
    EXPECT_EQ(world.ask({"PATCH", path, ""}).substr(9, 3), "400");
  const json::array named = faults({"GET", "/v1/tubes/mail?y=1&y=2", R"({"x":1})"});
  EXPECT_EQ(named.size(), 3U);
  EXPECT_EQ(named.at(1).at("pointer"), "/x");
  EXPECT_EQ(world.server.engine.last_sequence(), before);
}

}  // namespace
}  // namespace carillon::server
