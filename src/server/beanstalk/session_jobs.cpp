// The commands that name a job by its id or key: cancel-job, patch-job and peek-job (session.h).
#include <optional>
#include <stdexcept>
#include <string_view>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
std::optional<queue::JobId> Session::named_job(const Command& c) {
  return c.key.empty() ? c.id : service_.engine().job_with_key(client_, c.key);
}

void Session::peek_job(const Command& c) {
  const auto id = named_job(c);
  if (!id) return answers_.not_found();
  find(service_.engine().peek(service_.now(), *id));
}

// Returns the options of a command that has no body. None if one is wrong; then the client has got
// the error.
std::optional<JobOptions> Session::options_of(const Command& c, OptionsOf of) {
  return answers_.or_bad_option([&] { return parse_job_options(c.options, of); });
}

void Session::cancel_job(const Command& c) {
  const std::optional<JobOptions> options = options_of(c, OptionsOf::kCancel);
  if (!options) return;
  const auto id = named_job(c);
  if (!id) return answers_.not_found();
  const bool ask = options->ask.value_or(false);
  answers_.change(service_.engine().cancel(service_.now(), *id, ask), "CANCELLED ", *id);
}

void Session::begin_patch(const Command& c) {
  try {
    options_ = parse_job_options(c.options, OptionsOf::kPatch);
  } catch (const std::invalid_argument& error) {
    if (c.body == Command::Body::kCounted) return refuse_options(c.bytes, error.what());
    return answers_.bad_option(error.what());
  }
  pending_ = c;
  options_.key = c.key;
  keep_texts();
  pending_.key = options_.key;
  if (c.body == Command::Body::kNone) return patch_job(std::nullopt);
  if (c.bytes > service_.options().max_job_size || c.bytes > queue::kBodyPiece)
    return discard_and_answer(c.bytes, "JOB_TOO_BIG\r\n");
  if (may_add_body(c.bytes, c.bytes)) reader_.expect_body(c.bytes);
}

void Session::patch_job(std::optional<std::string_view> body) {
  answers_.or_failure([&] {
    const queue::Now now = service_.now();
    if (body && service_.refuses_puts(now)) return answers_.out_of_memory(kMemoryIsUsed);
    const auto id = named_job(pending_);
    if (!id) return answers_.not_found();
    const auto attributes =
        options_.attributes.empty() ? std::nullopt : std::optional(options_.attributes);
    const queue::Patch patch{.priority = options_.priority,
                             .ttr = options_.ttr,
                             .due_in = options_.delay,
                             .due_at = options_.due,
                             .body = body,
                             .expires_in = options_.expires_in,
                             .expires_at = options_.expires_at,
                             .at_expiry = options_.at_expiry,
                             .attributes = attributes};
    answers_.change(service_.engine().patch(now, *id, patch), "PATCHED ", *id);
  });
}

}  // namespace carillon::server::beanstalk
