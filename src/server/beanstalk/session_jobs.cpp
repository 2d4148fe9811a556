// The commands about one job, by its id or key, and about its attempt; and kicks and pauses, with
// their audit (session.h).
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/feed.h"
#include "server/api/tubes.h"
#include "server/beanstalk/session.h"
#include "server/beanstalk/stats.h"

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

// --- The commands about attempts: fail-job and touch-job.

namespace {

// The longest text of an error, which comes as a body. The engine keeps its beginning.
constexpr std::uint32_t kMaxErrorText = 64 << 10;

}  // namespace

void Session::begin_fail(const Command& c) {
  try {
    options_ = parse_job_options(c.options, OptionsOf::kFail);
  } catch (const std::invalid_argument& error) {
    return refuse_options(c.bytes, error.what());
  }
  if (c.bytes > kMaxErrorText) return discard_and_answer(c.bytes, "JOB_TOO_BIG\r\n");
  if (!has_room_for_body(c.bytes, c.bytes)) return;
  pending_ = c;
  reader_.expect_body(c.bytes);
}

void Session::fail_job(std::string_view error) {
  answers_.or_failure([&] {
    const queue::Now now = service_.now();
    queue::Engine& engine = service_.engine();
    if (options_.delay && !engine.fits(now, *options_.delay)) return replies_.add(0, kOutOfRange);
    const queue::FailOutcome outcome = engine.fail(client_, now, pending_.id,
                                                   {.error = error,
                                                    .priority = options_.priority,
                                                    .delay = options_.delay,
                                                    .max_attempts = options_.max_attempts});
    answers_.failed_attempt(outcome, pending_.id);
  });
}

void Session::touch_job(const Command& c) {
  queue::Engine& engine = service_.engine();
  const queue::Outcome outcome = engine.touch(client_, service_.now(), c.id);
  answers_.done(outcome, engine.cancel_asked(client_, c.id) ? "CANCEL_ASKED\r\n" : "TOUCHED\r\n");
}

// --- Session: kicks and pauses, and how they get into the audit.

void Session::audit(std::string_view action, std::string_view target, std::string outcome) {
  service_.feed().tell({.at = service_.last_now().utc_ns / 1'000'000,
                        .who = caller_.shown_as(service_.engine().name_of(client_)),
                        .action = std::string(action),
                        .target = std::string(target),
                        .outcome = std::move(outcome)});
}

void Session::go_on_kicking() {
  try {
    service_.engine().kick(client_, service_.now(), kick_);
    if (!kick_.done) return;
    if (!kick_.error.empty()) service_.report_store_failure(kick_.error);
    answer_kick();
  } catch (const queue::StoreError& error) {
    answers_.store_failure(error.what());
  }
  state_ = State::kInput;
}

void Session::answer_kick() {
  replies_.add(kick_.durable_at, "KICKED ", kick_.kicked, kEnd);
  if (kick_.kicked > 0) {
    audit("tube:kick", service_.engine().tube_in_use(client_), outcome_of(kick_));
  }
}

void Session::pause(const Command& c) {
  if (!service_.engine().pause(service_.now(), c.tube, c.delay)) return answers_.not_found();
  replies_.add(0, "PAUSED\r\n");
  audit(c.delay > 0 ? "tube:pause" : "tube:resume", c.tube, "done");
}

}  // namespace carillon::server::beanstalk
