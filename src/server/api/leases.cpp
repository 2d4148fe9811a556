// Leases (leases.h).
#include "server/api/leases.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>

#include "carillon/require.h"
#include "server/text/whole_number.h"

namespace carillon::server {

namespace {

// The memory that a worker with a job takes here and in the engine, in bytes; a little more than
// measured.
constexpr std::size_t kWorkerMemory = 1 << 10;

// Takes a hexadecimal number and the hyphen after it from the front.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::size_t hyphen = text.find('-');
  if (hyphen == std::string_view::npos) return std::nullopt;
  const auto number = whole_number<std::uint64_t>(text.substr(0, hyphen), 16);
  text.remove_prefix(hyphen + 1);
  return number;
}

template <class Bytes>
std::string in_digits(const Bytes& bytes) {
  std::string digits;
  for (const unsigned char byte : bytes) digits += fmt::format("{:02x}", byte);
  return digits;
}

}  // namespace

Leases::Leases(queue::Engine& engine, MemoryPool& memory)
    : engine_(engine), pool_(memory), memory_(memory) {
  for (const queue::FormerWorker& former : engine.former_workers())
    workers_.emplace(former.client, Worker{.asker = 0, .secret = former.secret});
  memory_.set(workers_.size() * kWorkerMemory);
}

queue::ClientId Leases::begin(queue::ClientId asker, std::string_view tube, std::string_view name,
                              queue::Now now) {
  if (!pool_.has(kWorkerMemory) || memory_.bytes() > pool_.bytes() / 2)
    throw queue::OverLimit("there is no memory for another lease");
  std::array<unsigned char, 16> secret{};
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1)
    throw queue::OverLimit("the system gives no random bytes for another lease");
  const queue::ClientId worker = engine_.connect();
  try {
    engine_.watch(worker, tube);
  } catch (const queue::OverLimit&) {
    engine_.disconnect(worker, now);
    throw;
  }
  if (tube != "default") engine_.ignore(worker, "default");
  engine_.name_client(worker, name);
  workers_.emplace(worker, Worker{.asker = asker, .secret = in_digits(secret)});
  memory_.set(workers_.size() * kWorkerMemory);
  return worker;
}

queue::ClientId Leases::asker_of(queue::ClientId client) const {
  const auto found = workers_.find(client);
  return found == workers_.end() ? client : found->second.asker;
}

queue::Leased Leases::lease(queue::ClientId worker, queue::Now now,
                            std::span<const queue::JobId> jobs, std::optional<queue::Millis> time) {
  return engine_.lease(worker, now, jobs, workers_.at(worker).secret, time);
}

void Leases::answered(queue::ClientId worker, queue::Now now) {
  if (!engine_.holds_jobs(worker)) return give_up(worker, now);
  workers_.at(worker).asker = 0;
}

void Leases::give_up(queue::ClientId worker, queue::Now now) {
  engine_.disconnect(worker, now);
  workers_.erase(worker);
  memory_.set(workers_.size() * kWorkerMemory);
}

void Leases::look(queue::Now now) {
  constexpr int kAtOnce = 4;
  for (int n = 0; n < kAtOnce && !workers_.empty(); ++n) {
    auto next = workers_.upper_bound(looked_at_);
    if (next == workers_.end()) next = workers_.begin();
    const queue::ClientId worker = looked_at_ = next->first;
    if (next->second.asker == 0 && !engine_.holds_jobs(worker)) give_up(worker, now);
  }
}

std::string Leases::token(Lease lease) const {
  const auto found = workers_.find(lease.worker);
  CARILLON_REQUIRE(found != workers_.end(), lease.worker, lease.job);
  return fmt::format("{:x}-{}", lease.job, found->second.secret);
}

std::optional<Lease> Leases::find(std::string_view token) const {
  const auto job = take_number(token);
  const auto lease = job ? lease_of(*job) : std::nullopt;
  if (!lease) return std::nullopt;
  const std::string& secret = workers_.at(lease->worker).secret;
  const bool is_right = token.size() == secret.size() &&
                        CRYPTO_memcmp(token.data(), secret.data(), secret.size()) == 0;
  return is_right ? lease : std::nullopt;
}

std::optional<Lease> Leases::lease_of(queue::JobId job) const {
  const auto holder = engine_.holder_of(job);
  const auto found = holder ? workers_.find(*holder) : workers_.end();
  if (found == workers_.end() || found->second.asker != 0) return std::nullopt;
  return Lease{.worker = *holder, .job = job};
}

}  // namespace carillon::server
