// An endpoint: where a tube's jobs are pushed to by HTTP. The engine keeps endpoints durably, and
// does nothing with them: whoever pushes reads them (server/push/pusher.h).
//
//   engine.set_endpoint(now, "billing", {.url = "https://example.com/hook", .tube = "bills",
//                                        .secrets = {secret}});
//   for (const auto& [name, endpoint] : engine.endpoints()) ...
//
// set_endpoint makes an endpoint, or puts another in its place; the engine sets `created`. It
// throws std::invalid_argument if a field is missing or the endpoint has more than
// kMostEndpointBytes, OverLimit if there are kMostEndpoints already, and StoreError.
// remove_endpoint returns without effect if there is no such endpoint, and throws StoreError.
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

// So many endpoints, with so many bytes in all texts of one of them but `disabled`, may be set.
inline constexpr std::size_t kMostEndpoints = 256;
inline constexpr std::size_t kMostEndpointBytes = 8 << 10;

struct Endpoint {
  // What a request looks like. The numbers are those of the record.
  enum class Format : std::uint8_t {
    kStandard = 0,          // the job's body alone
    kCloudEvents = 1,       // with the headers of CloudEvents: their binary mode
    kCloudEventsInJson = 2  // the body within a JSON object: their structured mode
  };

  std::string url;
  // 1 to 200 bytes.
  std::string tube;
  // The keys that sign what is pushed, as bytes: several while they change, the newest first.
  std::vector<std::string> secrets = {};
  // When only the first of them signs; 0: all do, for ever.
  UtcMs other_secrets_until = 0;
  // More headers of each request: names and values.
  std::vector<std::pair<std::string, std::string>> headers = {};
  Format format = Format::kStandard;
  // How many jobs are pushed at once.
  std::uint32_t concurrency = 10;
  // How long an attempt may take, in ms.
  Millis timeout = 15'000;
  // Why the server has disabled it; empty: it has not.
  std::string disabled = {};
  // Somebody has paused it. Nothing is pushed to an endpoint that is paused or disabled.
  bool paused = false;
  UtcMs created = 0;
  // Fields of the record that a newer version of Carillon has written, as their bytes.
  detail::Rare<std::string> newer = {};

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// By their names.
using Endpoints = std::map<std::string, Endpoint, std::less<>>;

}  // namespace carillon::queue
