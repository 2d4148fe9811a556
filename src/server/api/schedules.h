// Requests and answers of schedules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/schedule.h"
#include "server/api/field.h"
#include "server/api/filters.h"
#include "server/api/job.h"
#include "server/api/limits.h"
#include "server/api/names.h"

namespace carillon::server {

template <>
inline constexpr auto kWords<queue::CatchUp> = words("none", "last", "all");
template <>
inline constexpr auto kWords<queue::Overlap> = words("allow", "skip", "queue");
enum class Gap : std::uint8_t { kSkip, kAfter };
template <>
inline constexpr auto kWords<Gap> = words("skip", "after");

// --- The job that a schedule puts, to read and to write.

struct ScheduledJob : Attributes {
  std::string tube = "default";
  queue::Priority priority = kUsualPriority;
  Duration ttr{60'000};
  std::optional<Bytes> group = {};
  std::optional<RetryPatch> retry = {};
  std::optional<Duration> expires_in = {};
  std::optional<queue::AtExpiry> at_expiry = {};
  std::optional<JobBody> body = {};
};
template <>
inline constexpr auto kFields<ScheduledJob> = fields(
    field<&ScheduledJob::tube>("Where it is put.", {.usual = "default", .form = &kTubeForm}),
    field<&ScheduledJob::priority>("0 is the most urgent.", {.usual = "65536"}),
    field<&ScheduledJob::ttr>("How long a worker may hold it.",
                              {.least = queue::kMinTtr, .most = queue::kMaxTtr, .usual = "60s"}),
    field<&ScheduledJob::group>("Groups of a tube take turns.", {.form = &kKeyForm}),
    field<&ScheduledJob::retry>("Its own policy, instead of the tube's."),
    field<&ScheduledJob::expires_in>("This long after the job is due, no worker gets it any more.",
                                     {.least = 1, .most = queue::kMaxScheduleSpan}),
    field<&ScheduledJob::at_expiry>("What becomes of it then.", {.usual = "drop"}),
    field<&ScheduledJob::body>("Up to 64 KiB. A list leaves it out."),
    kAttributeFields<ScheduledJob>);

// --- Requests.

struct NewSchedule {
  std::string name;
  std::optional<std::string> cron = {};
  std::optional<std::string> time_zone = {};
  std::optional<Gap> gap = {};
  std::optional<Duration> every = {};
  std::optional<Moment> start = {};
  queue::CatchUp catch_up = queue::CatchUp::kLast;
  std::optional<Duration> catch_up_window = {};
  queue::Overlap overlap = queue::Overlap::kAllow;
  Duration spread = {};
  std::optional<bool> paused = {};
  ScheduledJob job;
};
inline constexpr Rule kScheduleTextRule{.least = 1, .most = queue::kMaxScheduleText};
template <class Of>
inline constexpr std::array kNewScheduleFields = {
    field<&Of::name, Of>("The schedule.", {.form = &kNameForm}),
    field<&Of::cron, Of>("Five or six fields, or @daily; or write every.", kScheduleTextRule),
    field<&Of::time_zone, Of>("Whose clocks cron means.",
                              {.least = 1, .most = queue::kMaxScheduleText, .usual = "UTC"}),
    field<&Of::gap, Of>("What a time of day does that the zone's clocks skip.", {.usual = "after"}),
    field<&Of::every, Of>("From one time to the next.",
                          {.least = queue::kMinEvery, .most = queue::kMaxScheduleSpan}),
    field<&Of::start, Of>("The first time; without it, one period from now."),
    field<&Of::catch_up, Of>("Which times fire that the server has missed.", {.usual = "last"}),
    field<&Of::catch_up_window, Of>("How old they may be; goes with all.",
                                    {.most = queue::kMaxScheduleSpan}),
    field<&Of::overlap, Of>("What a time does while the job before is there.", {.usual = "allow"}),
    field<&Of::spread, Of>("Each job is due later by up to this.",
                           {.most = queue::kMaxScheduleSpan, .usual = "0s"}),
    field<&Of::paused, Of>("It does not fire. Left out of a PUT: it stays as it is."),
    field<&Of::job, Of>("What is put each time.", {.needed = true})};
template <>
inline constexpr auto kFields<NewSchedule> = fields(kNewScheduleFields<NewSchedule>);

// Returns what the engine takes, and notes what is wrong or does not go together.
queue::Schedule schedule_of(Reader& reader, const NewSchedule& asked);

struct ScheduleName {
  std::string name;
};
template <>
inline constexpr auto kFields<ScheduleName> = fields(field<&ScheduleName::name>("The schedule."));

// --- Answers.

struct Schedule : NewSchedule {
  std::optional<std::string> broken = {};
  std::uint64_t fired = 0;
  std::uint64_t skipped = 0;
  std::optional<queue::JobId> last_job = {};
  std::optional<std::string> last = {};
  std::optional<std::string> waiting = {};
  Moment created = {};
  std::vector<std::string> next = {};
};
inline constexpr Rule kZonedRule{.format = "date-time"};
template <>
inline constexpr auto kFields<Schedule> =
    fields(kNewScheduleFields<Schedule>,
           field<&Schedule::broken>("Why cron or the zone cannot be read any more."),
           field<&Schedule::fired>("Times that have put a job."),
           field<&Schedule::skipped>("Times that have put none."),
           field<&Schedule::last_job>("The job that was put last."),
           field<&Schedule::last>("The time for which it was put, in the zone.", kZonedRule),
           field<&Schedule::waiting>("The time that waits for the job before.", kZonedRule),
           field<&Schedule::created>("When it was made."),
           field<&Schedule::next>("The next five times, in the zone.", kZonedRule));

struct SchedulePage {
  std::vector<Schedule> schedules = {};
  std::optional<std::string> next_page_token = {};
};
template <>
inline constexpr auto kFields<SchedulePage> =
    fields(field<&SchedulePage::schedules>("By name, without the bodies of their jobs."),
           field<&SchedulePage::next_page_token>(kNextPageHelp, kNextPageRule));

}  // namespace carillon::server
