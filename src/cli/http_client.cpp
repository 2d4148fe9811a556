// Requests by hand, answers by Boost.Beast (http_client.h).
#include "cli/http_client.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json.hpp>

#include "cli/exit_status.h"

namespace carillon::cli {

namespace {

namespace http = boost::beast::http;
namespace json = boost::json;

constexpr std::uint64_t kLongestAnswer = 64 << 20;

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// What a document of RFC 9457 says: the detail, and each field that is wrong.
std::string reason_of(const HttpAnswer& answer) {
  boost::system::error_code error;
  const json::value document = json::parse(answer.body, error);
  const json::object* const problem = document.if_object();
  if (error || problem == nullptr) return fmt::format("HTTP {}", answer.status);
  std::string reason;
  if (const json::value* const faults = problem->if_contains("errors");
      faults != nullptr && faults->is_array()) {
    for (const json::value& fault : faults->get_array()) {
      if (!fault.is_object()) continue;
      reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ",
                            text_of(fault.get_object(), "pointer"),
                            text_of(fault.get_object(), "detail"));
    }
  }
  if (reason.empty()) reason = text_of(*problem, "detail");
  return reason.empty() ? fmt::format("HTTP {}", answer.status) : reason;
}

}  // namespace

HttpAnswer ask_http(Stream& stream, const HttpRequest& request,
                    const std::optional<std::string>& token, Patience patience) {
  std::string message = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
                                    request.method, request.target, request.host);
  if (token) message += fmt::format("Authorization: Bearer {}\r\n", *token);
  if (!request.json.empty()) message += "Content-Type: application/json\r\n";
  message += fmt::format("Content-Length: {}\r\n\r\n{}", request.json.size(), request.json);
  stream.send(message);
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.body_limit(kLongestAnswer);
  std::string bytes;
  while (!parser.is_done()) {
    bytes += stream.read_some(patience);
    boost::system::error_code error;
    bytes.erase(0, parser.put(boost::asio::buffer(bytes), error));
    if (error && error != http::error::need_more)
      throw Failure(fmt::format("{} does not speak HTTP: {}", stream.peer(), error.message()));
  }
  return {.status = parser.get().result_int(), .body = parser.get().body()};
}

void require_success(const HttpAnswer& answer) {
  if (answer.status / 100 != 2) throw Failure(reason_of(answer));
}

}  // namespace carillon::cli
