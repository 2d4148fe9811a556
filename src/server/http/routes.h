// Which function answers which request.
//
//   const Match match = find_route("POST", "/v1/jobs/17:kick");
//   match.route->answer == &kick_job; match.names == {"17"}
//
// A pattern has the parts of a path. A part in braces stands for any text; what follows a colon
// after it is a verb. Each route declares what it needs of the caller's token; one that does not is
// no Route. It declares what may come with a request, too: check_input() refuses everything else
// before a function sees it, so that nothing a client has written is ignored. Thread safety: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/caller.h"
#include "server/http/exchange.h"

namespace carillon::server::http {

struct Route {
  std::string_view method;
  std::string_view pattern;
  Rights rights;
  void (*answer)(Exchange&);
  // How the audit (feed.h) calls this action of an operator; empty: it is none.
  std::string_view audited_as = {};
  // The names that the query may have, with a space between two; empty: there is no query.
  std::string_view query = {};
  // A GET or a DELETE never has fields.
  enum class Body : std::uint8_t { kOfTheRoute, kNoFields };
  Body body = Body::kOfTheRoute;
  // Where the answer is kept for the same request with the same Idempotency-Key (idempotency.h): in
  // the server's memory, or by the engine with what the function puts. That of a GET is not kept.
  enum class Once : std::uint8_t { kInMemory, kStored };
  Once once = Once::kInMemory;
};

// All of them.
std::span<const Route> routes();

struct Match {
  const Route* route = nullptr;
  std::vector<std::string> names;
};

// Throws Problem: there is no such path, or it has no such method.
Match find_route(std::string_view method, std::string_view path);

// Throws Problem if the query has a name that the route does not know, or one twice, or if there is
// a body for a route without fields: one that is neither empty nor {}.
void check_input(const Route& route, const Request& request);

// The functions, by their files.

// status.cpp
void answer_health(Exchange& x);
void answer_readiness(Exchange& x);
void answer_stats(Exchange& x);
void answer_metrics(Exchange& x);

// feed.cpp
void tell_events(Exchange& x);
void answer_history(Exchange& x);
void answer_audit(Exchange& x);

// wheel.cpp
void answer_wheel(Exchange& x);

// dead.cpp
void answer_dead(Exchange& x);

// documents.cpp
void answer_openapi(Exchange& x);
void answer_docs(Exchange& x);
void answer_console(Exchange& x);
void answer_console_file(Exchange& x);

// jobs.cpp
void put_job(Exchange& x);
void answer_job(Exchange& x);
void answer_job_body(Exchange& x);
void patch_job(Exchange& x);
void cancel_job(Exchange& x);
void kick_job(Exchange& x);

// batches.cpp
void put_jobs(Exchange& x);

// keys.cpp
void put_key(Exchange& x);
void answer_key(Exchange& x);
void patch_key(Exchange& x);
void cancel_key(Exchange& x);

// lists.cpp
void list_jobs(Exchange& x);
void list_tubes(Exchange& x);
void list_groups(Exchange& x);

// bulk.cpp
void cancel_jobs(Exchange& x);
void retry_jobs(Exchange& x);
void move_jobs(Exchange& x);
void spread_jobs(Exchange& x);
void clear_tube(Exchange& x);
void kick_tube(Exchange& x);
void answer_operation(Exchange& x);
void stop_operation(Exchange& x);

// schedules.cpp
void put_schedule(Exchange& x);
void answer_schedule(Exchange& x);
void delete_schedule(Exchange& x);
void pause_schedule(Exchange& x);
void resume_schedule(Exchange& x);
void trigger_schedule(Exchange& x);
void list_schedules(Exchange& x);

// endpoints.cpp
void put_endpoint(Exchange& x);
void answer_endpoint(Exchange& x);
void delete_endpoint(Exchange& x);
void pause_endpoint(Exchange& x);
void resume_endpoint(Exchange& x);
void rotate_endpoint(Exchange& x);
void test_endpoint(Exchange& x);
void list_endpoints(Exchange& x);

// leases.cpp
void reserve_jobs(Exchange& x);
void ack_lease(Exchange& x);
void nack_lease(Exchange& x);
void answer_lease_body(Exchange& x);
void extend_lease(Exchange& x);

// tubes.cpp
void answer_tube(Exchange& x);
void patch_tube(Exchange& x);
void answer_group(Exchange& x);
void patch_group(Exchange& x);
void pause_tube(Exchange& x);
void resume_tube(Exchange& x);

}  // namespace carillon::server::http
