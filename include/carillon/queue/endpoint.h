// An endpoint: the HTTP server to which a tube's jobs are pushed. The engine only keeps endpoints
// durably; the code that pushes reads them (server/push/pusher.h).
//
//   engine.set_endpoint(now, "billing", {.url = "https://example.com/hook", .tube = "bills",
//                                        .secrets = {secret}});
//   for (const auto& [name, endpoint] : engine.endpoints()) ...
//
// set_endpoint makes an endpoint, or replaces it; the engine sets `created`. It throws
// std::invalid_argument if a field is missing or the endpoint has more than kMostEndpointBytes,
// OverLimit if there are kMostEndpoints already, and StoreError. remove_endpoint returns without
// effect if there is no such endpoint, and throws StoreError.
//
// Thread safety: these are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "carillon/queue/detail/rare.h"
#include "carillon/queue/job.h"

namespace carillon::queue {

// At most 256 endpoints, each with 8 KiB of text, not counting `disabled`.
inline constexpr std::size_t kMostEndpoints = 256;
inline constexpr std::size_t kMostEndpointBytes = 8 << 10;

struct Endpoint {
  // The form of a request. The numbers are those of the record.
  enum class Format : std::uint8_t {
    kStandard = 0,          // the job's body alone
    kCloudEvents = 1,       // with the headers of CloudEvents: their binary mode
    kCloudEventsInJson = 2  // the body within a JSON object: their structured mode
  };

  std::string url;
  // 1 to 200 bytes.
  std::string tube;
  // The keys that sign requests, as bytes: several while a key is being replaced, the newest first.
  std::vector<std::string> secrets = {};
  // From then on only the first of them signs; 0: all of them sign, for ever.
  UtcMs other_secrets_until = 0;
  // Further headers of each request: names and values.
  std::vector<std::pair<std::string, std::string>> headers = {};
  Format format = Format::kStandard;
  // The most jobs that are pushed at once.
  std::uint32_t concurrency = 10;
  // How long an attempt may take, in ms.
  Millis timeout = 15'000;
  // Why the server has disabled it; empty: it is not disabled.
  std::string disabled = {};
  // A user has paused it. Nothing is pushed to an endpoint that is paused or disabled.
  bool paused = false;
  UtcMs created = 0;
  // Fields of the record that a newer version of Carillon has written, as their bytes.
  detail::Rare<std::string> newer = {};

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// By their names.
using Endpoints = std::map<std::string, Endpoint, std::less<>>;

}  // namespace carillon::queue
