// HttpSession: a client of the HTTP API without a socket, on a server without sockets.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/leases.h"
#include "server/http/session.h"
#include "test_server.h"

namespace carillon::server::http {

namespace json = boost::json;

struct Answer {
  int status = 0;
  std::string head;
  std::string body;

  json::value value() const { return json::parse(body); }
  std::string detail() const { return std::string(value().at("detail").as_string()); }
};

class HttpSession : public ::testing::Test {
 protected:
  explicit HttpSession(queue::DiskStore* store = nullptr) : server({}, store) {
    server.service.set_durable([this] { return durable; });
  }

  // Passes all bytes to the session.
  void feed(std::string_view bytes) {
    unused_.append(bytes);
    do unused_.erase(0, speaker->receive(unused_, server.now.mono_ns + server.turn_ns));
    while (speaker->wants() == Protocol::Wants::kTurn);
  }

  std::string read() {
    const std::string bytes(speaker->replies().sendable(durable));
    speaker->replies().sent(bytes.size());
    return bytes;
  }

  // Moves both clocks on; waits of the session may end.
  void pass(queue::Millis ms) {
    server.now.utc_ns += ms * 1'000'000;
    server.now.mono_ns += ms * 1'000'000;
    server.engine.advance(server.now);
    deliver();
  }
  void deliver() {
    for (const queue::Delivery& delivery : server.engine.take_deliveries()) {
      if (server.service.leases().asker_of(delivery.client) == speaker->client())
        speaker->deliver(delivery);
    }
    feed("");
  }
  // Returns the reply that has come meanwhile.
  Answer next() {
    std::string bytes = read();
    return take_answer(bytes);
  }

  // Takes the first reply from the front of the bytes.
  static Answer take_answer(std::string& bytes) {
    Answer answer;
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string::npos) return answer;
    answer.head = bytes.substr(0, end + 2);
    answer.status = std::stoi(answer.head.substr(9, 3));
    std::size_t length = 0;
    const std::string_view field = "Content-Length: ";
    if (const std::size_t at = answer.head.find(field); at != std::string::npos)
      length = std::stoul(answer.head.substr(at + field.size()));
    answer.body = bytes.substr(end + 4, length);
    bytes.erase(0, end + 4 + length);
    return answer;
  }

  Answer ask(std::string_view method, std::string_view path, std::string_view body = "",
             std::string_view headers = "") {
    feed(std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: localhost:11380\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n" + std::string(headers) + "\r\n" +
         std::string(body));
    std::string bytes = read();
    return take_answer(bytes);
  }

  Answer put(std::string_view description, std::string_view tube = "mail") {
    return ask("POST", "/v1/tubes/" + std::string(tube) + "/jobs", description,
               "Content-Type: application/json\r\n");
  }

  beanstalk::TestServer server;  // its jobs are in memory alone unless there is another store
  std::vector<std::string> names = {"jobs.example.org"};
  Session session{server.service, names};
  // The one that sends and reads.
  Session* speaker = &session;
  queue::Sequence durable = UINT64_MAX;

 private:
  std::string unused_;
};

}  // namespace carillon::server::http
