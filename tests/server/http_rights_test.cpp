// What a token allows over HTTP, and what the API's description says about it.
#include <string>

#include "http_fixture.h"
#include "server/http/routes.h"
#include "server/http/web.h"
#include "token_file.h"

namespace carillon::server::http {
namespace {

// Each token's text is its name.
class HttpRights : public testing::Test {
 protected:
  // Returns the whole reply.
  std::string ask(const std::string& method, const std::string& target, const std::string& token,
                  const std::string& body = "", const std::string& headers = "") {
    Session session(server.service, names);
    std::string request = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
    if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    do request.erase(0, session.receive(request, UINT64_MAX));
    while (session.wants() == Protocol::Wants::kTurn);
    return std::string(session.replies().sendable(UINT64_MAX));
  }
  int status(const std::string& method, const std::string& target, const std::string& token,
             const std::string& body = "") {
    return std::stoi(ask(method, target, token, body).substr(9, 3));
  }

  const TokenFile file{{{"reader", "read"},
                        {"boss", "admin"},
                        {"mailer", "read,put,work,admin", "mail"},
                        {"putter", "put", "mail"}}};
  Tokens tokens{file.path};
  beanstalk::TestServer server{{.tokens = &tokens}};
  std::vector<std::string> names;
};

TEST_F(HttpRights, SaysHowToShowAToken) {
  const std::string none = ask("GET", "/metrics", "");
  EXPECT_NE(none.find("WWW-Authenticate: Bearer realm=\"carillon\"\r\n"), std::string::npos);
  EXPECT_NE(none.find("\"/docs#no-token\""), std::string::npos);
  const std::string wrong = ask("GET", "/metrics", "rea");
  EXPECT_NE(wrong.find("error=\"invalid_token\""), std::string::npos);
  EXPECT_NE(wrong.find("Connection: close"), std::string::npos);
  EXPECT_EQ(server.service.counters().wrong_tokens, 1u);
}

TEST_F(HttpRights, SaysWhichScopeIsMissing) {
  const std::string reply = ask("POST", "/v1/tubes/mail/jobs", "reader", "x");
  EXPECT_EQ(reply.substr(9, 3), "403");
  EXPECT_NE(reply.find("error=\"insufficient_scope\", scope=\"put\""), std::string::npos);
  EXPECT_NE(reply.find("lacks the scope put"), std::string::npos);
  EXPECT_EQ(status("GET", "/metrics", "reader"), 200);
  EXPECT_EQ(status("POST", "/v1/tubes/mail/jobs", "boss", "x"), 201);
}

// What the path names is tried by Scopes.EachRouteHasItsScope.
TEST_F(HttpRights, ATokenOfSomeTubesReachesNoOtherTubeThatItsRequestNames) {
  EXPECT_EQ(status("POST", "/v1/tubes/mail/jobs", "boss", "x"), 201);   // job 1
  EXPECT_EQ(status("POST", "/v1/tubes/other/jobs", "boss", "x"), 201);  // job 2
  EXPECT_EQ(status("GET", "/v1/jobs/3", "mailer"), 404);
  EXPECT_EQ(status("GET", "/v1/wheel?tube=mail", "mailer"), 200);
  EXPECT_EQ(status("POST", "/v1/jobs:move", "mailer", R"({"filter":{"tube":"mail"},"to":"other"})"),
            403);
  EXPECT_EQ(status("PUT", "/v1/schedules/s", "mailer", R"({"every":"1h","job":{"tube":"other"}})"),
            403);
  const std::string url = R"("url":"https://example.com/","tube":)";
  EXPECT_EQ(status("PUT", "/v1/endpoints/o", "boss", "{" + url + R"("other"})"), 201);
  EXPECT_EQ(status("PUT", "/v1/endpoints/m", "mailer", "{" + url + R"("mail"})"), 201);
  EXPECT_EQ(status("PUT", "/v1/endpoints/m", "mailer", "{" + url + R"("other"})"), 403);
  EXPECT_EQ(status("PUT", "/v1/endpoints/o", "mailer", "{" + url + R"("mail"})"), 403);
  for (const char* const list : {"/v1/endpoints", "/v1/tubes"}) {
    const std::string told = ask("GET", list, "mailer");
    EXPECT_NE(told.find("\"mail\""), std::string::npos);
    EXPECT_EQ(told.find("\"other\""), std::string::npos);
  }
}

TEST_F(HttpRights, TheAuditHasTheNamesOfTokensAndIsToldToAdministratorsAlone) {
  ask("POST", "/v1/tubes/mail/jobs", "boss", "x");
  EXPECT_EQ(status("POST", "/v1/tubes/mail:pause", "boss"), 200);
  const std::string audit = ask("GET", "/v1/audit", "boss");
  EXPECT_NE(audit.find(R"("who":"boss at ")"), std::string::npos) << audit;
  const std::string all = "/v1/events?last_event_id=another-0";
  EXPECT_NE(ask("GET", all, "boss").find("event: audit\n"), std::string::npos);
  const std::string events = ask("GET", all, "reader");
  EXPECT_NE(events.find("text/event-stream"), std::string::npos);
  EXPECT_EQ(events.find("event: audit\n"), std::string::npos);
}

TEST_F(HttpRights, ARefusalDoesNotNameTheTubeOfAnothersJobOrScheduleOrOperation) {
  ask("POST", "/v1/tubes/secret/jobs", "boss", "x");
  ask("PUT", "/v1/schedules/s", "boss", R"({"every":"1h","job":{"tube":"secret"}})");
  queue::JobBulk bulk;
  bulk.list.tube = "secret";
  const std::uint64_t id = server.service.long_changes().begin(std::move(bulk), server.now);
  const std::string mine = R"({"every":"1h","job":{"tube":"mail"}})";
  for (const std::string& reply :
       {ask("GET", "/v1/jobs/1", "mailer"), ask("DELETE", "/v1/jobs/1", "mailer"),
        ask("GET", "/v1/schedules/s", "mailer"), ask("PUT", "/v1/schedules/s", "mailer", mine),
        ask("GET", "/v1/operations/" + std::to_string(id), "mailer")}) {
    EXPECT_EQ(reply.substr(9, 3), "403");
    EXPECT_EQ(reply.find("secret"), std::string::npos) << reply;
  }
}

TEST_F(HttpRights, ATokenThatMayChangeAJobAndNotReadItSeesOnlyItsNumber) {
  ask("POST", "/v1/tubes/mail/jobs", "boss", "hidden");
  const std::string change = R"({"priority":7})";
  EXPECT_NE(ask("PATCH", "/v1/jobs/1", "mailer", change).find("hidden"), std::string::npos);
  const std::string reply = ask("PATCH", "/v1/jobs/1", "putter", change);
  EXPECT_EQ(reply.substr(9, 3), "200");
  EXPECT_EQ(reply.substr(reply.find("\r\n\r\n") + 4), R"({"id":1})");
  EXPECT_NE(reply.find("ETag: "), std::string::npos);
}

TEST_F(HttpRights, ATokenThatMayPutAndNotReadSeesOnlyTheStateOfAJobWithTheKey) {
  const std::string headers = "Carillon-Key: k\r\nCarillon-On-Conflict: ignore\r\n";
  ask("POST", "/v1/tubes/mail/jobs", "boss", "x", "Content-Type: hid/den\r\n" + headers);
  const std::string seen = ask("POST", "/v1/tubes/mail/jobs", "mailer", "y", headers);
  EXPECT_NE(seen.find("hid/den"), std::string::npos) << seen;
  const std::string reply = ask("POST", "/v1/tubes/mail/jobs", "putter", "y", headers);
  EXPECT_EQ(reply.substr(9, 3), "200");
  EXPECT_EQ(reply.substr(reply.find("\r\n\r\n") + 4), R"({"id":1,"state":"ready"})");
  EXPECT_NE(reply.find("ETag: "), std::string::npos);
}

TEST_F(HttpRights, PagesOfSchedulesShowOnlyAllowedOnes) {
  for (int n = 0; n < 60; ++n) {
    const std::string tube = n % 20 == 7 ? "mail" : "other";
    ask("PUT", "/v1/schedules/" + tube + std::to_string(10 + n), "boss",
        R"({"every":"1h","job":{"tube":")" + tube + "\"}}");
  }
  ask("PUT", "/v1/schedules/zzz", "boss", R"({"every":"1h","job":{"tube":"other"}})");
  std::vector<std::string> seen;
  std::string next;
  do {
    const std::string reply = ask(
        "GET", "/v1/schedules?page_size=2" + (next.empty() ? "" : "&page_token=" + next), "mailer");
    ASSERT_EQ(reply.substr(9, 3), "200") << reply;
    EXPECT_EQ(reply.find("other"), std::string::npos) << reply;
    EXPECT_EQ(reply.find("zzz"), std::string::npos) << reply;
    const json::value page = json::parse(reply.substr(reply.find("\r\n\r\n") + 4));
    for (const json::value& one : page.at("schedules").as_array())
      seen.emplace_back(one.at("name").as_string());
    const json::value& token = page.at("next_page_token");
    next = token.is_null() ? "" : std::string(token.as_string());
  } while (!next.empty());
  EXPECT_EQ(seen, (std::vector<std::string>{"mail17", "mail37", "mail57"}));
}

TEST_F(HttpRights, EachTokenHasIdempotencyKeysOfItsOwn) {
  const std::string key = "Idempotency-Key: \"1\"\r\n";
  const auto put = [&](const std::string& token) {
    return ask("POST", "/v1/tubes/mail/jobs", token, "x", key);
  };
  EXPECT_NE(put("boss").find("/v1/jobs/1\r\n"), std::string::npos);
  EXPECT_NE(put("putter").find("/v1/jobs/2\r\n"), std::string::npos);
  EXPECT_NE(put("boss").find("/v1/jobs/1\r\n"), std::string::npos);
}

TEST_F(HttpRights, ABodyIsCollectedForThoseAloneWhoMaySendIt) {
  struct Case {
    std::string line, token, status;
  };
  for (const auto& [line, token, status] :
       {Case{"POST /v1/tubes/mail/jobs", "", "401"}, Case{"POST /v1/tubes/mail/jobs", "no", "401"},
        Case{"POST /v1/tubes/mail/jobs", "reader", "403"}, Case{"POST /v1/nothing", "", "404"},
        Case{"GET /healthz", "", "413"}}) {
    Session session(server.service, names);
    std::string request = line + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n";
    if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
    session.receive(request + "\r\n", UINT64_MAX);
    const std::string reply(session.replies().sendable(UINT64_MAX));
    EXPECT_EQ(reply.substr(9, 3), status) << line;
    EXPECT_NE(reply.find("Connection: close"), std::string::npos) << line;
    EXPECT_EQ(session.wants(), Protocol::Wants::kNothing) << line;
  }
  // One that is refused, and is there as a whole, leaves the connection open.
  Session session(server.service, names);
  session.receive(
      "POST /v1/tubes/mail/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx",
      UINT64_MAX);
  EXPECT_EQ(session.wants(), Protocol::Wants::kInput);
  EXPECT_FALSE(session.mid_command());
}

TEST_F(HttpRights, ARequestWhoseTokenIsTakenAwayIsAnswered401) {
  const std::string head = "Host: localhost\r\nAuthorization: Bearer mailer\r\n";
  Session waits(server.service, names);
  waits.receive("POST /v1/tubes/mail:reserve HTTP/1.1\r\n" + head +
                    "Content-Length: 14\r\n\r\n{\"wait\":\"20s\"}",
                UINT64_MAX);
  ASSERT_EQ(waits.wants(), Protocol::Wants::kDelivery);
  Session sends(server.service, names);
  sends.receive("POST /v1/tubes/mail/jobs HTTP/1.1\r\n" + head + "Content-Length: 9\r\n\r\nhe",
                UINT64_MAX);
  file.write({{"boss", "admin"}});
  tokens.reload();
  for (Session* const session : {&waits, &sends}) {
    ASSERT_FALSE(session->may_go_on());
    session->close();
    const std::string reply(session->replies().sendable(UINT64_MAX));
    EXPECT_EQ(reply.substr(9, 3), "401");
    EXPECT_NE(reply.find("error=\"invalid_token\""), std::string::npos);
  }
}

// An operation without a requirement of its own has the one of the whole document. A server without
// tokens wants none: the empty requirement (OpenAPI 3.1, 4.8.2) stands beside each one.
TEST(OpenApi, TellsWhatEachRouteNeeds) {
  const json::value api = json::parse(openapi_text());
  EXPECT_EQ(api.at("components").at("securitySchemes").at("token").at("scheme"), "bearer");
  for (const Route& route : routes()) {
    std::string method(route.method);
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    const json::object& operation = api.at("paths").at(route.pattern).at(method).as_object();
    const json::array* const asked =
        operation.contains("security") ? operation.at("security").if_array() : nullptr;
    ASSERT_NE(asked, nullptr) << route.method << " " << route.pattern;
    if (route.rights.needs == Needs::kNothing) {
      EXPECT_TRUE(asked->empty()) << route.pattern;
    } else {
      ASSERT_EQ(asked->size(), 2u) << route.pattern;
      EXPECT_TRUE(asked->at(0).as_object().empty()) << route.pattern;
      EXPECT_EQ(asked->at(1).at("token").at(0).as_string(), name_of(route.rights.needs))
          << route.pattern;
    }
  }
}

}  // namespace
}  // namespace carillon::server::http
