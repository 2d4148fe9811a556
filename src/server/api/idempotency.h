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
// The engine stores the key of a put with its jobs, in one append, for 24 h (queue::BatchOrder). So
// the same request puts no more jobs, also after a crash, and gets the same answer. Answers to
// other requests, and to a put that was ignored, are kept in memory. If the
// same request comes before the first one is answered, it is refused (idempotency_cache.h).
// Source: draft-ietf-httpapi-idempotency-key-header.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/commands.h"
#include "server/api/idempotency_cache.h"
#include "server/api/problem.h"
#include "server/api/request.h"
#include "server/api/request_context.h"
#include "server/api/requests_in_flight.h"

namespace carillon::server {

struct Once {
  std::string key;
  std::string own_key;  // Caller::own_key()
  // A hash over the request's method, path, query, body, and the headers that describe the job.
  std::string fingerprint;
  RequestsInFlight::Claim claim;  // from here on the key is in flight
};

// Returns none if the request has no such header. Throws Problem if the header is not a string of 1
// to queue::kMaxKey bytes, with or without quotes, or if the key is in flight.
std::optional<Once> once_of(RequestContext& x);

// Returns an order that points into `once`. The answer to a put of one job shows the job.
queue::BatchOrder order_of(const std::optional<Once>& once);
// Keeps the key in flight until the put is durable. Throws Problem if another request had the key.
void note_answer(std::optional<Once>& once, const queue::BatchOutcome& outcome);

// Returns the answer that is kept in memory under the key. REQUIRES: `once` comes from once_of(),
// which refuses a key that another request had.
std::optional<Reply> kept_answer(RequestContext& x, const std::optional<Once>& once);
// The same for a request that puts nothing. Throws Problem if a put had the key.
std::optional<Reply> first_answer(RequestContext& x, const std::optional<Once>& once);
// Keeps the answer if it reports a change. The request is in flight until the answer may leave.
void keep_answer(RequestContext& x, std::optional<Once>& once, const Reply& reply);

}  // namespace carillon::server
