// What a worker asks for by a request: jobs, and what becomes of each. Leases (leases.h) hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/retry.h"
#include "server/api/job.h"
#include "server/api/operation.h"

namespace carillon::server {

// The longest wait, and the longest lease.
inline constexpr queue::Millis kLongestLease = 86'400'000;

struct Reserve {
  std::string tube;
  std::uint32_t max = 1;
  Duration wait;
  std::optional<Duration> lease;
  std::string worker = "HTTP";
};
inline constexpr Rule kLeaseRule{.least = queue::kMinTtr, .most = kLongestLease};
template <>
inline constexpr auto kFields<Reserve> = fields(
    field<&Reserve::tube>("The tube.", kTubeRule),
    field<&Reserve::max>("At most this many jobs.", {.least = 1, .most = 1'000, .usual = "1"}),
    field<&Reserve::wait>("For the first one; at most 24h.",
                          {.most = kLongestLease, .usual = "0s"}),
    field<&Reserve::lease>("1s to 24h; each job's ttr if nothing is said.", kLeaseRule),
    field<&Reserve::worker>("A name for the stories of jobs.", {.most = queue::kMaxWorkerName}));

struct Reserved {
  std::vector<Job> jobs;
};
template <>
inline constexpr auto kFields<Reserved> =
    fields(field<&Reserved::jobs>("Those that are ready; perhaps none."));

inline constexpr std::string_view kTokenOfLease = "What reserve calls lease.";

struct LeaseToken {
  std::string token;
};
template <>
inline constexpr auto kFields<LeaseToken> = fields(field<&LeaseToken::token>(kTokenOfLease));

struct Nack {
  std::string token;
  std::optional<Duration> delay;
  std::optional<std::string> error;
  std::optional<queue::Priority> priority;
  bool failed = true;
};
template <>
inline constexpr auto kFields<Nack> = fields(
    field<&Nack::token>(kTokenOfLease), field<&Nack::delay>("Instead of the back-off."),
    field<&Nack::error>("For the job's story."), field<&Nack::priority>("0 is the most urgent."),
    field<&Nack::failed>("false: it was no attempt.", {.usual = "true"}));

enum class NackedState : std::uint8_t { kReady, kDelayed, kDead, kCancelled };
template <>
inline constexpr auto kWords<NackedState> = words("ready", "delayed", "dead", "cancelled");
struct Nacked {
  NackedState state = NackedState::kReady;
  std::optional<std::uint32_t> failed_attempts;
  std::optional<queue::Millis> delay_ms;
};
template <>
inline constexpr auto kFields<Nacked> =
    fields(field<&Nacked::state>("What becomes of the job."),
           field<&Nacked::failed_attempts>("How many attempts have failed."),
           field<&Nacked::delay_ms>("How long until it comes again."));

struct Extend {
  std::string token;
  std::optional<Duration> lease;
};
template <>
inline constexpr auto kFields<Extend> =
    fields(field<&Extend::token>(kTokenOfLease),
           field<&Extend::lease>("1s to 24h; the job's ttr if nothing is said.", kLeaseRule));

struct Extended {
  Moment lease_ends;
  bool cancel_requested = false;
};
template <>
inline constexpr auto kFields<Extended> =
    fields(field<&Extended::lease_ends>("When the lease is over."),
           field<&Extended::cancel_requested>("Somebody wants the work to stop."));

}  // namespace carillon::server
