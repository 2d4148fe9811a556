// OperationWorld: a server without sockets, with what the samples of operations.json name.
//
// operations.json is the only table of samples. It has each operation by its name, with its scope,
// and what its row in src/server/api does not tell:
//   scope      the scope that it needs (none: "")
//   of_no_tube a token that is good for another tube may ask for it
//   path       what is sent instead of the path of the row with the names below
//   body       what is sent; nothing without it
//   before     requests before it
//   in_memory  its status in a server that has no files and pushes nothing, if it is no success
//   also       further requests after it to a real server (openapi_test.py)
// Names in braces are filled in:
//   {tube}               a tube
//   {id} {key} {group}   a delayed job in the tube, with its key and its group
//   {held} {token}       a job that is reserved, and its lease
//   {name}               a schedule, and an endpoint
//   {file}               a file of the console
#pragma once

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/routes.h"
#include "server/http/session.h"
#include "test_server.h"

namespace carillon::server::http {

class OperationWorld {
 public:
  struct Asked {
    std::string method, path, body;
    int status = 0;  // 0: one of success
  };

  explicit OperationWorld(const ServiceOptions& options = {}) : server(options) {
    ask({"POST", "/v1/tubes/t/jobs", R"({"key":"k","group":"g","due":4102444800500})"});
    ask({"POST", "/v1/tubes/t/jobs", R"({"key":"held"})"});
    const std::string reserved = ask({"POST", "/v1/tubes/t:reserve", ""});
    const std::string_view field = R"("lease":")";
    const std::size_t at = reserved.find(field) + field.size();
    lease_ = reserved.substr(at, reserved.find('"', at) - at);
    for (const Route& route : routes())
      if (route.method == "PUT" && route.pattern.ends_with("/{name}")) ask(sample_of(route));
    server.service.long_changes().begin({.list = {.tube = "t"}, .dry_run = true}, server.now);
  }

  // Returns the request that is the sample of the route; sends what must come before it.
  Asked sample_of(const Route& route) {
    const boost::json::object& all = samples();
    Asked asked{std::string(route.method), std::string(route.pattern), ""};
    const auto* const named = route.operation ? all.if_contains(route.operation->name) : nullptr;
    if (named != nullptr) {
      const boost::json::object& sample = named->as_object();
      if (const auto* const path = sample.if_contains("path")) asked.path = path->as_string();
      if (const auto* const body = sample.if_contains("body"))
        asked.body = boost::json::serialize(*body);
      if (const auto* const status = sample.if_contains("in_memory"))
        asked.status = status->to_number<int>();
      if (const auto* const before = sample.if_contains("before"))
        for (const boost::json::value& one : before->as_array())
          ask({std::string(one.at(0).as_string()), filled(std::string(one.at(1).as_string())), ""});
    }
    asked.path = filled(std::move(asked.path));
    asked.body = filled(std::move(asked.body));
    return asked;
  }

  // Returns the reply; nothing if it waits. Each request has a connection of its own.
  std::string ask(const Asked& asked, const std::string& token = "admin") {
    Session session(server.service, names_);
    return send(session, asked, token);
  }
  static std::string send(Session& session, const Asked& asked, const std::string& token) {
    std::string request = asked.method + " " + asked.path + " HTTP/1.1\r\nHost: localhost\r\n";
    if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
    if (!asked.body.empty()) request += "Content-Type: application/json\r\n";
    request += "Content-Length: " + std::to_string(asked.body.size()) + "\r\n\r\n" + asked.body;
    do request.erase(0, session.receive(request, UINT64_MAX));
    while (session.wants() == Protocol::Wants::kTurn);
    std::string reply(session.replies().sendable(UINT64_MAX));
    session.replies().sent(reply.size());
    return reply;
  }

  static const boost::json::object& samples() {
    static const boost::json::value all = [] {
      std::ifstream file(CARILLON_OPERATIONS);
      return boost::json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
    }();
    return all.as_object();
  }

  beanstalk::TestServer server;

 private:
  std::string filled(std::string text) const {
    const std::pair<std::string_view, std::string_view> names[] = {
        {"{tube}", "t"}, {"{id}", "1"},       {"{key}", "k"},  {"{group}", "g"},
        {"{name}", "n"}, {"{token}", lease_}, {"{held}", "2"}, {"{file}", "app.js"}};
    for (const auto& [name, is] : names)
      for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name))
        text.replace(at, name.size(), is);
    return text;
  }

  std::vector<std::string> names_;
  std::string lease_;
};

}  // namespace carillon::server::http
