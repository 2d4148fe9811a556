// IdempotencyCache (idempotency_cache.h).
#include "server/api/idempotency_cache.h"

#include "carillon/require.h"

namespace carillon::server {

namespace {

// Returns about how many bytes of memory an answer takes.
std::size_t bytes_of(const IdempotencyCache::Answer& answer) {
  constexpr std::size_t kEntry = 288;
  constexpr std::size_t kHeaderBytes = 64;
  std::size_t bytes = kEntry + answer.key.size() + answer.fingerprint.size();
  for (const auto& [name, value] : answer.reply.headers) bytes += kHeaderBytes + value.size();
  return bytes + answer.reply.body.size();
}

}  // namespace

const IdempotencyCache::Answer* IdempotencyCache::find(std::string_view key, std::uint64_t now_ms) {
  while (!answers_.empty() && answers_.front().until_ms <= now_ms) forget_first();
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &*found->second;
}

void IdempotencyCache::keep(std::string_view key, std::string_view fingerprint, const Reply& reply,
                            std::uint64_t now_ms) {
  std::list<Answer> kept;
  kept.push_back({.key = std::string(key),
                  .fingerprint = std::string(fingerprint),
                  .reply = reply,
                  .until_ms = now_ms + kKeptMs});
  const bool is_new = by_key_.emplace(kept.front().key, kept.begin()).second;
  CARILLON_REQUIRE(is_new, key);
  memory_.set(memory_.bytes() + bytes_of(kept.front()));
  answers_.splice(answers_.end(), kept);
  while (memory_.bytes() > most_) forget_first();
}

void IdempotencyCache::forget_first() {
  memory_.set(memory_.bytes() - bytes_of(answers_.front()));
  by_key_.erase(answers_.front().key);
  answers_.pop_front();
}

}  // namespace carillon::server
