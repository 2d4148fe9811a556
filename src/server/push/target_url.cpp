// The URL of an endpoint: its host by split_authority(), the rest by Boost.URL (target_url.h).
#include "server/push/target_url.h"

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <boost/url/parse.hpp>
#include <stdexcept>

#include "server/text/address.h"

namespace carillon::server::push {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why);
}

Authority split(std::string_view authority) {
  try {
    return split_authority(authority);
  } catch (const std::invalid_argument& error) {
    refuse(fmt::format("\"{}\": {}", authority, error.what()));
  }
}

std::string port_of(const Authority& at, bool is_tls) {
  if (!at.port) return is_tls ? "443" : "80";
  const auto port = read_port(*at.port);
  if (!port || *port == 0)
    refuse(fmt::format("\"{}\": the port is not a number from 1 to 65535", *at.port));
  return std::to_string(*port);
}

}  // namespace

TargetUrl parse_target(std::string_view url) {
  using boost::beast::iequals;
  if (url.size() > kMostUrlBytes)
    refuse(fmt::format("the URL has {} bytes; the limit is {}", url.size(), kMostUrlBytes));
  const auto parts = split_url(url);
  if (!parts) refuse("not a URL: write http://HOST/PATH or https://HOST/PATH");
  TargetUrl target;
  target.is_tls = iequals(parts->scheme, "https");
  if (!target.is_tls && !iequals(parts->scheme, "http"))
    refuse("the scheme of the URL is neither http nor https");
  const Authority at = split(parts->authority);
  target.host = at.host;
  target.port = port_of(at, target.is_tls);
  target.authority = parts->authority;
  target.path = parts->resource;
  if (!target.path.starts_with('/')) target.path.insert(0, "/");
  if (target.path.find('#') != std::string::npos)
    refuse("the URL has a fragment (#), which no server gets to see");
  if (!boost::urls::parse_origin_form(target.path))
    refuse(
        fmt::format("\"{}\": no path of a URL; write what is special in it as %XX", target.path));
  return target;
}

}  // namespace carillon::server::push
