// Requests with a name of the client's own whose first answer is not out yet: they are still
// carried out, or what they have changed is not durable. Such a request that is sent again is
// refused, and does not wait for the first one.
//
//   auto claim = requests.claim("8e03978e", fingerprint, durable);   // none: the name is in flight
//   ... the engine puts the job ...
//   claim->answered(outcome.durable_at);        // without this the name is free when `claim` goes
//
// What became of the first one, others know from then on: the engine of a put (BatchOrder),
// IdempotencyCache of every other request.
//
// claim() also forgets the names whose answers are out by now. All is O(log n) of the names in
// flight, for each of those, too.
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

  // Returns none if the name is in flight: see fingerprint_of(). `durable`: the last change that
  // is.
  std::optional<Claim> claim(std::string_view name, std::string_view fingerprint,
                             queue::Sequence durable);
  // Returns that of the request which has the name. REQUIRES: claim() has just returned none.
  std::string_view fingerprint_of(std::string_view name) const;

 private:
  struct Request {
    std::string name;
    std::string fingerprint;
    queue::Sequence durable_at = 0;  // 0: nothing waits for a change
  };
  using Requests = std::list<Request>;

  void end(Requests::iterator request) noexcept;
  void forget(Requests& of, Requests::iterator request) noexcept;

  MemoryPool::Share memory_;
  Requests carried_out_;  // they have claims
  Requests answered_;     // in the order of their changes
  std::map<std::string_view, Requests::iterator> by_name_;
};

// A request that is being carried out. It must not outlive the RequestsInFlight.
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

  // The request has an answer, which leaves when this change is durable. The name is in flight
  // until then, also without the claim.
  void answered(queue::Sequence durable_at) { request_->durable_at = durable_at; }

 private:
  RequestsInFlight* requests_;  // null: another claim has taken over
  Requests::iterator request_;
};

}  // namespace carillon::server
