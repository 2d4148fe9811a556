// Replies as bytes (reply.h).
#include "server/http/reply.h"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <iterator>

namespace carillon::server::http {

std::string head_of(const Reply& reply, bool keep_alive) {
  std::string head;
  const auto out = std::back_inserter(head);
  const std::string_view reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(reply.status));
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", reply.status, reason);
  // A 204 has no body, and no length either (RFC 9110, section 8.6).
  if (reply.status != 204) fmt::format_to(out, "Content-Length: {}\r\n", reply.body.size());
  if (!reply.body.empty()) fmt::format_to(out, "Content-Type: {}\r\n", reply.type);
  for (const auto& [name, value] : reply.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  // The numbers and jobs of a moment: no cache may keep them.
  head += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
  if (!keep_alive) head += "Connection: close\r\n";
  head += "\r\n";
  return head;
}

}  // namespace carillon::server::http
