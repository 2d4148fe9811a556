// What the fuzzers of HTTP do with an input: bytes go to an http::Session on a store in memory. A
// wrong input must be answered, and nothing may crash. The fuzzers (http_fuzzer.cpp,
// json_fuzzer.cpp) pass what libFuzzer makes up; corpus_test.cpp passes the corpus and changes
// of it in each run of the tests.
//
// Each function returns what is wrong, or an empty text.
#pragma once

#include <array>
#include <boost/json.hpp>
#include <cstddef>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "../test_server.h"
#include "server/http/session.h"

namespace carillon::server::http {

// Returns the replies to `bytes`, sent in pieces of `piece` bytes. The secrets of leases are left
// out, which are others each time.
inline std::string answer_http(std::string_view bytes, std::size_t piece) {
  beanstalk::TestServer server({.max_job_size = 1'000});
  const std::vector<std::string> names;
  std::string replies;
  {
    Session session(server.service, names);
    std::string unused;
    const auto go_on = [&] {
      for (int turns = 0; turns < 10'000; ++turns) {
        const std::size_t used = session.receive(unused, server.now.mono_ns + server.turn_ns);
        unused.erase(0, used);
        server.engine.advance(server.now);
        bool is_delivered = false;
        for (const queue::Delivery& delivery : server.engine.take_deliveries()) {
          if (server.service.leases().asker_of(delivery.client) != session.client()) continue;
          session.deliver(delivery);
          is_delivered = true;
        }
        const std::string_view ready = session.replies().sendable(UINT64_MAX);
        replies += ready;
        session.replies().sent(ready.size());
        const Protocol::Wants wants = session.wants();
        const bool goes_on = wants == Protocol::Wants::kTurn || wants == Protocol::Wants::kRoom;
        if (!goes_on && !is_delivered) return;
      }
      replies += "\nit does not come to an end";
    };
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      unused += bytes.substr(at, piece);
      go_on();
    }
    session.end_of_input();
    go_on();
  }
  server.engine.check_invariants();
  static const std::regex secret("-[0-9a-f]{32}\"");
  return std::regex_replace(replies, secret, "-\"");
}

// Returns the replies before the first refusal. A client that is refused may be closed sooner if
// its bytes come in pieces, and one that has not sent all of a request may be refused or not.
// "100 Continue" is left out: nobody is told so whose body is already there.
inline std::string comparable(const std::string& replies) {
  std::string part;
  for (std::size_t at = 0; at < replies.size();) {
    const std::size_t next = replies.find("HTTP/1.1 ", at + 1);
    const std::string_view reply =
        std::string_view(replies).substr(at, next == std::string::npos ? next : next - at);
    if (reply.size() < 12 || reply[9] >= '4') return part;
    if (reply[9] != '1') part.append(reply);
    at += reply.size();
  }
  return part;
}

// The first byte is the size of the pieces, less one, modulo 32.
inline std::string wrong_with_http(std::string_view input) {
  if (input.size() < 2) return {};
  const std::string_view bytes = input.substr(1);
  const std::string whole = answer_http(bytes, bytes.size());
  const std::string cut =
      answer_http(bytes, static_cast<unsigned char>(input[0]) % 32 + std::size_t{1});
  for (const std::string& replies : {whole, cut}) {
    if (!replies.empty() && !replies.starts_with("HTTP/1.1 ")) return "not HTTP: " + replies;
    if (replies.find("it does not come to an end") != std::string::npos) return replies;
    // With the end of its line: an answer may quote what the client has sent, but no end of a line.
    if (replies.find("HTTP/1.1 500 Internal Server Error\r\n") != std::string::npos)
      return "it has failed: " + replies;
  }
  const bool differs_anyway = bytes.find("/v1/stats") != std::string_view::npos ||
                              bytes.find("/metrics") != std::string_view::npos;
  if (differs_anyway || comparable(whole) == comparable(cut)) return {};
  return "the answer depends on how the bytes are cut:\n" + whole + "\n--- cut\n" + cut;
}

// Where JSON is read.
struct JsonPlace {
  std::string_view method;
  std::string_view path;
};
inline constexpr std::array kJsonPlaces = {
    JsonPlace{"POST", "/v1/tubes/mail/jobs"},
    JsonPlace{"POST", "/v1/tubes/mail/jobs:batch"},
    JsonPlace{"PUT", "/v1/tubes/mail/keys/k"},
    JsonPlace{"PATCH", "/v1/jobs/1"},
    JsonPlace{"POST", "/v1/jobs:cancel"},
    JsonPlace{"POST", "/v1/jobs:retry"},
    JsonPlace{"POST", "/v1/jobs:move"},
    JsonPlace{"PUT", "/v1/schedules/s"},
    JsonPlace{"POST", "/v1/tubes/mail:reserve"},
    JsonPlace{"PATCH", "/v1/tubes/mail"},
    JsonPlace{"PATCH", "/v1/tubes/mail/groups/g"},
    JsonPlace{"POST", "/v1/tubes/mail:pause"},
    JsonPlace{"POST", "/v1/tubes/mail:kick"},
    JsonPlace{"POST", "/v1/leases/1-1-00:nack"},
};

// The first byte says where the rest, JSON or not, is sent. Each request has one answer, which is
// JSON, too.
inline std::string wrong_with_json(std::string_view input) {
  if (input.empty()) return {};
  const JsonPlace& place = kJsonPlaces[static_cast<unsigned char>(input[0]) % kJsonPlaces.size()];
  const std::string_view body = input.substr(1);
  const auto request = [](const JsonPlace& to, std::string_view sent) {
    return std::string(to.method) + " " + std::string(to.path) +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(sent.size()) + "\r\n\r\n" + std::string(sent);
  };
  const std::string first = request(kJsonPlaces[0], R"({"body":"x","delay":"1h","group":"g"})");
  const std::string bytes =
      first + request(place, body) + "GET /v1/jobs/1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::string replies = answer_http(bytes, bytes.size());
  for (int n = 0; n < 3; ++n) {
    if (!replies.starts_with("HTTP/1.1 ")) return "too few answers: " + replies;
    if (replies[9] == '5') return "it has failed: " + replies;
    const std::size_t head = replies.find("\r\n\r\n") + 4;
    const std::size_t length = replies.find("Content-Length: ");
    const std::size_t size = length < head ? std::stoul(replies.substr(length + 16)) : 0;
    boost::json::error_code error;
    boost::json::parse(replies.substr(head, size), error);
    if (size > 0 && error) return "an answer is no JSON: " + replies;
    replies.erase(0, head + size);
  }
  return replies.empty() ? "" : "too many answers: " + replies;
}

}  // namespace carillon::server::http
