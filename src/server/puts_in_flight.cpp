// PutsInFlight (puts_in_flight.h).
#include "server/puts_in_flight.h"

#include <iterator>

namespace carillon::server {

namespace {

// What an entry takes beside the bytes of its name, with its fingerprint.
constexpr std::size_t kEntryBytes = 224;

}  // namespace

std::optional<PutsInFlight::Claim> PutsInFlight::claim(std::string_view name,
                                                       std::string_view fingerprint,
                                                       queue::Sequence durable) {
  while (!answered_.empty() && answered_.front().durable_at <= durable)
    forget(answered_, answered_.begin());
  if (by_name_.contains(name)) return std::nullopt;
  Puts put;
  put.push_back({.name = std::string(name), .fingerprint = std::string(fingerprint)});
  by_name_.emplace(put.front().name, put.begin());
  memory_.set(memory_.bytes() + kEntryBytes + name.size());
  carried_out_.splice(carried_out_.end(), put);
  return Claim(*this, std::prev(carried_out_.end()));
}

std::string_view PutsInFlight::fingerprint_of(std::string_view name) const {
  return by_name_.find(name)->second->fingerprint;
}

void PutsInFlight::end(Puts::iterator put) noexcept {
  if (put->durable_at == 0) return forget(carried_out_, put);
  answered_.splice(answered_.end(), carried_out_, put);
}

void PutsInFlight::forget(Puts& of, Puts::iterator put) noexcept {
  memory_.set(memory_.bytes() - kEntryBytes - put->name.size());
  by_name_.erase(put->name);
  of.erase(put);
}

}  // namespace carillon::server
