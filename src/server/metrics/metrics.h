// What the server tells of itself to Prometheus (exposition.h): the text of `GET /metrics`.
#pragma once

#include <cstddef>
#include <string>

#include "server/metrics/exposition.h"
#include "server/service.h"

namespace carillon::server::metrics {

// Only so many tubes have series of their own, for each series costs the scraper memory: those
// that the engine lists first. The jobs of all others are under tube="*", which is no tube's name.
// A tube that is forgotten has no series any more, and another one takes its place.
inline constexpr std::size_t kMostTubes = 100;

// Returns the metrics as of now, in about 1 ms. A list of tubes is begun for `client`, in the place
// of the one that it has (Engine::list_tubes).
std::string text_of(Service& service, queue::ClientId client, Exposition::Format format);

}  // namespace carillon::server::metrics
