// What describes the API: for programs, and for people (routes.h).
#include <string>

#include "server/http/routes.h"
#include "server/http/web.h"

namespace carillon::server::http {

void answer_openapi(Exchange& x) {
  x.answer({.body = std::string(openapi_json())});
}

// No page of the server loads anything from elsewhere, or is shown within another site.
void answer_docs(Exchange& x) {
  x.answer({.type = "text/html; charset=utf-8",
            .body = std::string(docs_html()),
            .headers = {{"Content-Security-Policy",
                         "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"}}});
}

void answer_docs_script(Exchange& x) {
  x.answer({.type = "text/javascript; charset=utf-8", .body = std::string(docs_js())});
}

void answer_docs_style(Exchange& x) {
  x.answer({.type = "text/css; charset=utf-8", .body = std::string(docs_css())});
}

}  // namespace carillon::server::http
