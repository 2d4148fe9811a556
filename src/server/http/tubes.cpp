// Tubes: their numbers, and their pauses (routes.h).
#include <fmt/format.h>

#include <boost/json.hpp>

#include "server/http/counts.h"
#include "server/http/fields.h"
#include "server/http/problem.h"
#include "server/http/routes.h"

namespace carillon::server::http {

namespace {

Problem no_such_tube(std::string_view tube) {
  return Problem(kNotFound, fmt::format("there is no tube \"{}\"", tube));
}

void pause_for(Exchange& x, queue::Millis duration) {
  if (!x.engine().pause(x.now(), x.names.front(), duration)) throw no_such_tube(x.names.front());
  x.answer({.status = 204});
}

boost::json::object json_of(const queue::Limits& limits) {
  boost::json::object shown;
  if (limits.max_running > 0) shown["max_running"] = limits.max_running;
  if (limits.rate > 0) {
    shown["rate"] = limits.rate;
    shown["rate_period_ms"] = limits.period;
    shown["burst"] = limits.burst;
  }
  return shown;
}

}  // namespace

void answer_tube(Exchange& x) {
  const auto stats = x.engine().tube_stats(x.now(), x.names.front());
  if (!stats) throw no_such_tube(x.names.front());
  boost::json::object tube{{"name", stats->name},
                           {"jobs", json_of(stats->jobs)},
                           {"using", stats->using_},
                           {"watching", stats->watching},
                           {"waiting", stats->waiting},
                           {"paused", stats->pause > 0},
                           {"limits", json_of(stats->settings.limits)}};
  if (stats->pause > 0) tube["pause_left_ms"] = stats->pause_left;
  x.answer({.body = boost::json::serialize(tube), .durable_at = x.engine().last_sequence()});
}

// {"duration":"10m"}; without a body until the tube is resumed, or the server restarts.
void pause_tube(Exchange& x) {
  queue::Millis duration = queue::kMaxTtr;
  if (!x.request.body.empty()) {
    const boost::json::object object = parse_object(x.request.body);
    FieldFaults faults;
    Fields fields(object, "", faults);
    const auto wanted = fields.duration("duration");
    if (wanted && (*wanted == 0 || *wanted > queue::kMaxTtr))
      fields.fault("duration", fmt::format("a pause has 1 to {} ms", queue::kMaxTtr));
    fields.finish();
    faults.throw_if_any();
    duration = wanted.value_or(duration);
  }
  pause_for(x, duration);
}

void resume_tube(Exchange& x) {
  pause_for(x, 0);
}

}  // namespace carillon::server::http
