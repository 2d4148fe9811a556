// How many jobs of a tube are due in each minute, hour or day to come
// (carillon/queue/due_counts.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/operation.h"

namespace carillon::server {

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

}  // namespace carillon::server
