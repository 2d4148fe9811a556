// One attempt to push a job: the request, and its result (post_connection.h).
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace carillon::server::push {

struct PostRequest {
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct PostResult {
  // 0: there is no answer, and `error` says why.
  unsigned status = 0;
  std::string error = {};
  std::string excerpt = {};  // the beginning of the answer's body
  std::string retry_after = {};
  std::chrono::nanoseconds took{};
};

}  // namespace carillon::server::push
