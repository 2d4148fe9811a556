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

// The routes that are no rows. operations.json has the scopes of the rows: written down beside the
// table, so that a row that grants more by mistake is found.
const std::vector<Case> kRoutes = {
    {"GET /openapi.json", "", kOfNoTube},
    {"GET /docs", "", kOfNoTube},
    {"GET /", "", kOfNoTube},
    {"GET /console/{file}", "", kOfNoTube},
    {"GET /metrics", "read"},
    {"GET /v1/events", "read"},
};

// Returns none if nothing is written down.
std::optional<Case> case_of(const http::Route& route) {
  const std::string what = std::string(route.method) + " " + std::string(route.pattern);
  if (route.operation == nullptr) {
    const auto is_it = [&](const Case& each) { return each.what == what; };
    const auto found = std::find_if(kRoutes.begin(), kRoutes.end(), is_it);
    return found == kRoutes.end() ? std::nullopt : std::optional(*found);
  }
  const auto* const row = http::OperationWorld::samples().if_contains(route.operation->name);
  const auto* const scope = row != nullptr ? row->as_object().if_contains("scope") : nullptr;
  if (scope == nullptr) return std::nullopt;
  return Case{what, scope->as_string(), !row->as_object().contains("of_no_tube")};
}

TEST_F(Scopes, EachRouteHasItsScope) {
  std::size_t in_list = 0;
  for (const http::Route& route : http::routes()) {
    if (route.operation == nullptr) ++in_list;
    const std::optional<Case> found = case_of(route);
    ASSERT_TRUE(found) << route.method << " " << route.pattern
                       << ": write its scope into operations.json";
    const Case& tried = *found;
    expect_scope(tried, [&](const std::string& token) {
      const std::string reply = world->ask(world->sample_of(route), token);
      // A trial of an endpoint is waited for, and has no answer yet.
      const std::string status = reply.empty() ? "200" : reply.substr(9, 3);
      EXPECT_TRUE(token.empty() || status != "401") << tried.what << ": " << token;
      return status == (token.empty() ? "401" : "403");
    });
  }
  EXPECT_EQ(in_list, kRoutes.size()) << "a line is of no route";
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
