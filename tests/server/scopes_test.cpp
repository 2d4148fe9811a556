// Each route of HTTP and each verb of the beanstalk protocol is tried with tokens of one scope each
// and with one that is good for another tube alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operation_world.h"
#include "server/beanstalk/command.h"
#include "token_file.h"

namespace carillon::server {
namespace {

// A route or a command, the scope that it needs, and whether a token of another tube is refused it.
struct Case {
  std::string what;
  std::string_view scope;  // "": no token; "any": any
  bool is_of_tube = true;
};
constexpr bool kOfNoTube = false;

class Scopes : public testing::Test {
 protected:
  // Fails unless the tokens are refused as the case says. `is_refused` tries one.
  template <class IsRefused>
  void expect_scope(const Case& tried, IsRefused is_refused) {
    const auto anew = [&](const std::string& token) {
      world.emplace(ServiceOptions{.tokens = &tokens});
      return is_refused(token);
    };
    const bool is_open = tried.scope.empty();
    EXPECT_EQ(anew(""), !is_open) << tried.what << " without a token";
    for (const std::string scope : {"read", "put", "work", "admin"}) {
      const bool is_right = is_open || tried.scope == "any" || scope == tried.scope;
      EXPECT_EQ(anew(scope), !is_right && scope != "admin") << tried.what << ": " << scope;
    }
    EXPECT_EQ(anew("stranger"), tried.is_of_tube) << tried.what << " for another tube";
  }

  TokenFile file{{{"read", "read"},
                  {"put", "put"},
                  {"work", "work"},
                  {"admin", "admin"},
                  {"stranger", "read,put,work,admin", "elsewhere"}}};
  Tokens tokens{file.path};
  std::optional<http::OperationWorld> world;
};

// Written down beside the table of the routes: a row that grants more by mistake is found.
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
    {"GET /v1/wheel", "read"},
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
    {"POST /v1/jobs:cancel", "admin"},
    {"POST /v1/jobs:retry", "admin"},
    {"POST /v1/jobs:move", "admin"},
    {"POST /v1/jobs:spread", "admin"},
    {"GET /v1/operations/{id}", "read"},
    {"DELETE /v1/operations/{id}", "admin"},
    {"GET /v1/schedules", "read", kOfNoTube},
    {"PUT /v1/schedules/{name}", "put"},
    {"GET /v1/schedules/{name}", "read"},
    {"POST /v1/schedules/{name}:pause", "put"},
    {"POST /v1/schedules/{name}:resume", "put"},
    {"POST /v1/schedules/{name}:trigger", "put"},
    {"DELETE /v1/schedules/{name}", "put"},
    {"GET /v1/endpoints", "admin", kOfNoTube},
    {"PUT /v1/endpoints/{name}", "admin"},
    {"GET /v1/endpoints/{name}", "admin"},
    {"POST /v1/endpoints/{name}:pause", "admin"},
    {"POST /v1/endpoints/{name}:resume", "admin"},
    {"POST /v1/endpoints/{name}:rotate", "admin"},
    {"POST /v1/endpoints/{name}:test", "admin"},
    {"DELETE /v1/endpoints/{name}", "admin"},
    {"POST /v1/tubes/{tube}:reserve", "work"},
    {"POST /v1/leases/{token}:ack", "work"},
    {"GET /v1/leases/{token}/body", "work"},
    {"POST /v1/leases/{token}:nack", "work"},
    {"POST /v1/leases/{token}:extend", "work"},
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

TEST_F(Scopes, EachRouteHasItsScope) {
  std::size_t tried = 0;
  for (const http::Route& route : http::routes()) {
    const std::string what = std::string(route.method) + " " + std::string(route.pattern);
    const auto is_it = [&](const Case& each) { return each.what == what; };
    const auto found = std::find_if(kRoutes.begin(), kRoutes.end(), is_it);
    ASSERT_NE(found, kRoutes.end()) << what << " is not in the list";
    ++tried;
    expect_scope(*found, [&](const std::string& token) {
      const std::string reply = world->ask(world->sample_of(route), token);
      // A trial of an endpoint is waited for, and has no answer yet.
      const std::string status = reply.empty() ? "200" : reply.substr(9, 3);
      EXPECT_TRUE(token.empty() || status != "401") << what << ": " << token;
      return status == (token.empty() ? "401" : "403");
    });
  }
  EXPECT_EQ(tried, kRoutes.size());
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
      beanstalk::Client client(world->server);
      // The one who has chosen the tube need not be the one who sends the command.
      client.say("auth admin\r\nuse t\r\nwatch t\r\nauth " + (token.empty() ? "read" : token) +
                 "\r\n");
      beanstalk::Client stranger(world->server);
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
    world.emplace(ServiceOptions{.tokens = &tokens});
    beanstalk::Client client(world->server);
    client.say("auth admin\r\nuse t\r\nwatch t\r\n");
    if (each.what.ends_with(" 1 0 0") || each.what.starts_with("bury") ||
        each.what.starts_with("fail-job"))
      client.say("reserve-job 1\r\n");
    world->server.store.is_full = true;
    const queue::Sequence before = world->server.engine.last_sequence();
    client.say(each.what + "\r\n");
    EXPECT_EQ(world->server.engine.last_sequence(), before) << each.what;
  }
}

}  // namespace
}  // namespace carillon::server
