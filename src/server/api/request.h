// A request to the API, whatever has brought it: what it asks for, and with which body.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::server {

struct Request {
  std::string method;  // in capital letters: GET
  // As it came: names in it may be percent-encoded (decoded()).
  std::string path;
  // Of the part after the question mark, decoded.
  std::vector<std::pair<std::string, std::string>> query;
  // The names in small letters.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // The client wants to send another request through the connection.
  bool keep_alive = true;

  // About how many bytes of memory it takes.
  std::size_t memory() const;
  // Returns the value of the header, or of the query's name; an empty text if there is none.
  // `name` is in small letters.
  std::string_view header(std::string_view name) const;
  // Returns the Content-Type without its parameters.
  std::string_view media_type() const;
  std::string_view asked(std::string_view name) const;
};

}  // namespace carillon::server
