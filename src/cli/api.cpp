// Requests from rows, and errors from problems (api.h).
#include "cli/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "cli/json_fields.h"
#include "server/api/operation.h"
#include "server/api/operations.h"
#include "server/net/client_connection.h"
#include "server/text/json_value.h"
#include "server/text/whole_number.h"

namespace carillon::cli {

namespace json = boost::json;

namespace {

std::vector<server::FieldFault> faults_of(const json::object& problem) {
  std::vector<server::FieldFault> faults;
  const json::value* const found = problem.if_contains("errors");
  if (found == nullptr || !found->is_array()) return faults;
  for (const json::value& fault : found->get_array()) {
    if (fault.is_object())
      faults.push_back(
          {text_in(fault.get_object(), "pointer"), text_in(fault.get_object(), "detail")});
  }
  return faults;
}

// Returns the text of a document of RFC 9457: each field that is wrong, or the detail.
std::string reason_of(const json::object& problem, const std::vector<server::FieldFault>& faults,
                      unsigned status) {
  std::string reason;
  for (const server::FieldFault& fault : faults)
    reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ", fault.pointer, fault.detail);
  if (reason.empty()) reason = text_in(problem, "detail");
  return reason.empty() ? fmt::format("HTTP {}", status) : reason;
}

// Returns the document of RFC 9457, or an empty object if the answer is no such document.
json::object problem_of(const server::HttpAnswer& answer) {
  boost::system::error_code error;
  json::value document = json::parse(answer.body, error);
  return !error && document.is_object() ? std::move(document.get_object()) : json::object();
}

[[noreturn]] void throw_problem(const std::string& peer, const server::HttpAnswer& answer,
                                bool has_token) {
  const json::object problem = problem_of(answer);
  std::vector<server::FieldFault> faults = faults_of(problem);
  std::string reason = reason_of(problem, faults, answer.status);
  if (answer.status == 401) {
    const bool is_unknown = reason == "the server knows no such token";
    reason = is_unknown  ? fmt::format("{} does not know the token", peer)
             : has_token ? fmt::format("{}: {}", peer, reason)
                         : fmt::format("{}: a token is needed: see --token-file", peer);
  } else if (answer.status == 403) {
    reason = fmt::format("{} refuses it: {}", peer, reason);
  } else if (answer.status >= 500) {
    reason = fmt::format("{}: {}", peer, reason);
  } else if (problem.empty()) {  // a port that speaks TLS says so in plain text
    const std::string line =
        answer.body.substr(0, std::min<std::size_t>(answer.body.find_first_of("\r\n"), 200));
    const bool is_tls = line.starts_with("This port speaks TLS");
    reason = fmt::format("{}: {}", peer,
                         is_tls         ? "it speaks TLS: see --tls"
                         : line.empty() ? reason
                                        : line);
  }
  if (answer.status >= 500) throw ServerFailed(reason, answer.status);
  throw Refusal(reason, answer.status, std::move(faults));
}

std::optional<std::chrono::seconds> rest_of(const server::HttpAnswer& answer) {
  const auto seconds = server::whole_number<unsigned>(answer.retry_after);
  if (answer.status != 503 || !seconds) return std::nullopt;
  return std::chrono::seconds(std::max(*seconds, 1u));
}

}  // namespace

std::string url_part(std::string_view text) {
  std::string part;
  for (const char byte : text) {
    const bool stays = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
                       byte == '~';
    part += stays ? std::string(1, byte)
                  : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  }
  return part;
}

void throw_no_tube(const Refusal& refusal, std::string_view tube, std::string_view advice) {
  if (refusal.status != 404) throw refusal;
  throw no_such_tube(tube, advice);
}

Api::Api(ServerAddress server, int interrupt_fd)
    : server_(std::move(server)), interrupt_fd_(interrupt_fd), token_(server_.token()) {}

server::HttpAnswer Api::send(std::string_view method, const std::string& target,
                             const std::string& body) {
  // The server knows itself by this name, whatever it is called here.
  server::HttpRequest request{
      .method = method, .target = target, .headers = {{"Host", "localhost"}}, .body = body};
  if (token_) request.headers.emplace_back("Authorization", "Bearer " + *token_);
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  std::chrono::seconds rested{0};
  while (true) {
    if (!stream_ || !stream_->is_open())
      stream_.emplace(Stream::connect_http(server_, interrupt_fd_));
    server::HttpAnswer answer;
    try {
      answer = stream_->ask(request, patience_);
    } catch (...) {
      stream_.reset();  // an answer may be half read
      throw;
    }
    const auto rest = rest_of(answer);
    if (!rest || rested + *rest > longest_rest_) return answer;
    notice_.before(*rest, fmt::format("{}: {}", stream_->peer(),
                                      reason_of(problem_of(answer), {}, answer.status)));
    stream_->rest(*rest);
    rested += *rest;
  }
}

std::string Api::fetch(std::string_view method, const std::string& target,
                       const std::string& body) {
  server::HttpAnswer answer = send(method, target, body);
  if (answer.status / 100 != 2) throw_problem(stream_->peer(), answer, token_.has_value());
  return std::move(answer.body);
}

json::object Api::ask(std::string_view method, const std::string& target,
                      const json::object& body) {
  const bool has_body = method != "GET" && method != "DELETE";
  const std::string text = fetch(method, target, has_body ? server::json_text(body) : "");
  if (text.empty()) return {};
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (!error && value.is_object()) return std::move(value.get_object());
  throw Failure(fmt::format("{} answers no JSON to {} {}", stream_->peer(), method, target));
}

json::object Api::ask_row(std::string_view name, const server::Shape& shape, const void* request) {
  const server::Operation& row = server::operation_named(name);
  json::object fields = server::write_fields(shape, request);
  std::string target;
  std::string_view left = row.path;
  while (!left.empty()) {
    const std::size_t begin = std::min(left.find('{'), left.size());
    target += left.substr(0, begin);
    left.remove_prefix(begin);
    if (left.empty()) break;
    const std::string_view field = left.substr(1, left.find('}') - 1);
    target += url_part(text_of(fields.at(field)));
    fields.erase(field);
    left.remove_prefix(field.size() + 2);
  }
  if (row.has_query()) {
    char before = '?';
    for (const auto& [key, value] : fields) {
      target += fmt::format("{}{}={}", std::exchange(before, '&'), std::string_view(key),
                            url_part(text_of(value)));
    }
    fields.clear();
  }
  return ask(row.method, target, fields);
}

void Api::exchange(std::string_view name, const server::Shape& shape, const void* request,
                   const server::Shape* answer_shape, void* answer) {
  const json::object answered = ask_row(name, shape, request);
  if (answer_shape == nullptr) return;
  server::Reader reader(server::Source::kAnswer);
  server::read_fields(reader, *answer_shape, answered, answer);
  if (!reader.faults().empty()) {
    throw Failure(fmt::format("{} answers {} with {}: {}", stream_->peer(), name,
                              reader.faults().front().pointer, reader.faults().front().detail));
  }
}

bool Api::read_pages(const std::string& target, std::string token,
                     const std::function<bool(json::object& page)>& take) {
  const std::string_view before = target.find('?') == target.npos ? "?" : "&";
  while (true) {
    json::object page = get(
        token.empty() ? target : fmt::format("{}{}page_token={}", target, before, url_part(token)));
    const json::value next = page.at("next_page_token");
    if (!take(page)) return next.is_string();
    if (!next.is_string()) return false;
    token = std::string(next.get_string());
  }
}

void Api::confirm_connection() {
  if (!stream_ || !stream_->is_open()) {
    throw Unavailable(fmt::format("lost the connection to {}: closed by the server",
                                  server::to_string(server_.http_address())));
  }
}

}  // namespace carillon::cli
