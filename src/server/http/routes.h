// Finds the function that answers a request.
//
//   const Match match = find_route("POST", "/v1/jobs/17:kick");
//   match.route->answer == &kick_job; match.names == {"17"}
//
// A pattern has the parts of a path. A part in braces matches any text; a verb follows it after a
// colon. Each route declares the rights that it needs, and what may come with a request.
// check_input(), or read_request() for a row of the API, refuses everything else before the
// function sees it: nothing that a client has written is ignored. Thread safety: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/caller.h"
#include "server/api/operation.h"
#include "server/api/request_context.h"

namespace carillon::server::http {

struct Route {
  std::string_view method;
  std::string_view pattern;
  Rights rights;
  void (*answer)(RequestContext&);
  // The name of this operator's action in the audit; empty: the audit does not show it.
  std::string_view audited_as = {};
  // The only name that the query may have; empty: there is no query. A row says so by itself.
  std::string_view query = {};
  // Its row, if it has one (api/operation.h).
  const Operation* operation = nullptr;
};

// Returns all routes.
std::span<const Route> routes();

struct Match {
  const Route* route = nullptr;
  std::vector<std::string> names;
};

// Throws Problem if there is no such path, or if the path has no such method.
Match find_route(std::string_view method, std::string_view path);

// Throws Problem if the query has a name that the route does not know, or one twice, or if there is
// a body that is neither empty nor {}. For a row, read_request() does so.
void check_input(const Route& route, const Request& request);

// The functions of documents.cpp.
void answer_openapi(RequestContext& x);
void answer_docs(RequestContext& x);
void answer_console(RequestContext& x);
void answer_console_file(RequestContext& x);

}  // namespace carillon::server::http
