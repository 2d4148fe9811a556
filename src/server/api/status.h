// Requests and answers about the server: its counts, the samples of the feed, the audit, and
// checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/feed.h"
#include "server/api/field.h"
#include "server/api/operation.h"
#include "server/api/tubes.h"

namespace carillon::server {

// --- Requests.

struct GetHistory {
  std::uint32_t seconds = Feed::kMostSamples;
};
template <>
inline constexpr auto kFields<GetHistory> = fields(field<&GetHistory::seconds>(
    "The last ones; all, if nothing is said.", {.least = 1, .most = Feed::kMostSamples}));

struct GetAudit {
  std::uint32_t page_size = kUsuallyListed;
  PlaceToken page_token;
};
template <>
inline constexpr auto kFields<GetAudit> = fields(field<&GetAudit::page_size>(kPageSizeHelp,
                                                                             kPageSizeRule),
                                                 field<&GetAudit::page_token>(kPageTokenHelp));

// --- Answers.

enum class HealthStatus : std::uint8_t { kOk, kReady };
template <>
inline constexpr auto kWords<HealthStatus> = words("ok", "ready");
struct Health {
  HealthStatus status = HealthStatus::kOk;
};
template <>
inline constexpr auto kFields<Health> = fields(field<&Health::status>("How it is."));

struct SampleLateness {
  std::optional<std::uint64_t> p50;
  std::optional<std::uint64_t> p99;
  std::optional<std::uint64_t> max;
};
template <>
inline constexpr auto kFields<SampleLateness> = fields(
    field<&SampleLateness::p50>("Half of the jobs were at most this late.", {.shows_null = true}),
    field<&SampleLateness::p99>("99 % were.", {.shows_null = true}),
    field<&SampleLateness::max>("All were.", {.shows_null = true}));

// In ms, as every answer has it.
SampleLateness shown_lateness(const Feed::RecentLateness& lateness);

struct ServerStats {
  std::string version;
  std::string id;
  std::string host;
  std::uint64_t pid = 0;
  std::uint64_t uptime_ms = 0;
  queue::JobCounts jobs;
  std::uint64_t tubes = 0;
  std::uint64_t waiting = 0;
  std::uint64_t fired = 0;
  std::uint64_t acked = 0;
  std::uint64_t timed_out = 0;
  SampleLateness lateness_ms;
  std::uint64_t connections = 0;
  std::uint64_t connections_total = 0;
  bool draining = false;
};
template <>
inline constexpr auto kFields<ServerStats> =
    fields(Schema{"Stats"}, field<&ServerStats::version>("The program's version."),
           field<&ServerStats::id>("A name of the process: another one after each start."),
           field<&ServerStats::host>("The machine's name."),
           field<&ServerStats::pid>("The number of the process."),
           field<&ServerStats::uptime_ms>("Since the start."),
           field<&ServerStats::jobs>("Jobs of all tubes, by state."),
           field<&ServerStats::tubes>("How many tubes."),
           field<&ServerStats::waiting>("Workers that wait for a job."),
           field<&ServerStats::fired>("Delayed jobs that were due, since the start."),
           field<&ServerStats::acked>("Jobs that were done or cancelled, since the start."),
           field<&ServerStats::timed_out>("Jobs whose workers were too slow, since the start."),
           field<&ServerStats::lateness_ms>("How late the jobs of the last ten seconds were."),
           field<&ServerStats::connections>("Open ones, of both protocols."),
           field<&ServerStats::connections_total>("All since the start."),
           field<&ServerStats::draining>("Puts are refused (SIGUSR1)."));

// --- A sample of the feed, which is an event and a part of the history.

struct SampleJobs {
  std::uint64_t delayed = 0;
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t buried = 0;
};
template <>
inline constexpr auto kFields<SampleJobs> =
    fields(field<&SampleJobs::delayed>("Jobs that are not due."),
           field<&SampleJobs::ready>("Jobs that a worker may have."),
           field<&SampleJobs::reserved>("Jobs that workers have."),
           field<&SampleJobs::buried>("Jobs that nobody gets before a kick or retry."));

struct SampleTotals {
  std::uint64_t put = 0;
  std::uint64_t reserved = 0;
  std::uint64_t acked = 0;
  std::uint64_t failed = 0;
  std::uint64_t dead = 0;
  std::uint64_t kicked = 0;
  std::uint64_t timed_out = 0;
};
template <>
inline constexpr auto kFields<SampleTotals> =
    fields(field<&SampleTotals::put>("Jobs that were put."),
           field<&SampleTotals::reserved>("Times that a worker got a job."),
           field<&SampleTotals::acked>("Jobs that were done or cancelled."),
           field<&SampleTotals::failed>("Attempts that have failed."),
           field<&SampleTotals::dead>("Jobs that were buried after their last attempt."),
           field<&SampleTotals::kicked>("Jobs that were kicked."),
           field<&SampleTotals::timed_out>("Jobs whose workers were too slow."));

struct SampleRates {
  double put = 0;
  double fired = 0;
  double acked = 0;
};
template <>
inline constexpr auto kFields<SampleRates> =
    fields(field<&SampleRates::put>("Jobs put per second."),
           field<&SampleRates::fired>("Jobs that became due per second."),
           field<&SampleRates::acked>("Jobs done or cancelled per second."));

struct Sample {
  Moment at;
  SampleJobs jobs;
  std::uint64_t tubes = 0;
  std::uint64_t connections = 0;
  std::uint64_t waiting = 0;
  SampleTotals totals;
  SampleRates rates;
  SampleLateness lateness_ms;
  std::optional<std::uint64_t> oldest_ready_age_ms;
  std::optional<Moment> next_due;
  std::uint64_t memory = 0;
  bool draining = false;
};
template <>
inline constexpr auto kFields<Sample> = fields(
    Schema{.help = "docs/http.md#events."}, field<&Sample::at>("When it was taken."),
    field<&Sample::jobs>("Jobs of all tubes, by state."), field<&Sample::tubes>("How many tubes."),
    field<&Sample::connections>("Open connections."),
    field<&Sample::waiting>("Workers that wait for a job."),
    field<&Sample::totals>("Since the start."),
    field<&Sample::rates>("Per second, in the last second."),
    field<&Sample::lateness_ms>("How late the jobs of the last ten seconds were."),
    field<&Sample::oldest_ready_age_ms>("Null while nobody listens.", {.shows_null = true}),
    field<&Sample::next_due>("The next moment at which a job is due.", {.shows_null = true}),
    field<&Sample::memory>("Bytes of connections."),
    field<&Sample::draining>("Puts are refused (SIGUSR1)."));

struct History {
  std::vector<Sample> samples;
};
template <>
inline constexpr auto kFields<History> = fields(field<&History::samples>("The oldest first."));

template <>
inline constexpr auto kFields<Action> = fields(
    field<&Action::at>("When."), field<&Action::who>("The client, behind the name of its token."),
    field<&Action::action>("What was asked for: jobs:cancel."),
    field<&Action::target>("A tube, a schedule, an endpoint."),
    field<&Action::outcome>("What came of it, or why it was refused."));

struct Audit {
  std::vector<Action> actions;
  std::optional<PlaceToken> next_page_token;
};
template <>
inline constexpr auto kFields<Audit> = fields(field<&Audit::actions>("The newest first."),
                                              field<&Audit::next_page_token>(kNextPageHelp,
                                                                             kNextPageRule));

// --- A checkpoint: the files of all jobs at one moment, which a backup copies
// (net/checkpoint_lease.h).

struct Checkpoint {
  std::uint64_t number = 0;
  std::string path;
};
template <>
inline constexpr auto kFields<Checkpoint> =
    fields(field<&Checkpoint::number>("The last change that is in it."),
           field<&Checkpoint::path>("Its directory, on the server's machine."));

}  // namespace carillon::server
