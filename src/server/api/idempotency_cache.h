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
#include <string>
#include <string_view>

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

}  // namespace carillon::server
