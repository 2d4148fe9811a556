// Requests that a client may send again: the header Idempotency-Key.
//
//   auto once = once_of(x);                                      // of a put
//   batch = engine.put_all(client, now, jobs, order_of(once));
//   note_answer(once, batch);
//
//   auto once = once_of(x);                                      // of another request
//   if (auto reply = first_answer(x, once)) ...                  // else carry it out, and then
//   keep_answer(x, once, reply);
//
// The engine stores the key of a put with the jobs, in one append, for 24 h (queue::BatchOrder): so
// the same request puts nothing more, also after a crash, and is answered as before. The answers to
// other requests are kept in memory (idempotency_cache.h), and so is that to an `ignore`d put:
// kept_answer().
// While the answer to the first one is not out, the same request is refused (requests_in_flight.h).
// Source: draft-ietf-httpapi-idempotency-key-header.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/commands.h"
#include "server/api/problem.h"
#include "server/api/reply.h"
#include "server/api/request_context.h"
#include "server/api/requests_in_flight.h"

namespace carillon::server {

struct Once {
  std::string key;
  std::string own_key;  // Caller::own_key()
  // Of the request: method, path, query, headers that describe the job, body.
  std::string fingerprint;
  RequestsInFlight::Claim claim;  // from here on the key is in flight
};

// Returns none if the request has no such header. Throws Problem if it is none: a string in quotes,
// or a bare one, of 1 to queue::kMaxKey bytes; or if the key is in flight.
std::optional<Once> once_of(RequestContext& x);

// Returns an order that points into `once`; the answer has the job, if it is one.
queue::BatchOrder order_of(const std::optional<Once>& once);
// What was put is in flight until it is durable. Throws Problem if the key is of another request.
void note_answer(std::optional<Once>& once, const queue::BatchOutcome& outcome);

// Returns the answer that is kept in memory under the key. REQUIRES: `once` is that of once_of(),
// which has refused the key if this answer was to another request.
std::optional<Reply> kept_answer(RequestContext& x, const std::optional<Once>& once);
// The same for a request that puts nothing. Throws Problem if a put had the key.
std::optional<Reply> first_answer(RequestContext& x, const std::optional<Once>& once);
// Keeps the answer, if it tells of a change. The request is in flight until the answer may leave.
void keep_answer(RequestContext& x, std::optional<Once>& once, const Reply& reply);

}  // namespace carillon::server
