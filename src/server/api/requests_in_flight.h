// Requests with an Idempotency-Key that are not answered yet: they still run, or their change is
// not durable. If the client sends such a request again, the second one is refused; it does not
// wait for the first one.
//
//   auto claim = requests.claim("8e03978e", fingerprint, durable);   // none: the key is in flight
//   ... the engine puts the job ...
//   claim->answered(outcome.durable_at);        // without this the key is free when `claim` goes
//
// What became of the first one, others know from then on: the engine of a put (BatchOrder),
// IdempotencyCache of every other request.
//
// claim() also forgets the keys whose answers have left. Each claim, and each key that it forgets,
// takes O(log n) of the keys in flight.
//
// Thread safety: none; it belongs to the thread that owns the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "carillon/queue/store.h"
#include "server/net/memory_pool.h"

namespace carillon::server {

class RequestsInFlight {
 public:
  class Claim;

  // The pool must outlive this.
  explicit RequestsInFlight(MemoryPool& pool) : memory_(pool) {}

  // Returns none if the name is in flight: see fingerprint_of(). `durable` is the last durable
  // change.
  std::optional<Claim> claim(std::string_view name, std::string_view fingerprint,
                             queue::Sequence durable);
  // Returns the fingerprint of the request that has the name. REQUIRES: claim() has just returned
  // none.
  std::string_view fingerprint_of(std::string_view name) const;

 private:
  struct Request {
    std::string name;
    std::string fingerprint;
    queue::Sequence durable_at = 0;  // 0: there is no change to wait for
  };
  using Requests = std::list<Request>;

  void end(Requests::iterator request) noexcept;
  void forget(Requests& of, Requests::iterator request) noexcept;

  MemoryPool::Share memory_;
  Requests carried_out_;  // requests with claims
  Requests answered_;     // in the order of their changes
  std::map<std::string_view, Requests::iterator> by_name_;
};

// A request that still runs. It must not outlive the RequestsInFlight.
class RequestsInFlight::Claim {
 public:
  Claim(RequestsInFlight& requests, Requests::iterator request)
      : requests_(&requests), request_(request) {}
  Claim(Claim&& other) noexcept
      : requests_(std::exchange(other.requests_, nullptr)), request_(other.request_) {}
  Claim& operator=(Claim&&) = delete;
  ~Claim() {
    if (requests_ != nullptr) requests_->end(request_);
  }

  // The request has an answer, which leaves when this change is durable. Until then the name is in
  // flight, also without the claim.
  void answered(queue::Sequence durable_at) { request_->durable_at = durable_at; }

 private:
  RequestsInFlight* requests_;  // null: another claim has taken over
  Requests::iterator request_;
};

}  // namespace carillon::server
