// Puts that a client may send again: the header Idempotency-Key.
//
//   if (const auto once = once_of(x)) batch = engine.put_all(client, now, jobs, once->order);
//
// The engine stores the key with the jobs, in one append, for 24 h (queue::BatchOrder): so the same
// request puts nothing more, also after a crash, and is answered with the ids that it got before.
// Source: draft-ietf-httpapi-idempotency-key-header.
#pragma once

#include <optional>
#include <string>

#include "carillon/queue/commands.h"
#include "server/http/exchange.h"

namespace carillon::server::http {

// The order points into `own_key`.
struct Once {
  std::string key;
  std::string own_key;  // Caller::own_key()
  std::uint64_t fingerprint = 0;

  queue::BatchOrder order() const { return {.once = own_key, .fingerprint = fingerprint}; }
};

// Returns none if the request has no such header. Throws Problem if it is none: a string in quotes,
// or a bare one, of 1 to queue::kMaxKey bytes.
std::optional<Once> once_of(const Exchange& x);

}  // namespace carillon::server::http
