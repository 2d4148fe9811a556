// RequestsInFlight (requests_in_flight.h).
#include "server/api/requests_in_flight.h"

#include <iterator>

#include "carillon/require.h"

namespace carillon::server {

namespace {

// The memory of an entry with its fingerprint, without the bytes of its name.
constexpr std::size_t kEntryBytes = 224;

}  // namespace

std::optional<RequestsInFlight::Claim> RequestsInFlight::claim(std::string_view name,
                                                               std::string_view fingerprint,
                                                               queue::Sequence durable) {
  while (!answered_.empty() && answered_.front().durable_at <= durable)
    forget(answered_, answered_.begin());
  if (by_name_.contains(name)) return std::nullopt;
  Requests request;
  request.push_back({.name = std::string(name), .fingerprint = std::string(fingerprint)});
  by_name_.emplace(request.front().name, request.begin());
  memory_.set(memory_.bytes() + kEntryBytes + name.size());
  carried_out_.splice(carried_out_.end(), request);
  return Claim(*this, std::prev(carried_out_.end()));
}

std::string_view RequestsInFlight::fingerprint_of(std::string_view name) const {
  const auto found = by_name_.find(name);
  CARILLON_REQUIRE(found != by_name_.end(), name);
  return found->second->fingerprint;
}

void RequestsInFlight::end(Requests::iterator request) noexcept {
  if (request->durable_at == 0) return forget(carried_out_, request);
  answered_.splice(answered_.end(), carried_out_, request);
}

void RequestsInFlight::forget(Requests& of, Requests::iterator request) noexcept {
  memory_.set(memory_.bytes() - kEntryBytes - request->name.size());
  by_name_.erase(request->name);
  of.erase(request);
}

}  // namespace carillon::server
