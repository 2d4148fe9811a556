// Requests and answers about the server: its counts, the samples of the feed, and the audit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/feed.h"
#include "server/api/field.h"
#include "server/api/tubes.h"

namespace carillon::server {

// --- Requests.

struct GetHistory {
  std::uint32_t seconds = Feed::kMostSamples;
};
inline constexpr std::array kGetHistoryFields = {
    field<&GetHistory::seconds>("seconds", "The last ones; all, if nothing is said.",
                                {.least = 1, .most = Feed::kMostSamples})};
template <>
inline constexpr Shape kShape<GetHistory> = {.name = "GetHistory", .fields = kGetHistoryFields};

struct GetAudit {
  std::uint32_t limit = Feed::kMostActions;
};
inline constexpr std::array kGetAuditFields = {
    field<&GetAudit::limit>("limit", "The newest ones; all, if nothing is said.",
                            {.least = 1, .most = Feed::kMostActions})};
template <>
inline constexpr Shape kShape<GetAudit> = {.name = "GetAudit", .fields = kGetAuditFields};

// --- Answers.

enum class HealthStatus : std::uint8_t { kOk, kReady };
template <>
struct Words<HealthStatus> {
  static constexpr std::array<std::string_view, 2> all = {"ok", "ready"};
};
struct Health {
  HealthStatus status = HealthStatus::kOk;
};
inline constexpr std::array kHealthFields = {field<&Health::status>("status", "How it is.")};
template <>
inline constexpr Shape kShape<Health> = {.name = "Health", .fields = kHealthFields};

struct SampleLateness {
  std::optional<double> p50;
  std::optional<double> p99;
  std::optional<double> max;
};
inline constexpr std::array kSampleLatenessFields = {
    field<&SampleLateness::p50>("p50", "Half of the jobs were at most this late.",
                                {.shows_null = true}),
    field<&SampleLateness::p99>("p99", "99 % were.", {.shows_null = true}),
    field<&SampleLateness::max>("max", "All were.", {.shows_null = true})};
template <>
inline constexpr Shape kShape<SampleLateness> = {.name = "SampleLateness",
                                                 .fields = kSampleLatenessFields};

// In seconds, as every answer has it.
SampleLateness shown_lateness(const Feed::RecentLateness& lateness);

struct ServerStats {
  std::string version;
  std::string id;
  std::string host;
  std::uint64_t pid = 0;
  std::uint64_t uptime_seconds = 0;
  queue::JobCounts jobs;
  std::uint64_t tubes = 0;
  std::uint64_t waiting = 0;
  std::uint64_t fired = 0;
  std::uint64_t deleted = 0;
  std::uint64_t timeouts = 0;
  SampleLateness lateness;
  std::uint64_t connections = 0;
  std::uint64_t connections_total = 0;
  bool draining = false;
};
inline constexpr std::array kServerStatsFields = {
    field<&ServerStats::version>("version", "Of the program."),
    field<&ServerStats::id>("id", "Of the process; another one after each start."),
    field<&ServerStats::host>("host", "The machine's name."),
    field<&ServerStats::pid>("pid", "Of the process."),
    field<&ServerStats::uptime_seconds>("uptime_seconds", "Since the start."),
    field<&ServerStats::jobs>("jobs", "Jobs of all tubes, by state."),
    field<&ServerStats::tubes>("tubes", "How many tubes."),
    field<&ServerStats::waiting>("waiting", "Workers that wait for a job."),
    field<&ServerStats::fired>("fired", "Delayed jobs that were due, since the start."),
    field<&ServerStats::deleted>("deleted", "Jobs that were deleted, since the start."),
    field<&ServerStats::timeouts>("timeouts", "Jobs whose workers were too slow, since the start."),
    field<&ServerStats::lateness>("lateness", "Of the jobs of the last ten seconds, in seconds."),
    field<&ServerStats::connections>("connections", "Open ones, of both protocols."),
    field<&ServerStats::connections_total>("connections_total", "All since the start."),
    field<&ServerStats::draining>("draining", "Puts are refused (SIGUSR1).")};
template <>
inline constexpr Shape kShape<ServerStats> = {.name = "Stats", .fields = kServerStatsFields};

// --- A sample of the feed, which is an event and a part of the history.

struct SampleJobs {
  std::uint64_t delayed = 0;
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t buried = 0;
};
inline constexpr std::array kSampleJobsFields = {
    field<&SampleJobs::delayed>("delayed", "Jobs that are not due."),
    field<&SampleJobs::ready>("ready", "Jobs that a worker may have."),
    field<&SampleJobs::reserved>("reserved", "Jobs that workers have."),
    field<&SampleJobs::buried>("buried", "Jobs that nobody gets before a kick or retry.")};
template <>
inline constexpr Shape kShape<SampleJobs> = {.name = "SampleJobs", .fields = kSampleJobsFields};

struct SampleTotals {
  std::uint64_t put = 0;
  std::uint64_t reserved = 0;
  std::uint64_t deleted = 0;
  std::uint64_t failed = 0;
  std::uint64_t dead = 0;
  std::uint64_t kicked = 0;
  std::uint64_t time_outs = 0;
};
inline constexpr std::array kSampleTotalsFields = {
    field<&SampleTotals::put>("put", "Jobs that were put."),
    field<&SampleTotals::reserved>("reserved", "Times that a worker got a job."),
    field<&SampleTotals::deleted>("deleted", "Jobs that were deleted."),
    field<&SampleTotals::failed>("failed", "Attempts that have failed."),
    field<&SampleTotals::dead>("dead", "Jobs that were buried after their last attempt."),
    field<&SampleTotals::kicked>("kicked", "Jobs that were kicked."),
    field<&SampleTotals::time_outs>("time_outs", "Jobs whose workers were too slow.")};
template <>
inline constexpr Shape kShape<SampleTotals> = {.name = "SampleTotals",
                                               .fields = kSampleTotalsFields};

struct SampleRates {
  double put = 0;
  double fired = 0;
  double acked = 0;
};
inline constexpr std::array kSampleRatesFields = {
    field<&SampleRates::put>("put", "Jobs put per second."),
    field<&SampleRates::fired>("fired", "Jobs that became due per second."),
    field<&SampleRates::acked>("acked", "Jobs deleted per second.")};
template <>
inline constexpr Shape kShape<SampleRates> = {.name = "SampleRates", .fields = kSampleRatesFields};

struct Sample {
  std::uint64_t at = 0;
  SampleJobs jobs;
  std::uint64_t tubes = 0;
  std::uint64_t connections = 0;
  std::uint64_t waiting = 0;
  SampleTotals totals;
  SampleRates rates;
  SampleLateness lateness;
  std::optional<double> oldest_ready_age;
  std::optional<std::uint64_t> next_due;
  std::uint64_t memory = 0;
  bool draining = false;
};
inline constexpr std::array kSampleFields = {
    field<&Sample::at>("at", "When it was taken."),
    field<&Sample::jobs>("jobs", "Jobs of all tubes, by state."),
    field<&Sample::tubes>("tubes", "How many tubes."),
    field<&Sample::connections>("connections", "Open connections."),
    field<&Sample::waiting>("waiting", "Workers that wait for a job."),
    field<&Sample::totals>("totals", "Since the start."),
    field<&Sample::rates>("rates", "Of the last second."),
    field<&Sample::lateness>("lateness", "Of the last ten seconds."),
    field<&Sample::oldest_ready_age>("oldest_ready_age", "Null while nobody listens.",
                                     {.shows_null = true}),
    field<&Sample::next_due>("next_due", "The next moment at which a job is due.",
                             {.shows_null = true}),
    field<&Sample::memory>("memory", "Bytes of connections."),
    field<&Sample::draining>("draining", "Puts are refused (SIGUSR1).")};
template <>
inline constexpr Shape kShape<Sample> = {
    .name = "Sample",
    .fields = kSampleFields,
    .help = "In ms since 1970; ages and lateness in s; docs/http.md#events."};

struct History {
  std::vector<Sample> samples;
};
inline constexpr std::array kHistoryFields = {
    field<&History::samples>("samples", "The oldest first.")};
template <>
inline constexpr Shape kShape<History> = {.name = "History", .fields = kHistoryFields};

inline constexpr std::array kActionFields = {
    field<&Action::at>("at", "When, in ms since 1970."),
    field<&Action::who>("who", "The client, behind the name of its token."),
    field<&Action::action>("action", "What was asked for: jobs:cancel."),
    field<&Action::target>("target", "A tube, a schedule, an endpoint."),
    field<&Action::outcome>("outcome", "What came of it, or why it was refused.")};
template <>
inline constexpr Shape kShape<Action> = {.name = "Action", .fields = kActionFields};

struct Audit {
  std::vector<Action> actions;
};
inline constexpr std::array kAuditFields = {field<&Audit::actions>("actions", "The newest first.")};
template <>
inline constexpr Shape kShape<Audit> = {.name = "Audit", .fields = kAuditFields};

}  // namespace carillon::server
