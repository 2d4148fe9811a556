// The commands about attempts: fail-job, touch-job and story-job; and those about what is set for a
// tube and its groups: set-tube and stats-group (session.h).
#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <string_view>

#include "server/beanstalk/session.h"
#include "server/beanstalk/stats.h"

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
  if (c.bytes > kMaxErrorText) return swallow_and_answer(c.bytes, "JOB_TOO_BIG\r\n");
  if (!has_room_for_body(c.bytes, c.bytes)) return;
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

void Session::touch_job(const Command& c) {
  queue::Engine& engine = service_.engine();
  const queue::Outcome outcome = engine.touch(client_, service_.now(), c.id);
  answer(outcome, engine.cancel_asked(client_, c.id) ? "CANCEL_ASKED\r\n" : "TOUCHED\r\n");
}

void Session::story_job(const Command& c) {
  const auto story = service_.engine().story(service_.now(), c.id);
  if (!story) return answer_not_found();
  answer_yaml(service_.engine().last_sequence(), story_yaml(*story));
}

void Session::set_tube(const Command& c) {
  const std::optional<JobOptions> options = options_of(c, OptionsOf::kTube);
  if (!options) return;
  if (!options->group.empty()) return set_group(c.tube, *options);
  queue::TubeSettings settings = service_.engine().tube_settings(c.tube);
  apply(*options, settings.retry);
  settings.refuses_puts = options->refuses_puts.value_or(settings.refuses_puts);
  settings.retention = options->retention.value_or(settings.retention);
  try {
    apply(*options, settings.limits);
    apply_put_rate(*options, settings.put_rate);
  } catch (const std::invalid_argument& error) {
    return replies_.add(0, "BAD_OPTION ", std::string_view(error.what()), kEnd);
  }
  const queue::Sequence sequence = service_.engine().set_tube(service_.now(), c.tube, settings);
  replies_.add(sequence, "SET\r\n");
  audit("tube:patch", c.tube, "done");
}

void Session::set_group(std::string_view tube, const JobOptions& options) {
  queue::Engine& engine = service_.engine();
  const queue::Now now = service_.now();
  const auto before = engine.group_stats(now, tube, options.group);
  queue::GroupSettings settings = before ? before->settings : queue::GroupSettings();
  settings.weight = options.weight.value_or(settings.weight);
  try {
    apply(options, settings.limits);
  } catch (const std::invalid_argument& error) {
    return replies_.add(0, "BAD_OPTION ", std::string_view(error.what()), kEnd);
  }
  replies_.add(engine.set_group(now, tube, options.group, settings), "SET\r\n");
  audit("group:patch", fmt::format("{}, {}", tube, options.group), "done");
}

void Session::stats_tube(const Command& c) {
  const auto stats = service_.engine().tube_stats(service_.now(), c.tube);
  if (!stats) return answer_not_found();
  answer_yaml(0, tube_stats_yaml(*stats));
}

void Session::stats_group(const Command& c) {
  const auto stats = service_.engine().group_stats(service_.now(), c.tube, c.key);
  if (!stats) return answer_not_found();
  answer_yaml(0, group_stats_yaml(c.tube, c.key, *stats));
}

}  // namespace carillon::server::beanstalk
