// First answers to requests with an Idempotency-Key, so that the same request gets the same answer.
// Not for puts: the engine stores their answers with the jobs (queue::BatchOrder).
//
//   answers.keep(key, fingerprint, reply, now);
//   if (const auto* first = answers.find(key, now)) ...        // send first->reply again
//
// Answers are kept in memory for 24 h, and a restart forgets them. Together they take at most a
// 32nd of the pool: new ones replace the oldest ones. Every call takes O(log n) of the answers.
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
#include "server/api/request.h"
#include "server/net/memory_pool.h"

namespace carillon::server {

class IdempotencyCache {
 public:
  static constexpr std::uint64_t kKeptMs = 86'400'000;

  struct Answer {
    std::string key;          // Caller::own_key()
    std::string fingerprint;  // of the request
    Reply reply;
    std::uint64_t until_ms = 0;  // by the monotonic clock
  };

  // The pool must outlive this.
  explicit IdempotencyCache(MemoryPool& pool) : most_(pool.bytes() / 32), memory_(pool) {}

  // Returns null if there is no answer under the key. `now_ms` is of the monotonic clock.
  const Answer* find(std::string_view key, std::uint64_t now_ms);
  // REQUIRES: there is no answer under the key.
  void keep(std::string_view key, std::string_view fingerprint, const Reply& reply,
            std::uint64_t now_ms);

 private:
  void forget_first();

  const std::size_t most_;
  MemoryPool::Share memory_;
  std::list<Answer> answers_;  // the oldest one first
  std::map<std::string_view, std::list<Answer>::iterator> by_key_;
};

// --- Requests with an Idempotency-Key that are not answered yet: they still run, or their change
// is not durable. If the client sends such a request again, the second one is refused; it does not
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
