// Puts that a client may send again: the header Idempotency-Key.
//
//   auto once = once_of(x);
//   batch = engine.put_all(client, now, jobs, order_of(once));
//   note_answer(once, batch);
//
// The engine stores the key with the jobs, in one append, for 24 h (queue::BatchOrder): so the same
// request puts nothing more, also after a crash, and is answered as before.
// While the answer to the first one is not out, the same request is refused (puts_in_flight.h).
// Source: draft-ietf-httpapi-idempotency-key-header.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "carillon/queue/commands.h"
#include "server/http/exchange.h"
#include "server/http/problem.h"
#include "server/puts_in_flight.h"

namespace carillon::server::http {

struct Once {
  std::string key;
  std::string own_key;        // Caller::own_key()
  std::string fingerprint;    // of the request: method, path, headers that describe the job, body
  PutsInFlight::Claim claim;  // from here on the key is in flight
};

// Returns none if the request has no such header. Throws Problem if it is none: a string in quotes,
// or a bare one, of 1 to queue::kMaxKey bytes; or if the key is in flight.
std::optional<Once> once_of(Exchange& x);

// Returns an order that points into `once`; the answer has the job, if it is one.
queue::BatchOrder order_of(const std::optional<Once>& once);
// What was put is in flight until it is durable. Throws Problem if the key is of another request.
void note_answer(std::optional<Once>& once, const queue::BatchOutcome& outcome);

}  // namespace carillon::server::http
