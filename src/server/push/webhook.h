// The request by which a job is pushed (docs/push.md): headers of Standard Webhooks 1.0.0, and the
// job as an event of CloudEvents 1.0 if the endpoint wants that, in binary mode (more headers) or
// in structured mode (JSON).
//
//   connection->post(webhook_of(endpoint, stats, body, now), 15s, done);
//
// Thread safety: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "carillon/queue/endpoint.h"
#include "carillon/queue/engine_stats.h"
#include "server/push/post.h"

namespace carillon::server::push {

// Returns true if the header belongs to the request itself, so that an endpoint cannot set it.
bool is_own_header(std::string_view name);

// `now` in ms since 1970: when the attempt begins.
PostRequest webhook_of(const queue::Endpoint& endpoint, const queue::JobStats& job,
                       std::string body, queue::UtcMs now);

// Returns the secrets that sign at a time: for a while after a change, also the secret before.
std::span<const std::string> secrets_at(const queue::Endpoint& endpoint, queue::UtcMs now);

// Returns a request without a job, so that an operator sees what the endpoint answers.
PostRequest trial_of(std::string_view name, const queue::Endpoint& endpoint, queue::UtcMs now);

}  // namespace carillon::server::push
