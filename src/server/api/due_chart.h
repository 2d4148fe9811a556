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
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t jobs = 0;
  double share = 0;
  bool estimated = false;
};
template <>
inline constexpr auto kFields<Storm> =
    fields(field<&Storm::tube>("Its tube.", {.form = &kTubeForm}),
           field<&Storm::from>("When the minute begins."), field<&Storm::to>("When it ends."),
           field<&Storm::jobs>("Jobs that are due then."),
           field<&Storm::share>("Their share of the delayed jobs, 0 to 1."),
           field<&Storm::estimated>("They were not counted one by one."));

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
template <>
inline constexpr auto kFields<Wheel> =
    fields(Schema{"Wheel", "Moments are ms since 1970; docs/http.md#the-wheel."},
           field<&Wheel::now>("The time of the first step."),
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

}  // namespace carillon::server
