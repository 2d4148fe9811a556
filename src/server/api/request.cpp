// Headers and query of a request (request.h).
#include "server/api/request.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <utility>

namespace carillon::server {

namespace {

std::string_view find(const std::vector<std::pair<std::string, std::string>>& in,
                      std::string_view name) {
  const auto found =
      std::find_if(in.begin(), in.end(), [name](const auto& one) { return one.first == name; });
  return found == in.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  return find(headers, name);
}

bool Request::is_of_type(std::string_view type) const {
  return boost::beast::iequals(media_type(), type);
}

std::string_view Request::media_type() const {
  const std::string_view type = header("content-type");
  return type.substr(0, type.find_first_of("; \t"));
}

std::string_view Request::asked(std::string_view name) const {
  return find(query, name);
}

std::size_t Request::memory() const {
  std::size_t bytes = body.capacity() + path.capacity();
  for (const auto* const pairs : {&query, &headers})
    for (const auto& [name, value] : *pairs)
      bytes += 2 * sizeof(std::string) + name.capacity() + value.capacity();
  return bytes;
}

}  // namespace carillon::server
