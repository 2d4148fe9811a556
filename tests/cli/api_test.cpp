// Tests of the client of the HTTP API: the bytes of requests that rows make, and what answers mean.

#include "cli/api.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "cli/json_fields.h"
#include "cli/scripted_server.h"
#include "queue/temporary_directory.h"
#include "server/api/bulk.h"
#include "server/api/reports.h"
#include "server/api/tubes.h"

namespace carillon::cli {
namespace {

// Answers each request with the next text of its script, on a Unix socket; "" closes the connection
// instead.
class ScriptedHttp {
 public:
  explicit ScriptedHttp(std::vector<std::string> script) : script_(std::move(script)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    address().http->path.copy(name.sun_path, sizeof name.sun_path - 1);
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
    ::listen(listener_.get(), 8);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedHttp() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  ServerAddress address() const {
    ServerAddress address;
    address.path = directory_ / "none";
    address.http = server::Address{.host = {}, .port = 0, .path = directory_ / "http"};
    return address;
  }
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    std::size_t next = 0;
    while (next < script_.size()) {
      const base::FileDescriptor client(::accept(listener_.get(), nullptr, nullptr));
      if (!client) return;
      std::string request;
      while (next < script_.size() && read(client.get(), request)) {
        {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
        }
        const std::string& answer = script_[next++];
        if (answer.empty()) break;
        ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    }
  }
  // Returns false if the client has closed the connection.
  static bool read(int fd, std::string& request) {
    request.clear();
    std::size_t wanted = std::string::npos;
    while (request.size() < wanted) {
      std::array<char, 4096> buffer;
      const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (count <= 0) return false;
      request.append(buffer.data(), static_cast<std::size_t>(count));
      const std::size_t end = request.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const std::size_t length = request.find("Content-Length: ");
      wanted = end + 4 + (length < end ? std::stoul(request.substr(length + 16)) : 0);
    }
    return true;
  }

  queue::TemporaryDirectory directory_;
  std::vector<std::string> script_;
  base::FileDescriptor listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::mutex mutex_;
  std::vector<std::string> requests_;  // protected by mutex_
  std::thread thread_;
};

std::string answer(const std::string& status, const std::string& body,
                   const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(Api, FieldsOfARowGoIntoThePathTheQueryAndTheBody) {
  ScriptedHttp server(
      {answer("200 OK", R"({"kicked":3,"new_in_0.2":true})"),
       answer("200 OK", R"({"now":"2030-01-01T09:00:00.000Z","due":0,"delayed":5,"buried":0,)"
                        R"("spans":[],"later":5,"later_estimated":false})"),
       answer("204 No Content", "")});
  Api api(server.address());
  EXPECT_EQ(api.call<server::Kicked>("kickTube", server::KickTube{.tube = "a+b", .max = 7}).kicked,
            3U);
  server::GetDue due;
  due.tube = "mail";
  due.by = server::DueUnit::kHour;
  EXPECT_EQ(api.call<server::Due>("getDue", due).later, 5U);
  api.call("resumeTube", server::TubeName{.tube = "mail"});
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_TRUE(requests[0].starts_with("POST /v1/tubes/a%2Bb:kick HTTP/1.1\r\n")) << requests[0];
  EXPECT_TRUE(requests[0].ends_with("\r\n\r\n{\"max\":7}")) << requests[0];
  EXPECT_NE(requests[0].find("Host: localhost\r\n"), std::string::npos);
  EXPECT_TRUE(requests[1].starts_with("GET /v1/tubes/mail/due?by=hour HTTP/1.1\r\n"))
      << requests[1];
  EXPECT_TRUE(requests[2].starts_with("POST /v1/tubes/mail:resume HTTP/1.1\r\n")) << requests[2];
}

TEST(Api, ARefusalHasTheReasonAndTheFields) {
  ScriptedHttp server(
      {answer("404 Not Found", R"({"type":"/docs#not-found","detail":"there is no tube \"x\""})"),
       answer("400 Bad Request", R"({"detail":"/max: no","errors":[)"
                                 R"({"pointer":"/max","detail":"0: not a number"},)"
                                 R"({"pointer":"/due_by","detail":"there is no such field"}]})"),
       answer("401 Unauthorized", R"({"detail":"the server knows no such token"})"),
       answer("403 Forbidden", R"({"detail":"the token lacks the scope admin"})"),
       answer("400 Bad Request", "This port speaks TLS: write https, not http.\n"),
       answer("500 Internal Server Error", R"({"detail":"the disk has failed"})")});
  Api api(server.address());
  const std::string peer = to_string(*server.address().http) + " (HTTP)";
  const auto why = [&] { return failure_of([&] { api.get("/v1/stats"); }); };
  EXPECT_EQ(why(), "there is no tube \"x\"");
  try {
    api.get("/v1/stats");
    ADD_FAILURE();
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.status, 400U);
    EXPECT_STREQ(refusal.what(), "/max: 0: not a number; /due_by: there is no such field");
    EXPECT_EQ(refusal.faults.size(), 2u);
  }
  EXPECT_EQ(why(), peer + " does not know the token");
  EXPECT_EQ(why(), peer + " refuses it: the token lacks the scope admin");
  EXPECT_EQ(why(), peer + ": it speaks TLS: see --tls");
  EXPECT_EQ(why(), peer + ": the disk has failed");
}

TEST(Api, ABodyIsTextOrBase64) {
  const auto with_body = [](const std::string& body) {
    boost::json::object object;
    add_body(object, body);
    EXPECT_EQ(bytes_in(object, "body"), body);
    return boost::json::serialize(object);
  };
  EXPECT_EQ(with_body("hello"), R"({"body":"hello"})");
  EXPECT_EQ(with_body(""), R"({"body":""})");
  EXPECT_EQ(with_body(std::string("\"a\"\n\0b", 6)), R"({"body":"\"a\"\n\u0000b"})");
  EXPECT_EQ(with_body(std::string("\xFF\x00\x01", 3)), R"({"body_base64":"/wAB"})");
}

TEST(Api, AServerThatAsksForPatienceGetsIt) {
  ScriptedHttp server(
      {answer("503 Service Unavailable", R"({"detail":"wait"})", "Retry-After: 1\r\n"),
       answer("200 OK", R"({"status":"ready"})"),
       answer("503 Service Unavailable", R"({"detail":"it drains"})", "Retry-After: 3600\r\n")});
  Api api(server.address());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(api.get("/readyz").at("status"), "ready");
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  EXPECT_TRUE(failure_of([&] { api.get("/readyz"); }).ends_with(" (HTTP): it drains"));
}

TEST(Api, AConnectionThatTheServerHasClosedIsMadeAnew) {
  const std::string closes = answer("200 OK", R"({"n":1})", "Connection: close\r\n");
  ScriptedHttp server({closes, answer("200 OK", R"({"n":2})"), ""});
  Api api(server.address());
  EXPECT_EQ(api.get("/").at("n"), 1);
  EXPECT_EQ(api.get("/").at("n"), 2);
  api.confirm_connection();
  EXPECT_TRUE(
      failure_of([&] { api.ask("POST", "/"); }).starts_with("lost the connection to unix:"));
  EXPECT_THROW(api.confirm_connection(), Unavailable);
}

TEST(Api, OtherProtocolsAreNamed) {
  ScriptedHttp server({"UNKNOWN_COMMAND\r\n", answer("200 OK", "no JSON")});
  Api api(server.address());
  EXPECT_NE(failure_of([&] { api.get("/"); }).find(" (HTTP) does not speak HTTP: "),
            std::string::npos);
  EXPECT_TRUE(failure_of([&] { api.get("/x"); }).ends_with(" answers no JSON to GET /x"));
}

}  // namespace
}  // namespace carillon::cli
