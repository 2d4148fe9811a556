// The files of the program: the console, and what describes the API (routes.h).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "server/http/problem.h"
#include "server/http/routes.h"
#include "server/http/web.h"

namespace carillon::server::http {

namespace {

// No page of the server loads anything from elsewhere, or is shown within another site. One that
// has opened it gets no hold of its window (Cross-Origin-Opener-Policy).
constexpr std::string_view kPolicy =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

// A browser asks each time whether its copy is still right, and gets 304 if it is.
void answer_file(RequestContext& x, std::string_view name) {
  const WebFile* const file = find_web_file(name);
  if (file == nullptr) throw Problem(kNotFound, fmt::format("there is no file {}", name));
  const bool packed = x.request.header("accept-encoding").find("gzip") != std::string_view::npos;
  const std::string tag = fmt::format("\"{}{}\"", file->tag, packed ? "-gzip" : "");
  Reply reply{.type = file->type,
              .headers = {{"Cache-Control", "no-cache"},
                          {"ETag", tag},
                          {"Vary", "Accept-Encoding"},
                          {"Content-Security-Policy", std::string(kPolicy)},
                          {"Cross-Origin-Opener-Policy", "same-origin"}}};
  const std::string_view known = x.request.header("if-none-match");
  if (known == "*" || known.find(tag) != std::string_view::npos) {
    reply.status = 304;
  } else {
    const std::string_view body = packed ? file->gzip : file->text;
    x.hold(body.size());
    reply.body = body;
    if (packed) reply.headers.emplace_back("Content-Encoding", "gzip");
  }
  x.answer(std::move(reply));
}

}  // namespace

const WebFile* find_web_file(std::string_view name) {
  const auto files = web_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [name](const WebFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

void answer_openapi(RequestContext& x) {
  answer_file(x, "openapi.json");
}

void answer_docs(RequestContext& x) {
  answer_file(x, "docs.html");
}

void answer_console(RequestContext& x) {
  answer_file(x, "index.html");
}

void answer_console_file(RequestContext& x) {
  answer_file(x, x.names.front());
}

}  // namespace carillon::server::http
