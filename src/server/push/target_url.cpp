// The URL of an endpoint, by Boost.URL (target_url.h).
#include "server/push/target_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <system_error>

namespace carillon::server::push {

namespace {

// Boost.URL takes 99999 for a number of 16 bits.
bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && rest == end && port > 0;
}

}  // namespace

TargetUrl parse_target(std::string_view url) {
  const auto fail = [](const std::string& why) { throw std::invalid_argument(why); };
  if (url.size() > kMostUrlBytes)
    fail(fmt::format("the URL has {} bytes; the limit is {}", url.size(), kMostUrlBytes));
  const auto parsed = boost::urls::parse_uri({url.data(), url.size()});
  if (!parsed) fail("not a URL: write http://HOST/PATH or https://HOST/PATH");
  const boost::urls::url_view view = *parsed;
  const bool is_tls = view.scheme_id() == boost::urls::scheme::https;
  if (!is_tls && view.scheme_id() != boost::urls::scheme::http)
    fail("the scheme of the URL is neither http nor https");
  if (view.has_userinfo()) fail("the URL has a user or a password: use a header instead");
  if (view.has_fragment()) fail("the URL has a fragment (#), which no server gets to see");
  const std::string host(view.host_address());
  if (host.empty()) fail("the URL has no host");
  if (!std::all_of(host.begin(), host.end(), [](char byte) { return byte > ' ' && byte <= '~'; }))
    fail("the host of the URL has a sign that no name has");
  if (view.has_port() && !is_port(view.port())) fail("the port is not a number from 1 to 65535");
  TargetUrl target;
  target.is_tls = is_tls;
  target.host = host;
  target.port = view.has_port() ? std::string(view.port()) : is_tls ? "443" : "80";
  target.authority = std::string(view.encoded_host_and_port());
  target.path = std::string(view.encoded_resource());
  if (!target.path.starts_with('/')) target.path.insert(0, "/");
  return target;
}

}  // namespace carillon::server::push
