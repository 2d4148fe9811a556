// Fields for the limits and retries of tubes, groups and jobs, to read and to write.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "carillon/queue/job.h"
#include "carillon/queue/limits.h"
#include "server/api/field.h"

namespace carillon::server {

// --- A rate.

struct RatePatch {
  Patch<std::uint64_t> jobs;
  Patch<Duration> per;
  Patch<std::uint64_t> burst;
};
inline constexpr std::array kRateFields = {
    field<&RatePatch::jobs>("jobs", "Jobs in each period.",
                            {.least = 1, .most = queue::kMostTokens}),
    field<&RatePatch::per>("per", "The period.", {.least = 1, .most = queue::kLongestPeriod}),
    field<&RatePatch::burst>("burst", "Jobs at once after a rest.",
                             {.least = 1, .most = queue::kMostTokens, .usual = "1"})};
template <>
inline constexpr Shape kShape<RatePatch> = {.name = "Rate", .fields = kRateFields};

// --- Limits. A group has no put_rate.

struct GroupLimits {
  Patch<std::uint64_t> max_running;
  Patch<RatePatch> rate;
};
inline constexpr std::array kGroupLimitsFields = {
    field<&GroupLimits::max_running>(
        "max_running", "Jobs with leases. A restart ends leases: for a time more jobs may run.",
        {.least = 1, .most = UINT32_MAX}),
    field<&GroupLimits::rate>("rate", "How fast jobs go out.")};
template <>
inline constexpr Shape kShape<GroupLimits> = {.name = "Limits", .fields = kGroupLimitsFields};

struct TubeLimits {
  Patch<std::uint64_t> max_running;
  Patch<RatePatch> rate;
  Patch<RatePatch> put_rate;
};
inline constexpr std::array kTubeLimitsFields = {
    field<&TubeLimits::max_running>(
        "max_running", "Jobs with leases. A restart ends leases: for a time more jobs may run.",
        {.least = 1, .most = UINT32_MAX}),
    field<&TubeLimits::rate>("rate", "How fast jobs go out."),
    field<&TubeLimits::put_rate>("put_rate", "How fast jobs may be put.")};
template <>
inline constexpr Shape kShape<TubeLimits> = {.name = "TubeLimits", .fields = kTubeLimitsFields};

// A rate keeps the values that the patch does not name. Null sets the value that holds without the
// field (RFC 7396). Both functions note missing fields.
void apply(Reader& reader, const GroupLimits& patch, queue::Limits& limits);
void apply(Reader& reader, const TubeLimits& patch, queue::Limits& limits, queue::Limits& put_rate);
GroupLimits limits_of(const queue::Limits& limits);
TubeLimits limits_of(const queue::Limits& limits, const queue::Limits& put_rate);

// --- Retries.

enum class BackoffType : std::uint8_t { kExponential, kFixed };
template <>
struct Words<BackoffType> {
  static constexpr std::array<std::string_view, 2> all = {"exponential", "fixed"};
};
struct BackoffPatch {
  std::optional<BackoffType> type;
  Patch<Duration> initial;
  Patch<Duration> max;
  Patch<std::uint32_t> jitter;
};
inline constexpr std::array kBackoffFields = {
    field<&BackoffPatch::type>("type", "Whether it doubles with each attempt."),
    field<&BackoffPatch::initial>("initial", "The first one.", {.most = queue::kLastDue}),
    field<&BackoffPatch::max>("max", "The longest of an exponential one.",
                              {.most = queue::kLastDue}),
    field<&BackoffPatch::jitter>("jitter", "Percent.", {.most = 100})};
template <>
inline constexpr Shape kShape<BackoffPatch> = {.name = "Backoff", .fields = kBackoffFields};

struct RetryPatch {
  Patch<std::uint32_t> max_attempts;
  Patch<BackoffPatch> backoff;
  Patch<bool> lost_fails;
};
inline constexpr std::array kRetryFields = {
    field<&RetryPatch::max_attempts>("max_attempts",
                                     "Failed attempts of a job before it is dead; 0: no bound.",
                                     {.most = UINT32_MAX}),
    field<&RetryPatch::backoff>("backoff", "How long after a failed attempt the job comes again."),
    field<&RetryPatch::lost_fails>("lost_fails", "A lost connection is a failed attempt.")};
template <>
inline constexpr Shape kShape<RetryPatch> = {.name = "Retry", .fields = kRetryFields};

void apply(Reader& reader, const RetryPatch& patch, queue::RetryPolicy& policy);
RetryPatch retry_of(const queue::RetryPolicy& policy);

}  // namespace carillon::server
