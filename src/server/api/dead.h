// Request and answer of the buried jobs of a tube by the reason of their last failed attempt.
//
//   GET /v1/tubes/mail/dead
//   {"reasons":[{"reason":"exit status 1","jobs":12,"filter":{...},...}],...}
//
// Each reason comes with a filter, which a change of many jobs takes: {"filter":{...}} of
// /v1/jobs:retry.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/api/field.h"
#include "server/api/filters.h"
#include "server/api/page.h"

namespace carillon::server {

struct ListDead {
  std::string tube;
  std::optional<queue::JobCursor> page_token;
};
template <>
inline constexpr auto kFields<ListDead> = fields(field<&ListDead::tube>("The tube.",
                                                                        {.form = &kTubeForm}),
                                                 field<&ListDead::page_token>(kPageTokenHelp));

struct DeadReason {
  Bytes reason;
  Bytes error;
  std::uint64_t jobs = 0;
  std::uint64_t dead = 0;
  Moment oldest{UINT64_MAX};
  Moment newest;
  queue::JobId example_id = 0;
  TubeFilter filter;
};
template <>
inline constexpr auto kFields<DeadReason> =
    fields(field<&DeadReason::reason>("What the errors have in common."),
           field<&DeadReason::error>("What the worker of the example said."),
           field<&DeadReason::jobs>("Buried jobs with this reason.", {.least = 1}),
           field<&DeadReason::dead>("How many of them the server has buried."),
           field<&DeadReason::oldest>("The first of the last attempts."),
           field<&DeadReason::newest>("The last one."),
           field<&DeadReason::example_id>("One of the jobs.", {.least = 1}),
           field<&DeadReason::filter>("It selects these jobs."));

struct Dead {
  std::vector<DeadReason> reasons;
  std::uint64_t other_jobs = 0;
  std::uint64_t looked_at = 0;
  std::optional<bool> incomplete;
  std::optional<queue::JobCursor> next_page_token;
};
template <>
inline constexpr auto kFields<Dead> =
    fields(field<&Dead::reasons>("The reasons, the most frequent first."),
           field<&Dead::other_jobs>("Jobs with further reasons."),
           field<&Dead::looked_at>("Jobs whose reasons were counted."),
           field<&Dead::incomplete>(kIncompleteHelp),
           field<&Dead::next_page_token>(kNextPageHelp, kNextPageRule));

}  // namespace carillon::server
