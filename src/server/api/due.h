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
struct Words<DueUnit> {
  static constexpr std::array<std::string_view, 3> all = {"minute", "hour", "day"};
};

struct GetDue {
  std::string tube;
  DueUnit by = DueUnit::kMinute;
  std::optional<std::uint32_t> spans;
};
inline constexpr std::array kGetDueFields = {
    field<&GetDue::tube>("tube", "The tube.", kTubeRule),
    field<&GetDue::by>("by", "What is counted by: minute, hour or day.", {.usual = "minute"}),
    field<&GetDue::spans>("spans", "How many of these; 60, 24 or 30, if nothing is said.",
                          {.least = 1, .most = 1'000})};
template <>
inline constexpr Shape kShape<GetDue> = {.name = "GetDue", .fields = kGetDueFields};

struct DueSpan {
  Moment from;
  Moment before;
  std::uint64_t jobs = 0;
  bool estimated = false;
};
inline constexpr std::array kDueSpanFields = {
    field<&DueSpan::from>("from", "Where it begins."),
    field<&DueSpan::before>("before", "Where it ends."),
    field<&DueSpan::jobs>("jobs", "Jobs that are due in it."),
    field<&DueSpan::estimated>("estimated", "Not all of them were counted.")};
template <>
inline constexpr Shape kShape<DueSpan> = {.name = "DueSpan", .fields = kDueSpanFields};

struct Due {
  Moment now;
  std::uint64_t due = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  std::vector<DueSpan> spans;
  std::uint64_t later = 0;
  bool later_estimated = false;
};
inline constexpr std::array kDueFields = {
    field<&Due::now>("now", "Where the first span begins."),
    field<&Due::due>("due", "Jobs that are ready or reserved."),
    field<&Due::delayed>("delayed", "Jobs that are not due."),
    field<&Due::buried>("buried", "Jobs that nobody gets before a kick or retry."),
    field<&Due::spans>("spans", "Those that have jobs, the nearest first."),
    field<&Due::later>("later", "Jobs that are due after the last span."),
    field<&Due::later_estimated>("later_estimated", "Not all of them were counted.")};
template <>
inline constexpr Shape kShape<Due> = {.name = "Due", .fields = kDueFields};

}  // namespace carillon::server
