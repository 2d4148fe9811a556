// What a worker asks for by a request: jobs, and what becomes of each. Leases (leases.h) hold them.
#pragma once

#include <array>
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
inline constexpr std::array kReserveFields = {
    field<&Reserve::tube>("tube", "The tube.", kTubeRule),
    field<&Reserve::max>("max", "At most this many jobs.",
                         {.least = 1, .most = 1'000, .usual = "1"}),
    field<&Reserve::wait>("wait", "For the first one; at most 24h.",
                          {.most = kLongestLease, .usual = "0s"}),
    field<&Reserve::lease>("lease", "1s to 24h; each job's ttr if nothing is said.", kLeaseRule),
    field<&Reserve::worker>("worker", "A name for the stories of jobs.",
                            {.most = queue::kMaxWorkerName})};
template <>
inline constexpr Shape kShape<Reserve> = {.name = "Reserve", .fields = kReserveFields};

struct Reserved {
  std::vector<Job> jobs;
};
inline constexpr std::array kReservedFields = {
    field<&Reserved::jobs>("jobs", "Those that are ready; perhaps none.")};
template <>
inline constexpr Shape kShape<Reserved> = {.name = "Reserved", .fields = kReservedFields};

inline constexpr std::string_view kTokenOfLease = "What reserve calls lease.";

struct LeaseToken {
  std::string token;
};
inline constexpr std::array kLeaseTokenFields = {field<&LeaseToken::token>("token", kTokenOfLease)};
template <>
inline constexpr Shape kShape<LeaseToken> = {.name = "LeaseToken", .fields = kLeaseTokenFields};

struct Nack {
  std::string token;
  std::optional<Duration> delay;
  std::optional<std::string> error;
  std::optional<queue::Priority> priority;
  bool failed = true;
};
inline constexpr std::array kNackFields = {
    field<&Nack::token>("token", kTokenOfLease),
    field<&Nack::delay>("delay", "Instead of the back-off."),
    field<&Nack::error>("error", "For the job's story."),
    field<&Nack::priority>("priority", "0 is the most urgent."),
    field<&Nack::failed>("failed", "false: it was no attempt.", {.usual = "true"})};
template <>
inline constexpr Shape kShape<Nack> = {.name = "Nack", .fields = kNackFields};

enum class NackedState : std::uint8_t { kReady, kDelayed, kDead, kCancelled };
template <>
struct Words<NackedState> {
  static constexpr std::array<std::string_view, 4> all = {"ready", "delayed", "dead", "cancelled"};
};
struct Nacked {
  NackedState state = NackedState::kReady;
  std::optional<std::uint32_t> failed_attempts;
  std::optional<Duration> delay;
};
inline constexpr std::array kNackedFields = {
    field<&Nacked::state>("state", "What becomes of the job."),
    field<&Nacked::failed_attempts>("failed_attempts", "How many attempts have failed."),
    field<&Nacked::delay>("delay", "How long until it comes again.")};
template <>
inline constexpr Shape kShape<Nacked> = {.name = "Nacked", .fields = kNackedFields};

struct Extend {
  std::string token;
  std::optional<Duration> lease;
};
inline constexpr std::array kExtendFields = {
    field<&Extend::token>("token", kTokenOfLease),
    field<&Extend::lease>("lease", "1s to 24h; the job's ttr if nothing is said.", kLeaseRule)};
template <>
inline constexpr Shape kShape<Extend> = {.name = "Extend", .fields = kExtendFields};

struct Extended {
  Moment lease_ends;
  bool cancel_requested = false;
};
inline constexpr std::array kExtendedFields = {
    field<&Extended::lease_ends>("lease_ends", "When the lease is over."),
    field<&Extended::cancel_requested>("cancel_requested", "Somebody wants the work to stop.")};
template <>
inline constexpr Shape kShape<Extended> = {.name = "Extended", .fields = kExtendedFields};

}  // namespace carillon::server
