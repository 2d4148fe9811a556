// Tubes and their groups: their numbers, what holds for them, and pauses (routes.h).
#include <fmt/format.h>

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "server/api/names.h"
#include "server/http/fields.h"
#include "server/http/job_fields.h"
#include "server/http/problem.h"
#include "server/http/routes.h"
#include "server/http/tube_fields.h"

namespace carillon::server::http {

namespace {

Problem no_such_tube(std::string_view tube) {
  return Problem(kNotFound, fmt::format("there is no tube \"{}\"", tube));
}

void pause_for(RequestContext& x, queue::Millis duration) {
  if (!x.engine().pause(x.now(), x.names.front(), duration)) throw no_such_tube(x.names.front());
  x.answer({.status = 204});
}

// One of an earlier version's store may be called otherwise.
void require_group(const std::optional<queue::GroupStats>& stats, const std::string& name) {
  if (!stats && !is_key(name)) throw Problem(kBadRequest, key_fault("group", name));
}

void answer_with(RequestContext& x, const queue::TubeStats& stats) {
  x.answer(
      {.body = boost::json::serialize(json_of(stats)), .durable_at = x.engine().last_sequence()});
}

}  // namespace

void answer_tube(RequestContext& x) {
  const auto stats = x.engine().tube_stats(x.now(), x.names.front());
  if (!stats) throw no_such_tube(x.names.front());
  answer_with(x, *stats);
}

// Makes the tube if there is none.
void patch_tube(RequestContext& x) {
  FieldFaults faults;
  queue::TubeSettings settings = x.engine().tube_settings(x.tube());
  read_settings(parse_object(x.request.body), faults, settings);
  faults.throw_if_any();
  x.engine().set_tube(x.now(), x.tube(), settings);
  queue::TubeStats empty;
  empty.name = x.tube();
  // A tube for which nothing holds, and that nobody uses, is forgotten at once.
  answer_with(x, x.engine().tube_stats(x.now(), x.tube()).value_or(empty));
}

void answer_group(RequestContext& x) {
  const auto stats = x.engine().group_stats(x.now(), x.tube(), x.names[1]);
  require_group(stats, x.names[1]);
  if (!stats)
    throw Problem(kNotFound, fmt::format("tube {} has no group {}", x.tube(), x.names[1]));
  x.answer({.body = boost::json::serialize(json_of(x.tube(), x.names[1], *stats)),
            .durable_at = x.engine().last_sequence()});
}

void patch_group(RequestContext& x) {
  const auto stats = x.engine().group_stats(x.now(), x.tube(), x.names[1]);
  require_group(stats, x.names[1]);
  FieldFaults faults;
  queue::GroupSettings settings = stats ? stats->settings : queue::GroupSettings();
  read_settings(parse_object(x.request.body), faults, settings);
  faults.throw_if_any();
  const queue::Sequence durable_at = x.engine().set_group(x.now(), x.tube(), x.names[1], settings);
  x.answer({.status = 204, .durable_at = durable_at});
}

// {"duration":"10m"}; without a body until the tube is resumed, or the server restarts.
void pause_tube(RequestContext& x) {
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

void resume_tube(RequestContext& x) {
  pause_for(x, 0);
}

}  // namespace carillon::server::http
