// One request to the server over HTTP, for commands that the beanstalk protocol has no verb for.
//
//   const HttpAnswer answer = ask_http(stream, {.target = "/v1/endpoints"}, token);
//   require_success(answer);          // throws Failure with what the server says is wrong
//
// Thread safety: as a Stream's.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/stream.h"

namespace carillon::cli {

struct HttpRequest {
  std::string method = "GET";
  std::string target;
  std::string json = {};  // the body; empty: none
  std::string host = "localhost";
};

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

// Sends the request over a stream of its own, with the token if there is one, and returns the
// answer. Throws as Stream does, and Failure if the other end does not speak HTTP.
HttpAnswer ask_http(Stream& stream, const HttpRequest& request,
                    const std::optional<std::string>& token, Patience patience = kPatience);

// Throws a Failure that has the server's reasons, unless the status is 2xx.
void require_success(const HttpAnswer& answer);

}  // namespace carillon::cli
