// The commands about attempts: fail-job, touch-job, story-job, and set-tube (session.h).
#include <optional>
#include <stdexcept>
#include <string_view>

#include "server/beanstalk/session.h"
#include "server/beanstalk/stats.h"

namespace carillon::server::beanstalk {
namespace {

constexpr std::string_view kEnd = "\r\n";

// Of the text of an error, which comes as a body. The engine keeps its beginning.
constexpr std::uint32_t kMaxErrorText = 64 << 10;

}  // namespace

void Session::begin_fail(const Command& c) {
  try {
    options_ = parse_job_options(c.options, OptionsOf::kFail);
  } catch (const std::invalid_argument& error) {
    return refuse_options(c.bytes, error.what());
  }
  if (c.bytes > kMaxErrorText) return swallow_and_answer(c.bytes, "JOB_TOO_BIG\r\n");
  if (!may_hold(c.bytes, kOwnBody)) {
    service_.report_out_of_memory(kNoMemory);
    return swallow_and_answer(c.bytes, "OUT_OF_MEMORY\r\n");
  }
  put_ = c;
  state_ = State::kBody;
}

void Session::fail_job(std::string_view error) {
  or_answer_failure([&] {
    using Result = queue::FailOutcome::Result;
    const queue::Now now = service_.now();
    queue::Engine& engine = service_.engine();
    if (options_.delay && !engine.fits(now, *options_.delay))
      return replies_.add(0, "OUT_OF_RANGE\r\n");
    const queue::FailOutcome outcome = engine.fail(client_, now, put_.id,
                                                   {.error = error,
                                                    .priority = options_.priority,
                                                    .delay = options_.delay,
                                                    .max_attempts = options_.max_attempts});
    switch (outcome.result) {
      case Result::kAgain:
        return replies_.add(outcome.durable_at, "AGAIN ", outcome.attempts, " ", outcome.delay,
                            kEnd);
      case Result::kDead:
        return replies_.add(outcome.durable_at, "DEAD ", outcome.attempts, kEnd);
      case Result::kCancelled:
        return replies_.add(outcome.durable_at, "CANCELLED ", put_.id, kEnd);
      case Result::kNone:
        return answer_not_found();
    }
  });
}

void Session::touch_job(queue::JobId id) {
  queue::Engine& engine = service_.engine();
  const queue::Outcome outcome = engine.touch(client_, service_.now(), id);
  answer(outcome, engine.cancel_asked(client_, id) ? "CANCEL_ASKED\r\n" : "TOUCHED\r\n");
}

void Session::story_job(queue::JobId id) {
  const auto story = service_.engine().story(service_.now(), id);
  if (!story) return answer_not_found();
  answer_yaml(service_.engine().last_sequence(), story_yaml(*story));
}

void Session::set_tube(const Command& c) {
  const std::optional<JobOptions> options = options_of(c, OptionsOf::kTube);
  if (!options) return;
  queue::TubeSettings settings = service_.engine().tube_settings(c.tube);
  apply(*options, settings.retry);
  settings.refuses_puts = options->refuses_puts.value_or(settings.refuses_puts);
  try {
    apply(*options, settings.limits);
  } catch (const std::invalid_argument& error) {
    return replies_.add(0, "BAD_OPTION ", std::string_view(error.what()), kEnd);
  }
  const queue::Sequence sequence = service_.engine().set_tube(service_.now(), c.tube, settings);
  replies_.add(sequence, "SET\r\n");
}

}  // namespace carillon::server::beanstalk
