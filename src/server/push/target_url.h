// The URL of an endpoint, taken apart.
//
//   parse_target("https://example.com/hook?a=1");   // is_tls, "example.com", "443", "/hook?a=1"
//
// Thread safety: pure.
#pragma once

#include <string>
#include <string_view>

namespace carillon::server::push {

inline constexpr std::size_t kMostUrlBytes = 2'000;

struct TargetUrl {
  bool is_tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::string port;
  std::string authority;  // for the header Host
  std::string path;       // with the query

  friend bool operator==(const TargetUrl&, const TargetUrl&) = default;
};

// Throws std::invalid_argument, with a text that says what is wrong.
TargetUrl parse_target(std::string_view url);

}  // namespace carillon::server::push
