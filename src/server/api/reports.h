// Counts of a tube's jobs: by the time at which they are due, and by the reason for which they are
// dead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/field.h"
#include "server/api/filters.h"
#include "server/api/operation.h"

namespace carillon::server {

// --- How many jobs are due in each minute, hour or day to come (carillon/queue/due_counts.h).

enum class DueUnit : std::uint8_t { kMinute, kHour, kDay };
template <>
inline constexpr auto kWords<DueUnit> = words("minute", "hour", "day");

struct GetDue {
  std::string tube;
  DueUnit by = DueUnit::kMinute;
  std::optional<std::uint32_t> spans;
};
template <>
inline constexpr auto kFields<GetDue> =
    fields(field<&GetDue::tube>("The tube.", kTubeRule),
           field<&GetDue::by>("What is counted by: minute, hour or day.", {.usual = "minute"}),
           field<&GetDue::spans>("How many of these; 60, 24 or 30, if nothing is said.",
                                 {.least = 1, .most = 1'000}));

struct DueSpan {
  Moment from;
  Moment before;
  std::uint64_t jobs = 0;
  bool estimated = false;
};
template <>
inline constexpr auto kFields<DueSpan> =
    fields(field<&DueSpan::from>("Where it begins."), field<&DueSpan::before>("Where it ends."),
           field<&DueSpan::jobs>("Jobs that are due in it."),
           field<&DueSpan::estimated>("Not all of them were counted."));

struct Due {
  Moment now;
  std::uint64_t due = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  std::vector<DueSpan> spans;
  std::uint64_t later = 0;
  bool later_estimated = false;
};
template <>
inline constexpr auto kFields<Due> =
    fields(field<&Due::now>("Where the first span begins."),
           field<&Due::due>("Jobs that are ready or reserved."),
           field<&Due::delayed>("Jobs that are not due."),
           field<&Due::buried>("Jobs that nobody gets before a kick or retry."),
           field<&Due::spans>("Those that have jobs, the nearest first."),
           field<&Due::later>("Jobs that are due after the last span."),
           field<&Due::later_estimated>("Not all of them were counted."));

// --- The times at which delayed jobs are due: as the dials of a clock, as the next
// minute, hour, day and month, and as the storms that come.

enum class DialUnit : std::uint8_t { kSecond, kMinute, kHour, kDay };
template <>
inline constexpr auto kWords<DialUnit> = words("second", "minute", "hour", "day");

struct NextJobs {
  DialUnit unit = DialUnit::kSecond;
  std::vector<std::uint64_t> jobs = {};
};
template <>
inline constexpr auto kFields<NextJobs> =
    fields(field<&NextJobs::unit>("How long each span is."),
           field<&NextJobs::jobs>("Jobs of each span, the first one from now on."));

struct Dial {
  DialUnit unit = DialUnit::kSecond;
  std::uint64_t slots = 0;
  std::uint64_t hand = 0;
  std::vector<std::uint64_t> jobs = {};
};
template <>
inline constexpr auto kFields<Dial> = fields(
    field<&Dial::unit>("How long each slot is."),
    field<&Dial::slots>("How many slots.", {.least = 1}), field<&Dial::hand>("The slot of now."),
    field<&Dial::jobs>("Jobs of each slot that no finer dial holds."));

struct Storm {
  std::string tube;
  Moment from;
  Moment before;
  std::uint64_t jobs = 0;
  double share = 0;
  bool estimated = false;
};
template <>
inline constexpr auto kFields<Storm> =
    fields(field<&Storm::tube>("Its tube.", {.form = &kTubeForm}),
           field<&Storm::from>("When the minute begins."), field<&Storm::before>("When it ends."),
           field<&Storm::jobs>("Jobs that are due then."),
           field<&Storm::share>("Their share of the delayed jobs, 0 to 1."),
           field<&Storm::estimated>("They were not counted one by one."));

struct Wheel {
  Moment now;
  std::string tube;
  std::uint64_t delayed = 0;
  std::vector<Dial> dials = {};
  std::uint64_t beyond = 0;
  std::vector<NextJobs> next = {};
  std::vector<Storm> storms = {};
  bool exact = true;
  std::optional<Moment> exact_until = {};
};
template <>
inline constexpr auto kFields<Wheel> = fields(
    Schema{.help = "docs/http.md#the-wheel."}, field<&Wheel::now>("The time of the first step."),
    field<&Wheel::tube>("The tube.", {.form = &kTubeForm}),
    field<&Wheel::delayed>("Its delayed jobs."),
    field<&Wheel::dials>("Seconds of this minute, minutes of this hour, and so on."),
    field<&Wheel::beyond>("Jobs that are due after the last dial."),
    field<&Wheel::next>("The next 60 seconds, 60 minutes, 24 hours and 30 days."),
    field<&Wheel::storms>("Minutes of the next 16 hours with a tenth of the jobs."),
    field<&Wheel::exact>("All jobs were counted; else later ones are estimated."),
    field<&Wheel::exact_until>("Jobs due before it were counted.", {.shows_null = true}));

struct GetWheel {
  std::string tube;
};
template <>
inline constexpr auto kFields<GetWheel> =
    fields(field<&GetWheel::tube>("The tube.", {.needed = true, .form = &kTubeForm}));

// --- The buried jobs of a tube by the reason of their last failed attempt.
//
//   GET /v1/tubes/mail/dead
//   {"reasons":[{"reason":"exit status 1","jobs":12,"filter":{...},...}],...}
//
// Each reason comes with a filter, which a change of many jobs takes: {"filter":{...}} of
// /v1/jobs:retry.

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
