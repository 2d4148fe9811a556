// Answer about the times at which delayed jobs are due: as the dials of a clock, as the next
// minute, hour, day and month, and as the storms that come. Moments are ms since 1970.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/api/field.h"

namespace carillon::server {

enum class DialUnit : std::uint8_t { kSecond, kMinute, kHour, kDay };
template <>
struct Words<DialUnit> {
  static constexpr std::array<std::string_view, 4> all = {"second", "minute", "hour", "day"};
};

struct NextJobs {
  DialUnit unit = DialUnit::kSecond;
  std::vector<std::uint64_t> jobs = {};
};
inline constexpr std::array kNextJobsFields = {
    field<&NextJobs::unit>("unit", "How long each span is."),
    field<&NextJobs::jobs>("jobs", "Jobs of each span, the first one from now on.")};
template <>
inline constexpr Shape kShape<NextJobs> = {.name = "NextJobs", .fields = kNextJobsFields};

struct Dial {
  DialUnit unit = DialUnit::kSecond;
  std::uint64_t slots = 0;
  std::uint64_t hand = 0;
  std::vector<std::uint64_t> jobs = {};
};
inline constexpr std::array kDialFields = {
    field<&Dial::unit>("unit", "How long each slot is."),
    field<&Dial::slots>("slots", "How many slots.", {.least = 1}),
    field<&Dial::hand>("hand", "The slot of now."),
    field<&Dial::jobs>("jobs", "Jobs of each slot that no finer dial holds.")};
template <>
inline constexpr Shape kShape<Dial> = {.name = "Dial", .fields = kDialFields};

struct Storm {
  std::string tube;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t jobs = 0;
  double share = 0;
  bool estimated = false;
};
inline constexpr std::array kStormFields = {
    field<&Storm::tube>("tube", "Its tube.", {.form = &kTubeForm}),
    field<&Storm::from>("from", "When the minute begins."),
    field<&Storm::to>("to", "When it ends."),
    field<&Storm::jobs>("jobs", "Jobs that are due then."),
    field<&Storm::share>("share", "Their share of the delayed jobs, 0 to 1."),
    field<&Storm::estimated>("estimated", "They were not counted one by one.")};
template <>
inline constexpr Shape kShape<Storm> = {.name = "Storm", .fields = kStormFields};

struct Wheel {
  std::uint64_t now = 0;
  std::string tube;
  std::uint64_t delayed = 0;
  std::vector<Dial> dials = {};
  std::uint64_t beyond = 0;
  std::vector<NextJobs> next = {};
  std::vector<Storm> storms = {};
  bool exact = true;
  std::optional<std::uint64_t> exact_until = {};
};
inline constexpr std::array kWheelFields = {
    field<&Wheel::now>("now", "The time of the first step."),
    field<&Wheel::tube>("tube", "The tube.", {.form = &kTubeForm}),
    field<&Wheel::delayed>("delayed", "Its delayed jobs."),
    field<&Wheel::dials>("dials", "Seconds of this minute, minutes of this hour, and so on."),
    field<&Wheel::beyond>("beyond", "Jobs that are due after the last dial."),
    field<&Wheel::next>("next", "The next 60 seconds, 60 minutes, 24 hours and 30 days."),
    field<&Wheel::storms>("storms", "Minutes of the next 16 hours with a tenth of the jobs."),
    field<&Wheel::exact>("exact", "All jobs were counted; else later ones are estimated."),
    field<&Wheel::exact_until>("exact_until", "Jobs due before it were counted.",
                               {.shows_null = true})};
template <>
inline constexpr Shape kShape<Wheel> = {
    .name = "Wheel",
    .fields = kWheelFields,
    .help = "Moments are ms since 1970; docs/http.md#the-wheel."};

struct GetWheel {
  std::string tube;
};
inline constexpr std::array kGetWheelFields = {
    field<&GetWheel::tube>("tube", "The tube.", {.needed = true, .form = &kTubeForm})};
template <>
inline constexpr Shape kShape<GetWheel> = {.name = "GetWheel", .fields = kGetWheelFields};

}  // namespace carillon::server
