// `carillon pause`, `resume`, `kick`, `drain` and `tube`: commands for whole tubes, made from the
// rows of their operations (server/api/tubes.h).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "cli/api.h"
#include "cli/arguments.h"
#include "cli/asked.h"
#include "cli/commands.h"
#include "cli/json_fields.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/wait.h"
#include "server/api/names.h"
#include "server/api/tubes.h"
#include "server/text/duration.h"

namespace carillon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kPauseExamples =
    R"(Puts go on, and jobs become due; workers get none of them until the pause ends.
What workers hold is not touched. A pause is rounded up to whole seconds. It is
not stored: a restart of the server ends it.

Examples:
  carillon pause mail                     until carillon resume mail
  carillon pause mail 10m)";

constexpr const char* kResumeExamples = R"(A tube that is not paused stays as it is.

Examples:
  carillon resume mail)";

constexpr const char* kKickExamples =
    R"(Buried jobs first; delayed ones, the next due first, if no job is buried.
Prints how many were made ready.

Examples:
  carillon kick                     one job of tube default
  carillon kick 100 --tube mail     up to 100 jobs of tube mail
  carillon kick --job 7             this one, wherever it is)";

constexpr const char* kDrainExamples =
    R"(From now on the server answers DRAINING to every put into the tube, also after a
restart, until --end. Workers go on, and get what is there. Schedules go on too:
carillon schedule pause stops them. Prints how many jobs are left; with --wait
waits until no job is ready, delayed or reserved. Buried jobs stay.
(To refuse all puts of a server, send it SIGUSR1.)

Examples:
  carillon drain mail
  carillon drain mail --wait              then switch the workers off
  carillon drain mail --end               the tube takes jobs again
  carillon drain new --create             a tube that has no jobs yet)";

constexpr const char* kTubeExamples =
    R"(ACTION: set, show. What set does not name stays as it is; 0 ends a limit.

Examples:
  carillon tube set images --max-running 10
  carillon tube set api --rate 100/1m --burst 5
  carillon tube set api --rate 0
  carillon tube set mail --put-rate 1000/1s --put-burst 5000
  carillon tube set mail --max-attempts 8 --backoff 10s..1h --retention 30d
  carillon tube set api --group acme --weight 3 --max-running 2
  carillon tube show api          what is set, and how many jobs run
  carillon tube show api --group acme)";

// Returns call(). Throws no_such_tube() if the server knows no such tube.
template <class Call>
auto call_tube(const std::string& tube, std::string_view advice, Call call) try {
  return call();
} catch (const Refusal& refusal) {
  throw_no_tube(refusal, tube, advice);
}

// --- pause, resume, kick

int pause(const ApiRequest& request) {
  using std::chrono::milliseconds;
  auto asked = request.asked.read<server::PauseTube>();
  std::string until = "until carillon resume " + asked.tube;
  auto seconds = std::chrono::ceil<std::chrono::seconds>(milliseconds(queue::kMaxTtr));
  if (asked.duration) {
    seconds = std::chrono::ceil<std::chrono::seconds>(milliseconds(asked.duration->ms));
    asked.duration->ms = static_cast<queue::Millis>(milliseconds(seconds).count());
    until = "for " + server::short_duration(seconds);
  }
  call_tube(asked.tube, "", [&] { Api(request.server).call("pauseTube", asked); });
  write_result(request.json, {{"tube", asked.tube}, {"pause_s", seconds.count()}},
               fmt::format("paused tube {} {}", asked.tube, until));
  return kSuccess;
}

int resume(const ApiRequest& request) {
  const auto asked = request.asked.read<server::TubeName>();
  call_tube(asked.tube, "", [&] { Api(request.server).call("resumeTube", asked); });
  write_result(request.json, {{"tube", asked.tube}, {"pause_s", 0}}, "resumed tube " + asked.tube);
  return kSuccess;
}

struct KickRequest : ApiRequest {
  std::optional<std::uint64_t> job;
};

int print_kicked(const KickRequest& request, const std::string& tube, std::uint64_t kicked) {
  json::object shown;
  if (request.job) shown["id"] = *request.job;
  if (!request.job) shown["tube"] = tube;
  shown["kicked"] = kicked;
  write_result(request.json, shown, std::to_string(kicked));
  return kSuccess;
}

std::uint64_t kicked_of(Api& api, const server::KickTube& asked) {
  const auto told = api.call<server::Kicked>("kickTube", asked);
  if (told.error)
    throw Failure(fmt::format("{}; {} kicked before", *told.error, counted(told.kicked, "job")));
  return told.kicked;
}

int kick(const KickRequest& request) {
  for (const auto& [field, name] : {std::pair{"/max", "N"}, std::pair{"/tube", "--tube"}})
    if (request.job && request.asked.has(field))
      throw UsageError(fmt::format("give {} or --job, not both", name));
  const auto asked =
      request.asked.read<server::KickTube>({.tube = std::string(kDefaultTube), .max = 1});
  Api api(request.server);
  try {
    if (!request.job) return print_kicked(request, asked.tube, kicked_of(api, asked));
    api.ask("POST", fmt::format("/v1/jobs/{}:kick", *request.job));
  } catch (const Refusal& refusal) {
    if (!request.job) throw_no_tube(refusal, asked.tube);
    if (refusal.status == 404) throw no_such_job(*request.job);
    throw;
  }
  return print_kicked(request, asked.tube, 1);
}

// --- drain

constexpr std::chrono::seconds kTell{2};  // from one remark about the jobs left to the next

struct DrainRequest : ApiRequest {
  bool wait = false;
  bool end = false;
  bool create = false;
};

std::string text_of(const queue::JobCounts& left) {
  return fmt::format("{} ready, {} delayed, {} reserved, {} buried", left.ready, left.delayed,
                     left.reserved, left.buried);
}

queue::JobCounts what_is_left(Api& api, const server::TubeName& tube) try {
  return api.call<server::Tube>("getTube", tube).jobs;
} catch (const Refusal& refusal) {
  if (refusal.status != 404) throw;
  throw Failure(fmt::format("tube {} is gone: somebody has set it anew", tube.tube));
}

queue::JobCounts wait_until_empty(Api& api, const server::TubeName& tube) {
  auto tell_at = std::chrono::steady_clock::now() + kTell;
  std::string told;
  while (true) {
    const queue::JobCounts left = what_is_left(api, tube);
    if (left.ready + left.delayed + left.reserved == 0) return left;
    if (std::chrono::steady_clock::now() >= tell_at) {
      if (text_of(left) != told) {
        told = text_of(left);
        remark(fmt::format("carillon drain: tube {}: {}", tube.tube, told));
      }
      tell_at += kTell;
    }
    wait_for(-1, 0, kLook);
  }
}

int drain(const DrainRequest& request) {
  const auto asked = request.asked.read<server::TubeName>();
  const std::string& tube = asked.tube;
  Api api(request.server);
  // A name that was mistyped would refuse puts for good, and the tube that was meant would not; and
  // with --end the other way round. A tube that refuses puts exists.
  if (!request.create) {
    call_tube(tube, request.end ? "" : "; to drain it nevertheless: --create",
              [&] { api.call<server::Tube>("getTube", asked); });
  }
  server::PatchTube patch;
  patch.tube = tube;
  patch.draining = {.given = true, .value = !request.end};
  const auto set = api.call<server::Tube>("patchTube", patch);
  if (request.end) {
    write_result(request.json, {{"tube", tube}, {"puts", "taken"}},
                 fmt::format("tube {} takes jobs again", tube));
    return kSuccess;
  }
  const queue::JobCounts left = request.wait ? wait_until_empty(api, asked) : set.jobs;
  write_result(request.json,
               {{"tube", tube},
                {"puts", "refused"},
                {"ready", left.ready},
                {"delayed", left.delayed},
                {"reserved", left.reserved},
                {"buried", left.buried}},
               fmt::format("tube {}: {}", tube, text_of(left)));
  return kSuccess;
}

// --- tube

std::string parse_group(const std::string& text) {
  if (server::is_key(text)) return text;
  throw std::invalid_argument(fmt::format("\"{}\": a group has {}", text, server::kKeyRule));
}

struct TubeRequest : ApiRequest {
  std::string action;
  std::string tube;
  std::string group;
};

constexpr std::array<std::string_view, 2> kTubeActions = {"set", "show"};

// A burst is that of a rate which is set already, or by the same command.
void throw_usage(const TubeRequest& request, const Refusal& refusal) {
  for (const std::string rate : {"/limits/rate", "/limits/put_rate"}) {
    const auto is_of_rate = [&](const server::FieldFault& fault) {
      return fault.pointer == rate + "/jobs";
    };
    const bool lacks_rate = std::any_of(refusal.faults.begin(), refusal.faults.end(), is_of_rate);
    if (lacks_rate && !request.asked.has(rate))
      throw UsageError(request.asked.argument_within(rate) + " needs a rate");
  }
  request.asked.throw_usage(refusal);
}

void set_tube(const TubeRequest& request) try {
  if (request.asked.is_empty()) throw UsageError("write what to set, as --max-running 10");
  Api api(request.server);
  if (request.group.empty()) {
    if (request.asked.has("/weight")) throw UsageError("--weight needs a --group");
    auto patch = request.asked.read<server::PatchTube>();
    patch.tube = request.tube;
    api.call<server::Tube>("patchTube", patch);
  } else {
    for (const char* const field : {"/limits/put_rate", "/retention", "/retry"})
      if (const auto argument = request.asked.argument_within(field); !argument.empty())
        throw UsageError(argument + " is not for a --group");
    auto patch = request.asked.read<server::PatchGroup>();
    patch.tube = request.tube;
    patch.group = request.group;
    api.call("patchGroup", patch);
  }
  write_result(request.json, {{"tube", request.tube}, {"result", "set"}},
               "set tube " + request.tube);
} catch (const Refusal& refusal) {
  throw_usage(request, refusal);
}

// `tube show` has the names of `stats --tube`.
void add_rate(json::object& shown, const std::string& name,
              const server::Patch<server::RatePatch>& rate, std::string_view burst) {
  if (!rate.value) return;
  shown[name] = rate.value->jobs.value.value_or(0);
  shown[name + "-period-ms"] = rate.value->per.value.value_or(server::Duration()).ms;
  shown[burst] = rate.value->burst.value.value_or(1);
}

void add_unless_0(json::object& shown, std::string_view name, std::uint64_t number) {
  if (number > 0) shown[name] = number;
}

void add_retry(json::object& shown, const server::RetryPatch& retry) {
  const auto backoff = retry.backoff.value.value_or(server::BackoffPatch());
  add_unless_0(shown, "max-attempts", retry.max_attempts.value.value_or(0));
  add_unless_0(shown, "backoff-ms", backoff.initial.value.value_or(server::Duration()).ms);
  add_unless_0(shown, "backoff-longest-ms", backoff.max.value.value_or(server::Duration()).ms);
  add_unless_0(shown, "jitter-percent", backoff.jitter.value.value_or(0));
  if (retry.lost_fails.value.value_or(false)) shown["lost"] = "fails";
}

json::object shown_of(const server::Tube& tube) {
  json::object shown{{"name", tube.name},
                     {"current-jobs-ready", tube.jobs.ready},
                     {"current-jobs-reserved", tube.jobs.reserved},
                     {"current-waiting", tube.waiting}};
  if (tube.retry) add_retry(shown, *tube.retry);
  add_unless_0(shown, "max-running", tube.limits.max_running.value.value_or(0));
  add_rate(shown, "rate", tube.limits.rate, "burst");
  add_rate(shown, "put-rate", tube.limits.put_rate, "put-burst");
  if (tube.retention) shown["retention-ms"] = tube.retention->ms;
  add_unless_0(shown, "total-puts-too-fast", tube.puts_too_fast);
  add_unless_0(shown, "total-dead-deleted", tube.dead_deleted);
  if (tube.draining) shown["puts"] = "refused";
  if (tube.paused) shown["paused"] = "yes";
  return shown;
}

json::object shown_of(const server::Group& group) {
  json::object shown{{"group", group.name.bytes},
                     {"tube", group.tube},
                     {"current-jobs-ready", group.jobs.ready},
                     {"current-jobs-reserved", group.jobs.reserved},
                     {"weight", group.weight}};
  add_unless_0(shown, "max-running", group.limits.max_running.value.value_or(0));
  add_rate(shown, "rate", group.limits.rate, "burst");
  return shown;
}

json::object fetch(const TubeRequest& request) try {
  Api api(request.server);
  const std::string& tube = request.tube;
  const std::string& group = request.group;
  if (group.empty())
    return shown_of(api.call<server::Tube>("getTube", server::TubeName{.tube = tube}));
  return shown_of(
      api.call<server::Group>("getGroup", server::GroupName{.tube = tube, .group = group}));
} catch (const Refusal& refusal) {
  if (request.group.empty()) throw_no_tube(refusal, request.tube);
  if (refusal.status != 404) throw;
  throw Failure(fmt::format("tube {} has no group {}: nothing is set for it, and it has no jobs",
                            request.tube, request.group));
}

int tube(const TubeRequest& request) {
  if (request.action == "set") return set_tube(request), kSuccess;
  if (!request.asked.is_empty())
    throw UsageError(fmt::format("{} is for set", request.asked.first_argument()));
  write_fields(fetch(request), request.json);
  return kSuccess;
}

constexpr Setting kGroupSettings[] = {
    {"weight", "N", "For --group: a group with twice the weight gets twice as many turns (1)"}};
constexpr Setting kTubeSettings[] = {
    {"max_running", "N",
     "At most N jobs are reserved at once. A restart ends reservations on port 11300"},
    {"rate", "N/TIME", "Jobs that go out per time, evenly: 100/1m"},
    {"burst", "N", "Maximum burst for --rate, after a rest (1)"},
    {"put_rate", "N/TIME", "Jobs that may be put per time; more are refused"},
    {"put_burst", "N", "Maximum burst for --put-rate, after a rest (1)"},
    {"retention", "DURATION", "Dead jobs are deleted after this time (0: never)"}};

}  // namespace

void add_pause(CLI::App& command, int& exit_code) {
  ApiRequest& request = set_action(command, exit_code, kPauseExamples, pause);
  request.asked.add_arguments(command, server::kShape<server::PauseTube>,
                              {.positionals = "tube duration"});
  add_json_and_server(command, request, R"(Print {"tube":...,"pause_s":...})");
}

void add_resume(CLI::App& command, int& exit_code) {
  ApiRequest& request = set_action(command, exit_code, kResumeExamples, resume);
  request.asked.add_arguments(command, server::kShape<server::TubeName>, {.positionals = "tube"});
  add_json_and_server(command, request, R"(Print {"tube":...,"pause_s":0})");
}

void add_kick(CLI::App& command, int& exit_code) {
  KickRequest& request = set_action(command, exit_code, kKickExamples, kick);
  request.asked.add_arguments(command, server::kShape<server::KickTube>,
                              {.positionals = "max:N",
                               .helps = {{"max", "At most this many jobs (default: 1)"},
                                         {"tube", "Of this tube (default: default)"}}});
  add_value(command, "--job ID", request.job, parse_job_id, "This one job, wherever it is");
  add_json_and_server(command, request, R"(Print {"tube":...,"kicked":...}, or with --job its id)");
}

void add_drain(CLI::App& command, int& exit_code) {
  DrainRequest& request = set_action(command, exit_code, kDrainExamples, drain);
  request.asked.add_arguments(command, server::kShape<server::TubeName>, {.positionals = "tube"});
  const Argument wait =
      add_flag(command, "--wait", request.wait, "Wait until it is empty; tell how far it is");
  const Argument end =
      add_flag(command, "--end", request.end, "Let the tube take jobs again").excludes(wait);
  add_flag(command, "--create", request.create, "Also if there is no such tube yet").excludes(end);
  add_json_and_server(command, request, R"(Print {"tube":...,"puts":...,"ready":...})");
}

void add_tube(CLI::App& command, int& exit_code) {
  TubeRequest& request = set_action(command, exit_code, kTubeExamples, tube);
  add_choice(command, "ACTION", request.action, kTubeActions, "set or show").required();
  add_value(command, "NAME", request.tube, parse_tube, "The tube").required();
  add_value(command, "--group GROUP", request.group, parse_group, "Only for this group");
  add_settings(command, request.asked, FileObject::kGroup, kGroupSettings);
  add_settings(command, request.asked, FileObject::kTube, kTubeSettings);
  add_retry_settings(command, request.asked, FileObject::kTube);
  add_json_and_server(command, request, "Print one JSON object (show)");
}

}  // namespace carillon::cli
