// The HTTP API of a server, as the commands use it (docs/http.md). Each operation has a row
// (server/api/operation.h), by which the request is written and the answer is read:
//
//   Api api(server);
//   const auto kicked = api.call<server::Kicked>("kickTube", server::KickTube{.tube = "mail"});
//   const json::object page = api.get("/v1/schedules");                    // by its path
//
// What the server refuses is an exception. A server that asks for some patience (503 with
// Retry-After) gets it, for five seconds in all; standard error says why.
//
// Not thread-safe.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/server_address.h"
#include "cli/stream.h"
#include "server/api/field.h"
#include "server/api/problem.h"

namespace carillon::server {
struct Operation;
}

namespace carillon::cli {

// The server has refused a request. The text says why.
struct Refusal : Failure {
  Refusal(const std::string& text, unsigned code, std::vector<server::FieldFault> wrong)
      : Failure(text), status(code), faults(std::move(wrong)) {}

  unsigned status;                         // the code of HTTP: 404
  std::vector<server::FieldFault> faults;  // the fields that are wrong
};

// The server has failed to answer.
struct ServerFailed : Unavailable {
  ServerFailed(const std::string& text, unsigned code) : Unavailable(text), status(code) {}

  unsigned status;  // 500 or more
};

// Throws what the refusal means to a command that has named a tube: no_such_tube() if it is a 404,
// else the refusal itself.
[[noreturn]] void throw_no_tube(const Refusal& refusal, std::string_view tube,
                                std::string_view advice = "");

class Api {
 public:
  // Does not connect yet. `interrupt_fd` as in Stream::interrupt_on().
  explicit Api(ServerAddress server, int interrupt_fd = -1);

  // Carries an operation out and returns what it answers. Throws Refusal, and what Stream throws.
  // REQUIRES: there is a row of this name, and it is for a Request and an Answer.
  template <class Answer, class Request>
  Answer call(std::string_view name, const Request& request) {
    Answer answer{};
    exchange(name, server::kShape<Request>, &request, &server::kShape<Answer>, &answer);
    return answer;
  }
  // The same, for an operation that answers nothing.
  template <class Request>
  void call(std::string_view name, const Request& request) {
    exchange(name, server::kShape<Request>, &request, nullptr, nullptr);
  }

  // The same; returns the object that was answered.
  boost::json::object ask_row(std::string_view name, const server::Shape& shape,
                              const void* request);

  // The same by method and path. Returns the object that was answered, or an empty one.
  boost::json::object ask(std::string_view method, const std::string& target,
                          const boost::json::object& body = {});
  boost::json::object get(const std::string& target) { return ask("GET", target); }
  // Returns the body of the answer, as it is.
  std::string fetch(std::string_view method, const std::string& target,
                    const std::string& body = {});

  // Calls take(page) with each page of a list, from the one that `token` names on, until there is
  // no other or it returns false. Returns true if some were left.
  bool read_pages(const std::string& target, std::string token,
                  const std::function<bool(boost::json::object& page)>& take);

  // From now on a server that is silent for longer has failed (Unavailable).
  void set_patience(Patience patience) { patience_ = patience; }
  // How long a server that asks for patience gets it; 0: it has failed (ServerFailed).
  void rest_at_most(std::chrono::seconds longest) { longest_rest_ = longest; }
  // Throws Unavailable if the connection of the last request was lost, with whatever lasts as long.
  void confirm_connection();

  const ServerAddress& server() const { return server_; }

 private:
  void exchange(std::string_view name, const server::Shape& shape, const void* request,
                const server::Shape* answer_shape, void* answer);
  server::HttpAnswer send(std::string_view method, const std::string& target,
                          const std::string& body);

  ServerAddress server_;
  int interrupt_fd_;
  Patience patience_ = kPatience;
  std::chrono::seconds longest_rest_{5};
  WaitNotice notice_;
  std::optional<std::string> token_;
  std::optional<Stream> stream_;
};

// Returns the text as a part of a path or of a query: what is not a letter, digit or -._~ as %XX.
std::string url_part(std::string_view text);

}  // namespace carillon::cli
