// A request to the API, independent of the connection that brought it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::server {

struct Request {
  std::string method;  // in capital letters: GET
  // The path as it came: names in it may be percent-encoded (decoded()).
  std::string path;
  // The names and values after the question mark, decoded.
  std::vector<std::pair<std::string, std::string>> query;
  // Names are in small letters.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // The client wants to send another request through the connection.
  bool keep_alive = true;

  // Returns about how many bytes of memory the request takes.
  std::size_t memory() const;
  // These return the value of the header, or of the name in the query; an empty text if the request
  // has no such header or name. `name` is in small letters.
  std::string_view header(std::string_view name) const;
  // Returns the Content-Type without its parameters.
  std::string_view media_type() const;
  std::string_view asked(std::string_view name) const;
};

}  // namespace carillon::server
