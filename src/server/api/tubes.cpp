// Tubes and their groups: their numbers, what holds for them, and pauses (tubes.h).
#include "server/api/tubes.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "carillon/queue/engine.h"
#include "server/api/names.h"
#include "server/api/operations.h"
#include "server/api/problem.h"

namespace carillon::server {

namespace {

Problem no_such_tube(std::string_view tube) {
  return Problem(kNotFound, fmt::format("there is no tube \"{}\"", tube));
}

void pause_for(RequestContext& x, const std::string& tube, queue::Millis duration) {
  if (!x.engine().pause(x.now(), tube, duration)) throw no_such_tube(tube);
  x.answer({.status = 204});
}

// A group of an earlier version's store may have another kind of name.
void require_group(const std::optional<queue::GroupStats>& stats, const std::string& name) {
  if (!stats && !is_key(name))
    throw Problem(kBadRequest, fmt::format("\"{}\": a group has {}", name, kKeyRule));
}

queue::TubeSettings changed(Reader& reader, const PatchTube& asked, queue::TubeSettings settings) {
  if (asked.limits.given && !asked.limits.value) settings.limits = settings.put_rate = {};
  if (asked.limits.value) {
    reader.within("limits",
                  [&] { apply(reader, *asked.limits.value, settings.limits, settings.put_rate); });
  }
  if (asked.retry.given && !asked.retry.value) settings.retry = {};
  if (asked.retry.value)
    reader.within("retry", [&] { apply(reader, *asked.retry.value, settings.retry); });
  if (asked.draining.given) settings.refuses_puts = asked.draining.value.value_or(false);
  if (asked.retention.given) settings.retention = asked.retention.value.value_or(Duration()).ms;
  return settings;
}

void kick(RequestContext& x, const std::shared_ptr<queue::Kick>& kick_of) {
  x.engine().kick(x.client(), x.now(), *kick_of);
  if (!kick_of->done) return x.later([kick_of](RequestContext& then) { kick(then, kick_of); });
  x.outcome = fmt::format("kicked {}", kick_of->kicked);
  answer(x, Kicked{.kicked = kick_of->kicked});
}

}  // namespace

Tube tube_of(const queue::TubeStats& stats) {
  Tube tube{.name = stats.name,
            .jobs = stats.jobs,
            .groups = stats.groups,
            .using_ = stats.using_,
            .watching = stats.watching,
            .waiting = stats.waiting,
            .paused = stats.pause > 0,
            .draining = stats.settings.refuses_puts,
            .limits = limits_of(stats.settings.limits, stats.settings.put_rate),
            .pause_left_ms = {},
            .retry = {},
            .retention = {}};
  if (stats.pause > 0) tube.pause_left_ms = stats.pause_left;
  if (stats.settings.retry != queue::RetryPolicy()) tube.retry = retry_of(stats.settings.retry);
  if (stats.settings.retention > 0) tube.retention = Duration{stats.settings.retention};
  return tube;
}

Group group_of(std::string_view tube, std::string_view name, const queue::GroupStats& stats) {
  return {.tube = std::string(tube),
          .name = {std::string(name)},
          .jobs = stats.jobs,
          .weight = stats.settings.weight,
          .limits = limits_of(stats.settings.limits)};
}

namespace {

Tube get_tube(RequestContext& x, const TubeName& asked) {
  const auto stats = x.engine().tube_stats(x.now(), asked.tube);
  if (!stats) throw no_such_tube(asked.tube);
  return tube_of(*stats);
}

// Makes the tube if there is none.
void patch_tube(RequestContext& x, const PatchTube& asked, Reader& reader) {
  const queue::TubeSettings settings = changed(reader, asked, x.engine().tube_settings(asked.tube));
  reader.throw_if_any();
  x.engine().set_tube(x.now(), asked.tube, settings);
  queue::TubeStats empty;
  empty.name = asked.tube;
  // A tube for which nothing holds, and that nobody uses, is forgotten at once.
  answer(x, tube_of(x.engine().tube_stats(x.now(), asked.tube).value_or(empty)));
}

Group get_group(RequestContext& x, const GroupName& asked) {
  const auto stats = x.engine().group_stats(x.now(), asked.tube, asked.group);
  require_group(stats, asked.group);
  if (!stats)
    throw Problem(kNotFound, fmt::format("tube {} has no group {}", asked.tube, asked.group));
  return group_of(asked.tube, asked.group, *stats);
}

void patch_group(RequestContext& x, const PatchGroup& asked, Reader& reader) {
  const auto stats = x.engine().group_stats(x.now(), asked.tube, asked.group);
  require_group(stats, asked.group);
  queue::GroupSettings settings = stats ? stats->settings : queue::GroupSettings();
  if (asked.weight.given) settings.weight = asked.weight.value.value_or(1);
  if (asked.limits.given && !asked.limits.value) settings.limits = {};
  if (asked.limits.value)
    reader.within("limits", [&] { apply(reader, *asked.limits.value, settings.limits); });
  reader.throw_if_any();
  const queue::Sequence durable_at =
      x.engine().set_group(x.now(), asked.tube, asked.group, settings);
  x.answer({.status = 204, .durable_at = durable_at});
}

void pause_tube(RequestContext& x, const PauseTube& asked) {
  pause_for(x, asked.tube, asked.duration.value_or(Duration{queue::kMaxTtr}).ms);
}

void resume_tube(RequestContext& x, const TubeName& asked) {
  pause_for(x, asked.tube, 0);
}

// As the command kick: buried jobs, or delayed ones if there is none.
void kick_tube(RequestContext& x, const KickTube& asked) {
  if (!x.engine().tube_stats(x.now(), asked.tube)) throw no_such_tube(asked.tube);
  x.use_tube();
  kick(x, std::make_shared<queue::Kick>(queue::Kick{.bound = asked.max}));
}

// --- The rows.

constexpr std::array kRows = {
    operation<get_tube>({.method = "GET",
                         .path = "/v1/tubes/{tube}",
                         .name = "getTube",
                         .tag = "tubes",
                         .summary = "Shows the counts of a tube, and what holds for it.",
                         .rights = {Needs::kRead, Reach::kTube},
                         .appends = Appends::kNo,
                         .problems = "400 404",
                         .answer = &kShape<Tube>}),

    operation<patch_tube>(
        {.method = "PATCH",
         .path = "/v1/tubes/{tube}",
         .name = "patchTube",
         .tag = "tubes",
         .summary =
             "Changes the settings of a tube (RFC 7396), and makes the tube if it does not exist.",
         .rights = {Needs::kAdmin, Reach::kTube},
         .appends = Appends::kYes,
         .audited_as = "tube:patch",
         .problems = "400 415 422 503",
         .answer = &kShape<Tube>}),

    operation<pause_tube>({.method = "POST",
                           .path = "/v1/tubes/{tube}:pause",
                           .name = "pauseTube",
                           .tag = "tubes",
                           .summary = "No job goes out for a while. A restart ends a pause.",
                           .rights = {Needs::kAdmin, Reach::kTube},
                           .appends = Appends::kNo,
                           .audited_as = "tube:pause",
                           .problems = "400 404 422"}),

    operation<resume_tube>({.method = "POST",
                            .path = "/v1/tubes/{tube}:resume",
                            .name = "resumeTube",
                            .tag = "tubes",
                            .summary = "Jobs go out again.",
                            .rights = {Needs::kAdmin, Reach::kTube},
                            .appends = Appends::kNo,
                            .audited_as = "tube:resume",
                            .problems = "400 404 422"}),

    operation<kick_tube>(
        {.method = "POST",
         .path = "/v1/tubes/{tube}:kick",
         .name = "kickTube",
         .tag = "tubes",
         .summary = "Makes buried jobs ready, or delayed jobs if no job is buried.",
         .rights = {Needs::kAdmin, Reach::kTube},
         .appends = Appends::kYes,
         .audited_as = "tube:kick",
         .problems = "400 404 422",
         .answer = &kShape<Kicked>}),

    operation<get_group>({.method = "GET",
                          .path = "/v1/tubes/{tube}/groups/{group}",
                          .name = "getGroup",
                          .tag = "tubes",
                          .summary = "Shows a group that has jobs or settings.",
                          .rights = {Needs::kRead, Reach::kTube},
                          .appends = Appends::kNo,
                          .problems = "400 404",
                          .answer = &kShape<Group>}),

    operation<patch_group>({.method = "PATCH",
                            .path = "/v1/tubes/{tube}/groups/{group}",
                            .name = "patchGroup",
                            .tag = "tubes",
                            .summary = "Sets what holds for a group (RFC 7396).",
                            .rights = {Needs::kAdmin, Reach::kTube},
                            .appends = Appends::kYes,
                            .audited_as = "group:patch",
                            .problems = "400 415 422 503"})};

}  // namespace

std::span<const Operation> tube_operations() {
  return kRows;
}

}  // namespace carillon::server
