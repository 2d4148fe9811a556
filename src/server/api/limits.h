// Fields for the limits and retries of tubes, groups and jobs, to read and to write.
#pragma once

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
template <>
inline constexpr auto kFields<RatePatch> = fields(
    Schema{"Rate"},
    field<&RatePatch::jobs>("Jobs in each period.", {.least = 1, .most = queue::kMostTokens}),
    field<&RatePatch::per>("The period.", {.least = 1, .most = queue::kLongestPeriod}),
    field<&RatePatch::burst>("Jobs at once after a rest.",
                             {.least = 1, .most = queue::kMostTokens, .usual = "1"}));

// --- Limits. A group has no put_rate.

struct GroupLimits {
  Patch<std::uint64_t> max_running;
  Patch<RatePatch> rate;
};
template <>
inline constexpr auto kFields<GroupLimits> =
    fields(Schema{"Limits"},
           field<&GroupLimits::max_running>(
               "Reserved jobs. A restart ends reservations on port 11300: more may run for a time.",
               {.least = 1, .most = UINT32_MAX}),
           field<&GroupLimits::rate>("How fast jobs go out."));

struct TubeLimits {
  Patch<std::uint64_t> max_running;
  Patch<RatePatch> rate;
  Patch<RatePatch> put_rate;
};
template <>
inline constexpr auto kFields<TubeLimits> =
    fields(field<&TubeLimits::max_running>(
               "Reserved jobs. A restart ends reservations on port 11300: more may run for a time.",
               {.least = 1, .most = UINT32_MAX}),
           field<&TubeLimits::rate>("How fast jobs go out."),
           field<&TubeLimits::put_rate>("How fast jobs may be put."));

// A rate keeps the values that the patch does not name. Null sets the value that holds without the
// field (RFC 7396). Both functions note missing fields.
void apply(Reader& reader, const GroupLimits& patch, queue::Limits& limits);
void apply(Reader& reader, const TubeLimits& patch, queue::Limits& limits, queue::Limits& put_rate);
GroupLimits limits_of(const queue::Limits& limits);
TubeLimits limits_of(const queue::Limits& limits, const queue::Limits& put_rate);

// --- Retries.

enum class BackoffType : std::uint8_t { kExponential, kFixed };
template <>
inline constexpr auto kWords<BackoffType> = words("exponential", "fixed");
struct BackoffPatch {
  std::optional<BackoffType> type;
  Patch<Duration> initial;
  Patch<Duration> max;
  Patch<std::uint32_t> jitter;
};
template <>
inline constexpr auto kFields<BackoffPatch> = fields(
    Schema{"Backoff"}, field<&BackoffPatch::type>("Whether it doubles with each attempt."),
    field<&BackoffPatch::initial>("The first one.", {.most = queue::kLastDue}),
    field<&BackoffPatch::max>("The longest of an exponential one.", {.most = queue::kLastDue}),
    field<&BackoffPatch::jitter>("Percent.", {.most = 100}));

struct RetryPatch {
  Patch<std::uint32_t> max_attempts;
  Patch<BackoffPatch> backoff;
  Patch<bool> lost_fails;
};
template <>
inline constexpr auto kFields<RetryPatch> = fields(
    Schema{"Retry"},
    field<&RetryPatch::max_attempts>("Failed attempts of a job before it is dead; 0: no bound.",
                                     {.most = UINT32_MAX}),
    field<&RetryPatch::backoff>("How long after a failed attempt the job comes again."),
    field<&RetryPatch::lost_fails>("A lost connection is a failed attempt."));

void apply(Reader& reader, const RetryPatch& patch, queue::RetryPolicy& policy);
RetryPatch retry_of(const queue::RetryPolicy& policy);

}  // namespace carillon::server
