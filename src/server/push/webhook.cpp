// Which headers a pushed job has (webhook.h).
#include "server/push/webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <boost/json.hpp>
#include <span>
#include <utility>

#include "server/push/cloud_event.h"
#include "server/push/signature.h"
#include "server/text/json_text.h"

namespace carillon::server::push {

namespace {

namespace json = boost::json;

// Returns the attribute if it may stand in a header.
std::string attribute(const json::value& attributes, std::string_view name) {
  const json::object* const object = attributes.if_object();
  const json::value* const value = object == nullptr ? nullptr : object->if_contains(name);
  if (value == nullptr || !value->is_string()) return {};
  const std::string text(value->get_string());
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](char byte) { return byte >= ' ' && byte <= '~'; });
  return is_plain ? text : std::string();
}

PostRequest request_of(const queue::Endpoint& endpoint, Event event, queue::UtcMs now) {
  using Format = queue::Endpoint::Format;
  PostRequest request{.headers = endpoint.headers, .body = {}};
  auto& headers = request.headers;
  if (endpoint.format == Format::kCloudEvents) add_event_headers(headers, event);
  const bool is_whole_event = endpoint.format == Format::kCloudEventsInJson;
  headers.emplace_back("content-type", is_whole_event
                                           ? "application/cloudevents+json; charset=utf-8"
                                           : event.content_type);
  request.body = is_whole_event ? in_json(event) : std::move(event.body);
  const std::uint64_t seconds = now / 1'000;
  headers.emplace_back("webhook-id", event.id);
  headers.emplace_back("webhook-timestamp", fmt::format("{}", seconds));
  headers.emplace_back("webhook-signature",
                       sign(secrets_at(endpoint, now), event.id, seconds, request.body));
  headers.emplace_back("carillon-tube", event.tube);
  return request;
}

}  // namespace

std::span<const std::string> secrets_at(const queue::Endpoint& endpoint, queue::UtcMs now) {
  const std::span<const std::string> all = endpoint.secrets;
  const bool is_over = endpoint.other_secrets_until != 0 && now >= endpoint.other_secrets_until;
  return is_over ? all.first(std::min<std::size_t>(all.size(), 1)) : all;
}

bool is_own_header(std::string_view name) {
  constexpr std::array<std::string_view, 10> kOwn = {
      "host",    "content-length", "transfer-encoding", "connection",  "te", "trailer",
      "upgrade", "expect",         "keep-alive",        "content-type"};
  constexpr std::array<std::string_view, 3> kPrefixes = {"webhook-", "ce-", "carillon-"};
  const auto is = [&](std::string_view own) { return boost::beast::iequals(name, own); };
  const auto begins = [&](std::string_view own) {
    return boost::beast::iequals(name.substr(0, own.size()), own);
  };
  return std::any_of(kOwn.begin(), kOwn.end(), is) ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), begins);
}

PostRequest webhook_of(const queue::Endpoint& endpoint, const queue::JobStats& job,
                       std::string body, queue::UtcMs now) {
  boost::system::error_code error;
  const json::value attributes = json::parse(job.record.extras->attributes, error);
  const std::string type = attribute(attributes, "content_type");
  PostRequest request =
      request_of(endpoint,
                 {.id = fmt::format("job_{}", job.record.id),
                  .type = "carillon.job",
                  .tube = job.tube,
                  .key = job.record.extras->key,
                  .time = job.record.created,
                  .content_type = type.empty() ? "application/octet-stream" : type,
                  .body = std::move(body)},
                 now);
  auto& headers = request.headers;
  headers.emplace_back("carillon-attempt", fmt::format("{}", job.record.extras->attempts + 1));
  for (const std::string_view name : {"traceparent", "tracestate"})
    if (std::string text = attribute(attributes, name); !text.empty())
      headers.emplace_back(name, std::move(text));
  return request;
}

PostRequest trial_of(std::string_view name, const queue::Endpoint& endpoint, queue::UtcMs now) {
  std::string body = "{";
  append_json_field(body, "test", name);
  return request_of(endpoint,
                    {.id = fmt::format("test_{}", now),
                     .type = "carillon.test",
                     .tube = endpoint.tube,
                     .key = {},
                     .time = now,
                     .content_type = "application/json",
                     .body = body + '}'},
                    now);
}

}  // namespace carillon::server::push
