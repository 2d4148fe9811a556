// The commands about attempts: fail-job and touch-job (session.h).
#include <optional>
#include <stdexcept>
#include <string_view>

#include "server/beanstalk/session.h"

namespace carillon::server::beanstalk {
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

}  // namespace carillon::server::beanstalk
