// Requests and answers of endpoints. Only the request that makes a secret is answered with that
// secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/endpoint.h"
#include "server/api/field.h"
#include "server/api/filters.h"
#include "server/push/pusher.h"
#include "server/push/target_url.h"

namespace carillon::server {

template <>
inline constexpr auto kWords<queue::Endpoint::Format> = words("standard", "cloudevents",
                                                              "cloudevents-json");
template <>
inline constexpr auto kWords<push::EndpointState> = push::kEndpointStates;

// A text that begins with whsec_.
struct Secret {
  std::string bytes;
};
template <>
struct Text<Secret> {
  static Secret parse(std::string_view text);
  static std::string show(const Secret& secret);
};

// --- Requests.

struct NewEndpoint {
  std::string name;
  std::string url;
  std::string tube;
  std::vector<Secret> secrets = {};
  queue::Endpoint::Format format = queue::Endpoint::Format::kStandard;
  std::uint32_t concurrency = 10;
  Duration timeout{15'000};
  std::optional<Json> headers = {};
};
inline constexpr std::size_t kMostSecrets = 8;
template <>
inline constexpr auto kFields<NewEndpoint> = fields(
    field<&NewEndpoint::name>("The endpoint.", {.form = &kNameForm}),
    field<&NewEndpoint::url>(
        "http or https; an address must be public, or in `carillon serve --push-allow`.",
        {.least = 1, .most = push::kMostUrlBytes, .needed = true}),
    field<&NewEndpoint::tube>("Whose jobs are pushed.", {.needed = true, .form = &kTubeForm}),
    field<&NewEndpoint::secrets>(
        "What signs; without them those it has stay, or one is made and told.",
        {.least = 1, .most = kMostSecrets}),
    field<&NewEndpoint::format>("What a request looks like.", {.usual = "standard"}),
    field<&NewEndpoint::concurrency>("Jobs that are pushed at once.",
                                     {.least = 1, .most = push::kMostConcurrency, .usual = "10"}),
    field<&NewEndpoint::timeout>("How long an attempt may take.", {.least = push::kLeastTimeout,
                                                                   .most = push::kMostTimeout,
                                                                   .usual = "15s"}),
    field<&NewEndpoint::headers>("Up to 32 more headers of each request: texts."));

struct EndpointName {
  std::string name;
};
template <>
inline constexpr auto kFields<EndpointName> = fields(field<&EndpointName::name>("The endpoint."));

struct RotateEndpoint {
  std::string name;
  Duration overlap{86'400'000};
};
template <>
inline constexpr auto kFields<RotateEndpoint> = fields(
    Schema{"Rotation"}, field<&RotateEndpoint::name>("The endpoint."),
    field<&RotateEndpoint::overlap>("How long the secrets before sign, too.",
                                    {.most = 30 * queue::Millis{86'400'000}, .usual = "24h"}));

// --- Answers.

struct ToldSecret {
  std::string fingerprint;
  std::optional<Moment> until = {};
};
template <>
inline constexpr auto kFields<ToldSecret> =
    fields(Schema{"Secret"}, field<&ToldSecret::fingerprint>("Of its SHA-256 the first 16 digits."),
           field<&ToldSecret::until>("When it does not sign any more."));

struct Endpoint {
  std::string name;
  std::string url;
  std::string tube;
  std::optional<Secret> secret = {};
  std::vector<ToldSecret> secrets = {};
  queue::Endpoint::Format format = queue::Endpoint::Format::kStandard;
  std::uint32_t concurrency = 0;
  Duration timeout = {};
  std::vector<std::string> headers = {};
  push::EndpointState state = push::EndpointState::kEnabled;
  std::optional<std::string> disabled = {};
  std::optional<queue::Millis> rest_left_ms = {};
  Moment created = {};
  std::uint64_t in_flight = 0;
  std::uint64_t delivered = 0;
  std::uint64_t retried = 0;
  std::uint64_t dead = 0;
  std::uint64_t throttled = 0;
  std::optional<std::string> last_error = {};
  std::optional<Moment> last_error_at = {};
};
template <>
inline constexpr auto kFields<Endpoint> =
    fields(field<&Endpoint::name>("Its name."), field<&Endpoint::url>("Where jobs are pushed to."),
           field<&Endpoint::tube>("Whose jobs are pushed.", {.form = &kTubeForm}),
           field<&Endpoint::secret>("A new one. No other answer tells it."),
           field<&Endpoint::secrets>("Those that sign, the newest first."),
           field<&Endpoint::format>("What a request looks like."),
           field<&Endpoint::concurrency>("Jobs that are pushed at once."),
           field<&Endpoint::timeout>("How long an attempt may take."),
           field<&Endpoint::headers>("The names of its own headers."),
           field<&Endpoint::state>("Whether jobs are pushed."),
           field<&Endpoint::disabled>("Why it is disabled."),
           field<&Endpoint::rest_left_ms>("How long nothing is pushed: it asked for a rest."),
           field<&Endpoint::created>("When it was made."),
           field<&Endpoint::in_flight>("Jobs that are being pushed."),
           field<&Endpoint::delivered>("Jobs that it has taken since the server's start."),
           field<&Endpoint::retried>("Failed attempts after which the job comes again."),
           field<&Endpoint::dead>("Failed attempts that were the last ones of their jobs."),
           field<&Endpoint::throttled>("Attempts to which it has answered: later."),
           field<&Endpoint::last_error>("How an attempt has failed last."),
           field<&Endpoint::last_error_at>("When."));

struct EndpointPage {
  std::vector<Endpoint> endpoints = {};
  std::optional<std::string> next_page_token = {};
};
template <>
inline constexpr auto kFields<EndpointPage> =
    fields(field<&EndpointPage::endpoints>("By name."),
           field<&EndpointPage::next_page_token>(kNextPageHelp, kNextPageRule));

struct Trial {
  std::optional<std::uint32_t> status = {};
  std::optional<std::string> error = {};
  std::optional<std::string> answer = {};
  queue::Millis took_ms = 0;
};
template <>
inline constexpr auto kFields<Trial> =
    fields(field<&Trial::status>("The status of the answer.", {.least = 200, .most = 999}),
           field<&Trial::error>("Why there is no answer."),
           field<&Trial::answer>("The beginning of its body."),
           field<&Trial::took_ms>("The time from the request to the answer."));

}  // namespace carillon::server
