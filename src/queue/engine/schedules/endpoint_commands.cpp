// The commands for endpoints: set, remove, and the look-up of all.

#include <stdexcept>
#include <string>
#include <string_view>

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

namespace {

// `disabled` does not count, so that even the largest endpoint can be disabled.
std::size_t bytes_of(const Endpoint& endpoint) {
  std::size_t bytes = endpoint.url.size() + endpoint.tube.size();
  for (const std::string& secret : endpoint.secrets) bytes += secret.size();
  for (const auto& [name, value] : endpoint.headers) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

Outcome EngineSchedules::set_endpoint(Now now, std::string_view name, const Endpoint& endpoint) {
  EngineState& s = state_;
  s.advance(now);
  if (name.empty() || name.size() > kMaxScheduleText || endpoint.tube.empty() ||
      endpoint.tube.size() > kMaxScheduleText || endpoint.concurrency == 0)
    throw std::invalid_argument("endpoint: a name, a tube and a concurrency are needed");
  if (const std::size_t bytes = bytes_of(endpoint); bytes > kMostEndpointBytes)
    throw std::invalid_argument("endpoint: it has " + std::to_string(bytes) + " bytes; at most " +
                                std::to_string(kMostEndpointBytes));
  const auto found = s.endpoints.find(name);
  if (found == s.endpoints.end() && s.endpoints.size() >= kMostEndpoints)
    throw OverLimit("there are " + std::to_string(kMostEndpoints) +
                    " endpoints, and may be no more");
  Endpoint stored = endpoint;
  stored.created = found == s.endpoints.end() ? s.clock.utc() : found->second.created;
  // Allocate before the append.
  Endpoints prepared;
  prepared.emplace(name, stored);
  s.appender.changes.endpoints.push_back({std::string(name), std::move(stored)});
  const Sequence sequence = s.appender.append();
  if (found != s.endpoints.end()) s.endpoints.erase(found);
  s.endpoints.merge(prepared);
  ++s.endpoint_changes;
  return {.done = true, .durable_at = sequence};
}

Outcome EngineSchedules::remove_endpoint(Now now, std::string_view name) {
  EngineState& s = state_;
  s.advance(now);
  const auto found = s.endpoints.find(name);
  if (found == s.endpoints.end()) return {.done = false, .durable_at = s.appender.last_sequence()};
  s.appender.changes.endpoints.push_back({found->first, std::nullopt});
  const Sequence sequence = s.appender.append();
  s.endpoints.erase(found);
  ++s.endpoint_changes;
  return {.done = true, .durable_at = sequence};
}

const Endpoints& EngineSchedules::endpoints() const {
  return state_.endpoints;
}

std::uint64_t EngineSchedules::endpoint_changes() const {
  return state_.endpoint_changes;
}

}  // namespace carillon::queue
