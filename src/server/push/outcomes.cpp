// Pusher: handles the result of an attempt, and reports about endpoints (pusher.h).
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/text.h"
#include "server/net/clock.h"
#include "server/push/retry_after.h"
#include "server/push/slot.h"
#include "server/service.h"

namespace carillon::server::push {

namespace {

constexpr unsigned kGone = 410;

// Returns true if the endpoint, or a proxy before it, cannot take anything now.
bool is_throttling(unsigned status) {
  return status == 429 || (status >= 502 && status <= 504);
}

// Removes line breaks, so that an answer cannot make a line in the log.
std::string on_one_line(std::string text) {
  for (char& byte : text)
    if ((byte >= 0 && byte < ' ') || byte == 0x7f) byte = ' ';
  return text;
}

}  // namespace

// After a StoreError the slot must be settled again.

void Pusher::settle(Slot& slot) {
  Target& target = slot.target;
  queue::Engine& engine = service_.engine();
  const PostResult& result = slot.result;
  const unsigned status = result.status;
  if (slot.job.body_bytes > kMostBody)
    return fail(
        slot,
        fmt::format("the body has {} bytes; at most {} are pushed", slot.job.body_bytes, kMostBody),
        true);
  if (status / 100 == 2) {
    engine.remove(slot.client, service_.now(), slot.job.id);
    ++target.told.delivered;
    target.last_rest = 0;
    return end(slot);
  }
  std::string error = status == 0 ? result.error : fmt::format("HTTP {}", status);
  if (!result.excerpt.empty()) error += ": " + on_one_line(result.excerpt);
  if (status != kGone && !is_throttling(status)) return fail(slot, error, false);
  // If the endpoint was changed since then, the answer is not about the new one.
  const bool is_meant = slot.version == target.version;
  if (status != kGone) {
    ++target.told.throttled;
    if (is_meant) throttle(slot, error);
  } else if (is_meant) {
    disable(target, error);
  }
  give_back(slot);
}

void Pusher::fail(Slot& slot, const std::string& error, bool for_good) {
  queue::Failure failure{.error = error};
  if (slot.usual_delay) {
    failure.delay = slot.usual_delay;
    failure.max_attempts = kUsualRetry.max_attempts;
  }
  if (for_good) failure.max_attempts = 1;
  const queue::FailOutcome outcome =
      service_.engine().fail(slot.client, service_.now(), slot.job.id, failure);
  PushStatus& told = slot.target.told;
  ++(outcome.result == queue::FailOutcome::Result::kDead ? told.dead : told.retried);
  note_error(slot.target, error);
  end(slot);
}

void Pusher::disable(Target& target, const std::string& error) {
  const auto& endpoints = service_.engine().endpoints();
  const auto found = endpoints.find(target.name);
  if (found == endpoints.end() || !found->second.disabled.empty()) return;
  queue::Endpoint endpoint = found->second;
  endpoint.disabled = "it answered 410 Gone";
  service_.engine().set_endpoint(service_.now(), target.name, endpoint);
  spdlog::warn("endpoint {} is disabled: it answered 410 Gone; its jobs stay in the tube {}",
               target.name, endpoint.tube);
  stop_waiting(target);
  note_error(target, error);
}

// If several requests were under way together, they cause one longer rest, not several.
void Pusher::throttle(const Slot& slot, const std::string& error) {
  Target& target = slot.target;
  const auto asked = parse_retry_after(slot.result.retry_after, service_.now().utc_ns / kMs);
  if (slot.posted_at >= target.rested_at)
    target.last_rest = std::clamp<queue::Millis>(2 * target.last_rest, kShortRest, kLongestRest);
  const queue::Millis time = std::max(asked.value_or(target.last_rest), kShortRest);
  target.rested_at = read_mono();
  target.rests_until = std::max(target.rests_until, target.rested_at + time * kMs);
  stop_waiting(target);
  note_error(target, error);
}

void Pusher::give_back(Slot& slot) {
  service_.engine().give_back(slot.client, service_.now(), slot.job.id);
  end(slot);
}

// Frees the slot, whatever it did. Appends nothing unless it holds a job.
void Pusher::end(Slot& slot) {
  if (slot.is_at_work()) {
    --slot.target.in_flight;
    --in_flight_;
  }
  if (slot.connection) kept_.keep(std::exchange(slot.connection, nullptr));
  by_client_.erase(slot.client);
  service_.bodies().forget(slot.client);
  service_.engine().disconnect(slot.client, service_.now());
  slot.state = Slot::State::kFree;
  slot.client = 0;
  slot.body = {};
  slot.result = {};
  slot.usual_delay.reset();
  slot.memory.set(0);
  fill_ = true;
}

// Keeps a job that is given back from coming to the same endpoint at once.
void Pusher::stop_waiting(Target& target) {
  for (const auto& slot : target.slots)
    if (slot->state == Slot::State::kWaiting) end(*slot);
}

// Jobs that are held go on: they may hold the memory that the next one lacks.
void Pusher::hold_off(Target& target, const std::string& why) {
  stop_waiting(target);
  target.held_off_until = read_mono() + kShortRest * kMs;
  note_error(target, why);
  fill_ = true;
}

void Pusher::end_rest(std::string_view name) {
  const auto found = targets_.find(name);
  if (found == targets_.end()) return;
  found->second->rests_until = found->second->held_off_until = 0;
  found->second->last_rest = 0;
  fill_ = true;
}

void Pusher::note_error(Target& target, const std::string& error) {
  target.told.last_error = base::beginning(error, queue::kMaxError);
  target.told.last_error_at = service_.last_now().utc_ns / kMs;
  if (const auto held_back = errors_.pass(read_mono()))
    spdlog::warn("endpoint {}: {} ({} more such since the last line)", target.name, error,
                 *held_back);
}

std::string why_disabled(const queue::Endpoint& endpoint) {
  if (!endpoint.disabled.empty()) return endpoint.disabled;
  try {
    parse_target(endpoint.url);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

EndpointState state_of(const queue::Endpoint& endpoint, const PushStatus& status) {
  if (!why_disabled(endpoint).empty()) return EndpointState::kDisabled;
  if (endpoint.paused) return EndpointState::kPaused;
  return status.rests_for > 0 ? EndpointState::kResting : EndpointState::kEnabled;
}

PushStatus Pusher::status(std::string_view name) const {
  const auto found = targets_.find(name);
  if (found == targets_.end()) return {};
  PushStatus status = found->second->told;
  status.in_flight = found->second->in_flight;
  const std::uint64_t now = read_mono();
  if (found->second->takes_at() > now)
    status.rests_for = (found->second->takes_at() - now) / kMs + 1;
  return status;
}

void Pusher::tell(metrics::Exposition& text) const {
  using Kind = metrics::Exposition::Kind;
  text.family("carillon_push_attempts_total", Kind::kCounter,
              "Attempts to push a job since the start, by endpoint and outcome.");
  for (const auto& [name, target] : targets_) {
    const PushStatus& told = target->told;
    text.sample({{"endpoint", name}, {"outcome", "delivered"}}, told.delivered);
    text.sample({{"endpoint", name}, {"outcome", "retried"}}, told.retried);
    text.sample({{"endpoint", name}, {"outcome", "dead"}}, told.dead);
    text.sample({{"endpoint", name}, {"outcome", "throttled"}}, told.throttled);
  }
  text.family("carillon_push_endpoints", Kind::kGauge, "Endpoints, by state.");
  std::array<std::uint64_t, kEndpointStates.size()> counts{};
  for (const auto& [name, target] : targets_)
    if (!target->removed)
      ++counts.at(static_cast<std::size_t>(state_of(target->endpoint, status(name))));
  for (std::size_t state = 0; state < counts.size(); ++state)
    text.sample({{"state", kEndpointStates.at(state)}}, counts.at(state));
  text.family("carillon_push_in_flight", Kind::kGauge, "Jobs that are being pushed.");
  for (const auto& [name, target] : targets_)
    text.sample({{"endpoint", name}}, std::uint64_t{target->in_flight});
  text.family("carillon_push_duration_seconds", Kind::kHistogram,
              "How long attempts to push a job have taken.");
  text.sample(durations_);
}

}  // namespace carillon::server::push
