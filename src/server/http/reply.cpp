// Replies as bytes (reply.h).
#include "server/http/reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <iterator>

namespace carillon::server::http {

std::string head_of(const Reply& reply, bool keep_alive) {
  std::string head;
  const auto out = std::back_inserter(head);
  const std::string_view reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(reply.status));
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", reply.status, reason);
  // These have no body, and no length either (RFC 9110, section 8.6).
  if (reply.status != 204 && reply.status != 304)
    fmt::format_to(out, "Content-Length: {}\r\n", reply.body.size());
  if (!reply.body.empty()) fmt::format_to(out, "Content-Type: {}\r\n", reply.type);
  for (const auto& [name, value] : reply.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  // The numbers and jobs of a moment: no cache may keep them, unless the reply says so.
  const auto& headers = reply.headers;
  if (std::none_of(headers.begin(), headers.end(),
                   [](const auto& one) { return one.first == "Cache-Control"; }))
    head += "Cache-Control: no-store\r\n";
  head += "X-Content-Type-Options: nosniff\r\n";
  if (!keep_alive) head += "Connection: close\r\n";
  head += "\r\n";
  return head;
}

std::string_view head_of_events() {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
         "X-Content-Type-Options: nosniff\r\nX-Accel-Buffering: no\r\nConnection: close\r\n\r\n";
}

}  // namespace carillon::server::http
