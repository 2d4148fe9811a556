// The files inside the program: the console, and the description of the API (routes.h).
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "server/api/operations.h"
#include "server/api/problem.h"
#include "server/http/routes.h"
#include "server/http/web.h"

namespace carillon::server::http {

namespace {

// Pages of the server load nothing from elsewhere, and no other site may show them in a frame. A
// site that opens one gets no access to its window (Cross-Origin-Opener-Policy).
constexpr std::string_view kPolicy =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

// A browser asks each time whether its copy is still current, and gets 304 if it is.
void answer_file(RequestContext& x, const WebFile& file) {
  const bool packed = !file.gzip.empty() &&
                      x.request.header("accept-encoding").find("gzip") != std::string_view::npos;
  const std::string tag = fmt::format("\"{}{}\"", file.tag, packed ? "-gzip" : "");
  Reply reply{.type = file.type,
              .headers = {{"Cache-Control", "no-cache"},
                          {"ETag", tag},
                          {"Vary", "Accept-Encoding"},
                          {"Content-Security-Policy", std::string(kPolicy)},
                          {"Cross-Origin-Opener-Policy", "same-origin"}},
              .at_once = true};
  const std::string_view known = x.request.header("if-none-match");
  if (known == "*" || known.find(tag) != std::string_view::npos) {
    reply.status = 304;
  } else {
    const std::string_view body = packed ? file.gzip : file.text;
    x.hold(body.size());
    reply.body = body;
    if (packed) reply.headers.emplace_back("Content-Encoding", "gzip");
  }
  x.answer(std::move(reply));
}

void answer_file(RequestContext& x, std::string_view name) {
  const WebFile* const file = find_web_file(name);
  if (file == nullptr) throw Problem(kNotFound, fmt::format("there is no file {}", name));
  answer_file(x, *file);
}

}  // namespace

const WebFile* find_web_file(std::string_view name) {
  const auto files = web_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [name](const WebFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

const std::string& openapi_text() {
  static const std::string text = [] {
    boost::json::value document = boost::json::parse(find_web_file("openapi.json")->text);
    describe(operations(), document.as_object());
    return boost::json::serialize(document);
  }();
  return text;
}

void answer_openapi(RequestContext& x) {
  static const std::string tag = fmt::format("{:016x}", std::hash<std::string>()(openapi_text()));
  answer_file(
      x,
      {.name = "openapi.json", .type = kJsonType, .tag = tag, .text = openapi_text(), .gzip = {}});
}

void answer_docs(RequestContext& x) {
  answer_file(x, "docs.html");
}

void answer_console(RequestContext& x) {
  answer_file(x, "index.html");
}

void answer_console_file(RequestContext& x) {
  if (x.names.front() == "openapi.json") return answer_openapi(x);
  answer_file(x, x.names.front());
}

}  // namespace carillon::server::http
