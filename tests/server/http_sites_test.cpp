// Which senders of a request are let in: pages of this server, links of others, and everybody who
// knows its name.
#include <string>
#include <string_view>

#include "http_fixture.h"

namespace carillon::server::http {
namespace {

constexpr std::string_view kLink =
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";

TEST_F(HttpSession, RefusesPagesOfOtherSites) {
  EXPECT_EQ(ask("POST", "/v1/tubes/t/jobs", "x", "Origin: https://evil.example\r\n").status, 403);
  EXPECT_EQ(ask("POST", "/v1/tubes/t/jobs", "x", "Sec-Fetch-Site: cross-site\r\n").status, 403);
  EXPECT_EQ(ask("POST", "/v1/tubes/t/jobs", "x", "Origin: http://localhost:11380\r\n").status, 201);
  feed("GET /v1/stats HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  std::string bytes = read();
  EXPECT_EQ(take_answer(bytes).status, 421);
  const auto host = [&](const std::string& name) {
    feed("GET /v1/stats HTTP/1.1\r\nHost: " + name + "\r\n\r\n");
    bytes = read();
    return take_answer(bytes).status;
  };
  for (const char* own : {"jobs.example.org:80", "Jobs.Example.ORG", "LOCALHOST:1", "[::1]",
                          "[::1]:7", "127.0.0.1:", "10.1.2.3"})
    EXPECT_EQ(host(own), 200) << own;
  for (const char* other : {"localhost:@evil.example", "localhost/evil", "localhost.evil.example",
                            "127.1", "[::1", "[::1]evil", "[evil]", "localhost:7:8",
                            "127.0.0.1.evil.example", "127.0.0.1:80.evil.example", "[::1%lo]",
                            "me@localhost", "%6cocalhost", "2130706433", "localhost:65536"})
    EXPECT_EQ(host(other), 421) << other;
}

// Such as a link in a mail.
TEST_F(HttpSession, ALinkOfAnotherSiteMayLeadToAPage) {
  for (const char* page : {"/", "/docs", "/console/app.js", "/readyz"})
    EXPECT_EQ(ask("GET", page, "", kLink).status, 200) << page;
  EXPECT_EQ(ask("HEAD", "/", "", kLink).status, 200);
  EXPECT_EQ(ask("GET", "/nothing", "", kLink).status, 404);
  EXPECT_NE(ask("GET", "/").head.find("Cross-Origin-Opener-Policy: same-origin\r\n"),
            std::string::npos);
}

TEST_F(HttpSession, ALinkOfAnotherSiteLeadsNowhereElse) {
  put(R"({"body":"a"})");
  for (const char* path : {"/v1/stats", "/v1/jobs/1", "/v1/jobs/1/body", "/v1/events", "/metrics"})
    EXPECT_EQ(ask("GET", path, "", kLink).status, 403) << path;
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    for (const char* path : {"/", "/v1/jobs/1"})
      EXPECT_EQ(ask(method, path, "{}", kLink).status, 403) << method << path;
  }
  EXPECT_EQ(ask("POST", "/v1/tubes/mail/jobs", "x", kLink).detail(),
            "a page of another site has sent the request");
  EXPECT_EQ(ask("GET", "/v1/jobs/1").value().at("state"), "ready");
}

TEST_F(HttpSession, AForeignPageHasNoPartOfThisServer) {
  const std::string site = "Sec-Fetch-Site: cross-site\r\n";
  for (const char* how :
       {"", "Sec-Fetch-Mode: navigate\r\n",
        "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n",
        "Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script\r\n",
        "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n",
        "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\nOrigin: null\r\n"})
    EXPECT_EQ(ask("GET", "/console/app.js", "", site + how).status, 403) << how;
}

// RFC 9112, 3.2.2.
TEST_F(HttpSession, TheHostOfAWholeAddressCounts) {
  const auto get = [&](const std::string& address, const std::string& headers) {
    feed("GET " + address + " HTTP/1.1\r\n" + headers + "\r\n");
    std::string bytes = read();
    return take_answer(bytes);
  };
  const std::string evil = "Host: evil.example\r\n";
  EXPECT_EQ(get("http://localhost:11380/healthz", evil).status, 200);
  EXPECT_EQ(get("http://localhost:11380", evil).head.substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_EQ(get("HTTPS://jobs.example.org/v1/jobs/7?x=1", evil).value().at("instance"),
            "/v1/jobs/7");
  EXPECT_EQ(get("http://evil.example/healthz", "Host: localhost\r\n").status, 421);
  for (const char* const address :
       {"http://127.0.0.1.evil.example/healthz", "http://127.0.0.1.evil.example:80/healthz"})
    EXPECT_EQ(get(address, "Host: localhost\r\n").status, 421) << address;
  EXPECT_EQ(get("http://localhost//localhost/healthz", evil).status, 404);
  for (const char* const address :
       {"http://localhost@evil.example/healthz", "http://127.1/healthz", "http:///healthz",
        "http://[::1%lo]/healthz", "http://a%2eb/healthz", "ftp://localhost/healthz"}) {
    Session other(server.service, names);
    speaker = &other;
    EXPECT_EQ(get(address, "Host: localhost\r\n").status, 400) << address;
    speaker = &session;
  }
}

TEST_F(HttpSession, TheOriginIsComparedWithTheHostOfAWholeAddress) {
  const auto post = [&](const std::string& origin) {
    feed("POST http://jobs.example.org/v1/tubes/t/jobs HTTP/1.1\r\nHost: localhost\r\nOrigin: " +
         origin + "\r\nContent-Length: 0\r\n\r\n");
    std::string bytes = read();
    return take_answer(bytes).status;
  };
  EXPECT_EQ(post("http://jobs.example.org"), 201);
  EXPECT_EQ(post("http://localhost"), 403);
}

}  // namespace
}  // namespace carillon::server::http
