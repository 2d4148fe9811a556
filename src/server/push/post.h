// One attempt to push a job: what is sent, and what came of it (post_connection.h).
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
  std::string excerpt = {};  // of the body of the answer
  std::string retry_after = {};
  std::chrono::nanoseconds took{};
};

}  // namespace carillon::server::push
