// Helpers that several functions of the API need (request_context.h).
#include "server/api/request_context.h"

#include <fmt/format.h>

#include "server/api/names.h"
#include "server/api/problem.h"
#include "server/text/whole_number.h"

namespace carillon::server {

queue::JobId job_id_of(const std::string& text) {
  const auto id = whole_number<queue::JobId>(text);
  if (id && *id >= 1 && *id <= queue::kLastId) return *id;
  throw Problem(kBadRequest, fmt::format("\"{}\": not the id of a job, a number from 1 to {}", text,
                                         queue::kLastId));
}

Problem unreadable(queue::JobId job, const Body& body) {
  if (body.damaged)
    return Problem(kDamaged, fmt::format("the body of job {} is damaged: {}", job, body.error));
  return Problem(kFailed, fmt::format("the body of job {} cannot be read: {}", job, body.error));
}

const std::string& RequestContext::tube() const {
  const std::string& tube = names.front();
  if (!is_tube_name(tube)) {
    throw Problem(kBadRequest,
                  fmt::format("\"{}\": not the name of a tube: 1 to {} letters, digits "
                              "and any of -+/;.$_(), and no - in front",
                              tube, kMaxTubeName));
  }
  return tube;
}

const std::string& RequestContext::use_tube() {
  engine().use(client_, tube());
  return tube();
}

void RequestContext::hold(std::size_t bytes) {
  held_ += bytes;
  const bool is_short = service_.is_out_of_memory() || held_ > service_.most_for_one();
  if (held_ <= kOwnReplies || !is_short) return;
  service_.report_out_of_memory(kMemoryIsUsed);
  throw Problem(kNoMemory, std::string(kMemoryIsUsed));
}

void RequestContext::require_tube(std::string_view tube) const {
  if (std::string why = caller_.lacks_tube(tube); !why.empty())
    throw Problem(kForbidden, std::move(why));
}

void RequestContext::require_tube_of(std::string_view what, std::string_view tube) const {
  if (std::string why = caller_.lacks_tube_of(what, tube); !why.empty())
    throw Problem(kForbidden, std::move(why));
}

void RequestContext::require_room() {
  if (service_.refuses_commands()) throw unavailable();
  if (service_.draining()) throw Problem(kDraining, "the server is draining (SIGUSR1)");
  if (service_.is_out_of_memory()) {
    service_.report_out_of_memory(kSystemGivesNone);
    throw Problem(kNoMemory, std::string(kSystemGivesNone));
  }
  if (service_.refuses_puts(now_))
    throw Problem(kNoSpace, "the disk, or the memory for jobs, is nearly full");
}

// RateLimit-Policy has a window in whole seconds, and the jobs of such a window, rounded down.
void RequestContext::add_headers(std::vector<std::pair<std::string_view, std::string>>& headers) {
  constexpr queue::Millis kSecond = 1'000;
  const auto seconds = [](queue::Millis ms) { return (ms + kSecond - 1) / kSecond; };
  const auto rate = is_put ? engine().put_rate(now_, names.front()) : std::nullopt;
  if (!rate) return;
  const std::uint64_t window = seconds(rate->limits.period);
  headers.emplace_back(
      "RateLimit-Policy",
      fmt::format(R"("put";q={};w={})", rate->limits.rate * window * kSecond / rate->limits.period,
                  window));
  headers.emplace_back("RateLimit",
                       fmt::format(R"("put";r={};t={})", rate->tokens, seconds(rate->next)));
}

void RequestContext::read_body(queue::JobId job, queue::JobId body_id, OnBody then, Again again) {
  awaits_ = Awaits::kBody;
  awaited_of_ = job;
  awaited_ = body_id;
  on_body_ = std::move(then);
  again_ = again;
  on_no_body_ = {};
}

void RequestContext::read_body(const queue::JobView& job, OnBody then, OnNoBody failed) {
  read_body(job.id, job.body_id, std::move(then), nullptr);
  on_no_body_ = std::move(failed);
}

void RequestContext::await_delivery(queue::ClientId worker, OnDelivery then) {
  awaits_ = Awaits::kDelivery;
  awaited_ = worker;
  on_delivery_ = std::move(then);
}

void RequestContext::await_trial(OnTried then) {
  awaits_ = Awaits::kTrial;
  on_tried_ = std::move(then);
}

void RequestContext::await_checkpoint(OnCheckpoint then) {
  awaits_ = Awaits::kCheckpoint;
  on_checkpoint_ = std::move(then);
}

void RequestContext::later(Step then) {
  awaits_ = Awaits::kTurn;
  next_ = std::move(then);
}

void RequestContext::body_came(const Body& body) {
  now_ = service_.now();
  awaits_ = Awaits::kNothing;
  if (body.bytes) return std::exchange(on_body_, {})(*this, *body.bytes);
  if (on_no_body_) return std::exchange(on_no_body_, {})(*this, body);
  if (body.damaged) {
    const auto job = engine().peek(now_, awaited_of_);
    if (!job || job->body_id != awaited_) return again_(*this, awaited_of_);
  }
  service_.report_store_failure(body.error);
  throw unreadable(awaited_of_, body);
}

void RequestContext::delivered(const queue::Delivery& delivery) {
  now_ = service_.now();
  awaits_ = Awaits::kNothing;
  std::exchange(on_delivery_, {})(*this, delivery);
}

void RequestContext::tried(const push::PostResult& result) {
  now_ = service_.now();
  awaits_ = Awaits::kNothing;
  std::exchange(on_tried_, {})(*this, result);
}

void RequestContext::checkpoint_made(const CheckpointResult& result) {
  now_ = service_.now();
  awaits_ = Awaits::kNothing;
  std::exchange(on_checkpoint_, {})(*this, result);
}

void RequestContext::go_on() {
  now_ = service_.now();
  awaits_ = Awaits::kNothing;
  std::exchange(next_, {})(*this);
}

}  // namespace carillon::server
