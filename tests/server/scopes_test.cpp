// Each route of HTTP and each verb of the beanstalk protocol is tried with tokens of one scope each
// and with one that is good for another tube alone. One that is not in these tables fails.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/tokens.h"
#include "server/beanstalk/command.h"
#include "server/http/routes.h"
#include "server/http/session.h"
#include "test_server.h"

namespace carillon::server {
namespace {

// A route or a command, the scope that it needs, and whether a token of another tube is refused it.
struct Case {
  std::string what;
  std::string_view scope;  // "": no token; "any": any
  bool is_of_tube = true;
};
constexpr bool kOfNoTube = false;

const std::vector<std::string> kScopes = {"read", "put", "work", "admin"};

// Each token's text is its name.
class Scopes : public testing::Test {
 protected:
  Scopes() {
    std::ofstream file(file_name);
    for (const std::string& scope : kScopes) file << line_of(scope, scope, {});
    file << line_of("stranger", "read,put,work,admin", {"elsewhere"});
    file.close();
    ::chmod(file_name.c_str(), 0600);
    tokens.emplace(file_name);
  }
  // A server with a job, a schedule, an endpoint and an operation of the tube t.
  void begin_anew() {
    server.emplace(ServiceOptions{.tokens = &*tokens});
    beanstalk::Client client(*server);
    client.say("auth admin\r\nuse t\r\nput-job 1 key=k group=g delay=1h\r\nx\r\n");
    queue::Schedule schedule;
    schedule.tube = "t";
    schedule.every = 3'600'000;
    server->engine.set_schedule(server->now, "s", schedule);
    queue::Endpoint endpoint;
    endpoint.url = "https://example.com/";
    endpoint.tube = "t";
    server->engine.set_endpoint(server->now, "e", endpoint);
    queue::JobBulk bulk;
    bulk.list.tube = "t";
    server->service.long_changes().begin(std::move(bulk), server->now);
  }
  ~Scopes() override { ::unlink(file_name.c_str()); }

  static std::string line_of(const std::string& text, const std::string& scopes,
                             std::vector<std::string> tubes) {
    const Token token{.name = text, .scopes = parse_scopes(scopes), .tubes = std::move(tubes)};
    return token_line(token, text) + "\n";
  }
  // Fails unless the tokens are refused as the case says. `is_refused` tries one.
  template <class IsRefused>
  void expect_scope(const Case& tried, IsRefused is_refused) {
    const auto anew = [&](const std::string& token) {
      begin_anew();
      return is_refused(token);
    };
    const bool is_open = tried.scope.empty();
    EXPECT_EQ(anew(""), !is_open) << tried.what << " without a token";
    for (const std::string& scope : kScopes) {
      const bool is_right = is_open || tried.scope == "any" || scope == tried.scope;
      EXPECT_EQ(anew(scope), !is_right && scope != "admin") << tried.what << ": " << scope;
    }
    EXPECT_EQ(anew("stranger"), tried.is_of_tube) << tried.what << " for another tube";
  }

  std::string file_name = testing::TempDir() + "scopes." + std::to_string(::getpid());
  std::optional<Tokens> tokens;
  std::optional<beanstalk::TestServer> server;
};

// Behind the path, what the body is.
const std::vector<Case> kRoutes = {
    {"GET /healthz", "", kOfNoTube},
    {"GET /readyz", "", kOfNoTube},
    {"GET /openapi.json", "", kOfNoTube},
    {"GET /docs", "", kOfNoTube},
    {"GET /", "", kOfNoTube},
    {"GET /console/{file}", "", kOfNoTube},
    {"GET /v1/stats", "read", kOfNoTube},
    {"GET /metrics", "read"},
    {"GET /v1/events", "read"},
    {"GET /v1/history", "read"},
    {"GET /v1/audit", "admin"},
    {"GET /v1/wheel", "read", kOfNoTube},
    {"POST /v1/tubes/{tube}/jobs", "put"},
    {"GET /v1/tubes/{tube}/jobs", "read"},
    {"POST /v1/tubes/{tube}/jobs:batch", "put"},
    {"GET /v1/jobs/{id}", "read"},
    {"PATCH /v1/jobs/{id}", "put"},
    {"DELETE /v1/jobs/{id}", "put"},
    {"GET /v1/jobs/{id}/body", "read"},
    {"POST /v1/jobs/{id}:kick", "admin"},
    {"POST /v1/jobs/{id}:bury", "admin"},
    {"PUT /v1/tubes/{tube}/keys/{key}", "put"},
    {"GET /v1/tubes/{tube}/keys/{key}", "read"},
    {"PATCH /v1/tubes/{tube}/keys/{key}", "put"},
    {"DELETE /v1/tubes/{tube}/keys/{key}", "put"},
    {R"(POST /v1/jobs:cancel {"filter":{"tube":"t"}})", "admin"},
    {R"(POST /v1/jobs:retry {"filter":{"tube":"t"}})", "admin"},
    {R"(POST /v1/jobs:move {"filter":{"tube":"t"},"to":"t2"})", "admin"},
    {R"(POST /v1/jobs:spread {"filter":{"tube":"t","due_after":1,"due_before":2},"over":"1h"})",
     "admin"},
    {"GET /v1/operations/{id}", "read"},
    {"DELETE /v1/operations/{id}", "admin"},
    {"GET /v1/schedules", "read", kOfNoTube},
    {R"(PUT /v1/schedules/{name} {"every":"1h","job":{"tube":"t"}})", "put"},
    {"GET /v1/schedules/{name}", "read"},
    {"POST /v1/schedules/{name}:pause", "put"},
    {"POST /v1/schedules/{name}:resume", "put"},
    {"POST /v1/schedules/{name}:trigger", "put"},
    {"DELETE /v1/schedules/{name}", "put"},
    {"GET /v1/endpoints", "admin", kOfNoTube},
    {R"(PUT /v1/endpoints/{name} {"url":"https://example.com/","tube":"t"})", "admin"},
    {"GET /v1/endpoints/{name}", "admin"},
    {"POST /v1/endpoints/{name}:pause", "admin"},
    {"POST /v1/endpoints/{name}:resume", "admin"},
    {"POST /v1/endpoints/{name}:rotate", "admin"},
    {"POST /v1/endpoints/{name}:test", "admin"},
    {"DELETE /v1/endpoints/{name}", "admin"},
    {"POST /v1/tubes/{tube}:reserve", "work"},
    {"POST /v1/leases/{token}:ack", "work", kOfNoTube},
    {"GET /v1/leases/{token}/body", "work", kOfNoTube},
    {"POST /v1/leases/{token}:nack", "work", kOfNoTube},
    {"POST /v1/leases/{token}:extend", "work", kOfNoTube},
    {"GET /v1/tubes", "read", kOfNoTube},
    {"GET /v1/tubes/{tube}", "read"},
    {"PATCH /v1/tubes/{tube}", "admin"},
    {"GET /v1/tubes/{tube}/due", "read"},
    {"POST /v1/checkpoint", "admin"},
    {"POST /v1/tubes/{tube}:pause", "admin"},
    {"POST /v1/tubes/{tube}:resume", "admin"},
    {"POST /v1/tubes/{tube}:clear", "admin"},
    {"POST /v1/tubes/{tube}:kick", "admin"},
    {"GET /v1/tubes/{tube}/groups", "read"},
    {"GET /v1/tubes/{tube}/next", "read"},
    {"GET /v1/tubes/{tube}/dead", "read"},
    {"GET /v1/tubes/{tube}/groups/{group}", "read"},
    {"PATCH /v1/tubes/{tube}/groups/{group}", "admin"},
};

// What each name in a path stands for: a job, a schedule or an endpoint of the tube t.
std::string filled(std::string path) {
  const std::string name = path.find("/schedules/") != std::string::npos ? "s" : "e";
  for (const auto& [pattern, value] :
       std::vector<std::pair<std::string, std::string>>{{"{tube}", "t"},
                                                        {"{id}", "1"},
                                                        {"{key}", "k"},
                                                        {"{group}", "g"},
                                                        {"{name}", name},
                                                        {"{token}", "1-1-00"},
                                                        {"{file}", "app.js"}}) {
    if (const std::size_t at = path.find(pattern); at != std::string::npos)
      path.replace(at, pattern.size(), value);
  }
  return path;
}

TEST_F(Scopes, EachRouteHasItsScope) {
  std::set<std::string> tried;
  const std::vector<std::string> names;
  for (const Case& each : kRoutes) {
    const std::size_t path = each.what.find(' ') + 1;
    const std::size_t end = std::min(each.what.find(' ', path), each.what.size());
    tried.insert(each.what.substr(0, end));
    const std::string body = each.what.substr(std::min(end + 1, each.what.size()));
    expect_scope(each, [&](const std::string& token) {
      http::Session session(server->service, names);
      std::string request = each.what.substr(0, path) + filled(each.what.substr(path, end - path)) +
                            " HTTP/1.1\r\nHost: localhost\r\n";
      if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
      request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
      do request.erase(0, session.receive(request, UINT64_MAX));
      while (session.wants() == Protocol::Wants::kTurn);
      const std::string reply(session.replies().sendable(UINT64_MAX));
      // A trial of an endpoint is waited for, and has no answer yet.
      const std::string status = reply.empty() ? "200" : reply.substr(9, 3);
      EXPECT_TRUE(token.empty() || status != "401") << each.what << ": " << token;
      return status == (token.empty() ? "401" : "403");
    });
  }
  for (const http::Route& route : http::routes()) {
    const std::string name = std::string(route.method) + " " + std::string(route.pattern);
    EXPECT_EQ(tried.erase(name), 1u) << name << " is in no table";
  }
  EXPECT_TRUE(tried.empty()) << *tried.begin() << " is no route";
}

// Behind the line, what its body is.
const std::vector<Case> kCommands = {
    {"put 0 0 60 1\r\nx", "put"},
    {"put-ms 0 0 60000 1\r\nx", "put"},
    {"put-at 0 4102444800000 60000 1\r\nx", "put"},
    {"put-job 1\r\nx", "put"},
    {"put-jobs 6\r\n1\r\nx\r\n", "put"},
    {"patch-job 1 pri=1", "put"},
    {"cancel-job 1", "put"},
    {"peek 1", "read"},
    {"peek-job 1", "read"},
    {"stats-job 1", "read"},
    {"peek-ready", "read"},
    {"peek-delayed", "read"},
    {"peek-buried", "read"},
    {"stats", "read", kOfNoTube},
    {"stats-tube t", "read"},
    {"list-tubes", "read", kOfNoTube},
    {"watch t", "work"},
    {"reserve-job 1", "work"},
    {"delete 1", "work"},
    {"release 1 0 0", "work"},
    {"release-ms 1 0 0", "work"},
    {"bury 1 0", "work"},
    {"touch 1", "work"},
    {"touch-job 1", "work"},
    {"fail-job 1 1\r\nx", "work"},
    {"delete-jobs 1\r\n1", "work", kOfNoTube},   // tells it of each job
    {"release-jobs 1\r\n1", "work", kOfNoTube},  // likewise
    {"reserve-with-timeout 0", "work"},
    {"reserve-with-timeout-ms 0", "work"},
    {"reserve-jobs 1 timeout=0s", "work"},
    {"reserve", "work"},
    {"kick 1", "admin"},
    {"kick-job 1", "admin"},
    {"pause-tube t 1", "admin"},
    {"use t", "any"},
    {"ignore nothing", "any", kOfNoTube},
    {"list-tube-used", "any", kOfNoTube},
    {"list-tubes-watched", "any", kOfNoTube},
    {"name-client me", "any", kOfNoTube},
    {"auth admin", "", kOfNoTube},
    {"quit", "", kOfNoTube},
    {"rubbish", "", kOfNoTube},
};

TEST_F(Scopes, EachVerbHasItsScope) {
  std::set<beanstalk::Verb> tried;
  for (const Case& each : kCommands) {
    tried.insert(beanstalk::parse_command(each.what.substr(0, each.what.find('\r'))).verb);
    expect_scope(each, [&](const std::string& token) {
      beanstalk::Client client(*server);
      // The one who has chosen the tube need not be the one who sends the command.
      client.say("auth admin\r\nuse t\r\nwatch t\r\nauth " + (token.empty() ? "read" : token) +
                 "\r\n");
      beanstalk::Client stranger(*server);
      const std::string reply =
          (token.empty() ? stranger : client).say(each.what + "\r\n").substr(0, 10);
      return reply == "FORBIDDEN ";
    });
  }
  EXPECT_EQ(tried.size(), beanstalk::kVerbs);
}

// A verb that appends without saying so in the table of verbs is found here.
TEST_F(Scopes, NoVerbAppendsWhileTheStoreIsFull) {
  for (const Case& each : kCommands) {
    begin_anew();
    beanstalk::Client client(*server);
    client.say("auth admin\r\nuse t\r\nwatch t\r\n");
    if (each.what.ends_with(" 1 0 0") || each.what.starts_with("bury") ||
        each.what.starts_with("fail-job"))
      client.say("reserve-job 1\r\n");
    server->store.is_full = true;
    const queue::Sequence before = server->engine.last_sequence();
    client.say(each.what + "\r\n");
    EXPECT_EQ(server->engine.last_sequence(), before) << each.what;
  }
}

}  // namespace
}  // namespace carillon::server
