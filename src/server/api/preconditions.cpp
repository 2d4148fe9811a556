// Preconditions and entity tags (preconditions.h).
#include "server/api/preconditions.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "carillon/queue/engine.h"
#include "server/api/problem.h"

namespace carillon::server {

namespace {

// Returns the first part of a tag, with its quote: "\"0123-".
std::string begin_of_tag(std::string_view settings) {
  return fmt::format("\"{:016x}-", std::hash<std::string_view>()(settings));
}

// Returns true if the row names the header, or a form of it: If-None-There is an If-None-Match that
// takes * alone.
bool honours(const Operation& operation, std::string_view header) {
  return operation.reads_header(header == "if-match" ? "If-Match" : "If-None-Match") ||
         (header == "if-none-match" && operation.reads_header("If-None-There"));
}

Problem not_honoured(const Operation& operation, std::string_view header) {
  return Problem(kNoPrecondition, fmt::format("{} {} honours no {}; send it without",
                                              operation.method, operation.path, header));
}

}  // namespace

// A browser asks for a file with the tags that it knows, and for nothing else: what has no tag is
// new to it.
void refuse_preconditions(const Request& request, const Operation* operation) {
  if (operation == nullptr) return;
  for (const auto& [name, value] : request.headers) {
    if (name == "if-unmodified-since" && operation->method != "GET")
      throw not_honoured(*operation, "If-Unmodified-Since, as nothing here has a date");
    if (name != "if-match" && name != "if-none-match") continue;
    const std::string_view shown = name == "if-match" ? "If-Match" : "If-None-Match";
    if (!honours(*operation, name)) throw not_honoured(*operation, shown);
    if (value.empty())
      throw Problem(kBadRequest, fmt::format("{} is empty; write an entity tag, or *", shown));
    const bool only_all = name == "if-none-match" && operation->reads_header("If-None-There");
    if (only_all && value != "*")
      throw Problem(kBadRequest, fmt::format("If-None-Match: {}: write * here", value));
  }
}

bool is_known(const Request& request, std::string_view tag) {
  const std::string_view known = request.header("if-none-match");
  return request.method == "GET" && (known == "*" || known.find(tag) != std::string_view::npos);
}

bool names_tag(std::string_view list, std::string_view tag) {
  for (std::size_t at = list.find(tag); at != list.npos; at = list.find(tag, at + 1))
    if (!list.substr(0, at).ends_with("W/")) return true;
  return false;
}

void require_match(const Request& request, std::string_view settings, std::string_view what) {
  const std::string_view wanted = request.header("if-match");
  if (wanted.empty() || wanted == "*" || names_tag(wanted, begin_of_tag(settings))) return;
  throw Problem(kChanged, fmt::format("{} has other settings now than {}", what, wanted));
}

void require_no_match(const Request& request, std::string_view what) {
  if (!request.header("if-match").empty())
    throw Problem(kChanged, fmt::format("{} is not there", what));
}

void require_new(const Request& request, bool is_there, std::string_view what) {
  if (is_there && request.header("if-none-match") == "*")
    throw Problem(kChanged, fmt::format("{} is there already", what));
}

void answer_tagged(RequestContext& x, unsigned status, std::string body,
                   std::string_view settings) {
  std::string tag =
      fmt::format("{}{:016x}\"", begin_of_tag(settings), std::hash<std::string>()(body));
  const bool is_old = is_known(x.request, tag);
  Reply reply{.status = is_old ? 304 : status, .durable_at = x.engine().last_sequence()};
  if (!is_old) reply.body = std::move(body);
  reply.headers.emplace_back("ETag", std::move(tag));
  x.answer(std::move(reply));
}

}  // namespace carillon::server
