// Applies patches to limits and retry policies, and shows these (limits.h).
#include "server/api/limits.h"

#include <algorithm>

namespace carillon::server {

namespace {

template <class T>
bool takes_away(const Patch<T>& patch) {
  return patch.given && !patch.value;
}

void apply_rate(Reader& reader, std::string_view name, const Patch<RatePatch>& patch,
                queue::Limits& limits) {
  if (takes_away(patch)) limits.rate = limits.period = limits.burst = 0;
  if (!patch.value) return;
  const RatePatch& rate = *patch.value;
  const bool has_one = limits.rate > 0;
  reader.within(name, [&] {
    if (!rate.jobs.value && (!has_one || rate.jobs.given))
      reader.fault("jobs", "how many jobs in each period?");
    if (!rate.per.value && (!has_one || rate.per.given))
      reader.fault("per", "how long is a period?");
  });
  limits.rate = rate.jobs.value.value_or(limits.rate);
  if (rate.per.value) limits.period = rate.per.value->ms;
  limits.burst = rate.burst.value.value_or(has_one && !rate.burst.given ? limits.burst : 1);
}

Patch<RatePatch> rate_of(const queue::Limits& limits) {
  if (limits.rate == 0) return {};
  return {.given = true,
          .value = RatePatch{.jobs = {true, limits.rate},
                             .per = {true, Duration{limits.period}},
                             .burst = {true, limits.burst}}};
}

Patch<std::uint64_t> running_of(const queue::Limits& limits) {
  if (limits.max_running == 0) return {};
  return {true, limits.max_running};
}

void apply_running(const Patch<std::uint64_t>& patch, queue::Limits& limits) {
  if (patch.given) limits.max_running = patch.value.value_or(0);
}

void apply_backoff(Reader& reader, const BackoffPatch& patch, queue::RetryPolicy& policy) {
  const bool was_fixed = policy.backoff > 0 && policy.backoff_max <= policy.backoff;
  const bool fixed = patch.type ? *patch.type == BackoffType::kFixed : was_fixed;
  if (fixed) policy.backoff_max = 0;
  if (patch.initial.given) policy.backoff = patch.initial.value.value_or(Duration()).ms;
  if (patch.max.given) policy.backoff_max = patch.max.value.value_or(Duration()).ms;
  if (patch.jitter.given) policy.jitter = patch.jitter.value.value_or(0);
  if (fixed && policy.backoff_max > 0) reader.fault("max", "a fixed back-off has no bound");
  if (!fixed && policy.backoff == 0 && policy.backoff_max > 0)
    reader.fault("initial", "0 ms: twice 0 is 0, so an exponential back-off begins with 1 ms");
  if (!fixed && policy.backoff_max < policy.backoff)
    reader.fault("max", "an exponential back-off needs a bound, no shorter than its first delay");
}

}  // namespace

void apply(Reader& reader, const GroupLimits& patch, queue::Limits& limits) {
  apply_running(patch.max_running, limits);
  apply_rate(reader, "rate", patch.rate, limits);
}

void apply(Reader& reader, const TubeLimits& patch, queue::Limits& limits,
           queue::Limits& put_rate) {
  apply_running(patch.max_running, limits);
  apply_rate(reader, "rate", patch.rate, limits);
  apply_rate(reader, "put_rate", patch.put_rate, put_rate);
}

GroupLimits limits_of(const queue::Limits& limits) {
  return {.max_running = running_of(limits), .rate = rate_of(limits)};
}

TubeLimits limits_of(const queue::Limits& limits, const queue::Limits& put_rate) {
  return {
      .max_running = running_of(limits), .rate = rate_of(limits), .put_rate = rate_of(put_rate)};
}

void apply(Reader& reader, const RetryPatch& patch, queue::RetryPolicy& policy) {
  if (patch.max_attempts.given) policy.max_attempts = patch.max_attempts.value.value_or(0);
  if (patch.lost_fails.given) policy.lost_fails = patch.lost_fails.value.value_or(false);
  if (takes_away(patch.backoff)) policy.backoff = policy.backoff_max = policy.jitter = 0;
  if (!patch.backoff.value) return;
  reader.within("backoff", [&] { apply_backoff(reader, *patch.backoff.value, policy); });
}

RetryPatch retry_of(const queue::RetryPolicy& policy) {
  const bool fixed = policy.backoff == 0 || policy.backoff_max <= policy.backoff;
  BackoffPatch backoff{.type = fixed ? BackoffType::kFixed : BackoffType::kExponential,
                       .initial = {true, Duration{policy.backoff}},
                       .max = {},
                       .jitter = {true, policy.jitter}};
  if (!fixed) backoff.max = {true, Duration{policy.backoff_max}};
  return {.max_attempts = {true, policy.max_attempts},
          .backoff = {true, std::move(backoff)},
          .lost_fails = {true, policy.lost_fails}};
}

}  // namespace carillon::server
