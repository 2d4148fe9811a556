// Requests and answers of tubes and their groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/engine_stats.h"
#include "server/api/field.h"
#include "server/api/filters.h"
#include "server/api/limits.h"
#include "server/api/operation.h"
#include "server/api/problem.h"

namespace carillon::server {

// --- What is told.

template <>
inline constexpr auto kFields<queue::JobCounts> =
    fields(Schema{"Counts"}, field<&queue::JobCounts::ready>("Jobs that a worker may have."),
           field<&queue::JobCounts::delayed>("Jobs that are not due."),
           field<&queue::JobCounts::reserved>("Jobs that workers have."),
           field<&queue::JobCounts::buried>("Jobs that nobody gets before a kick or retry."),
           field<&queue::JobCounts::total>("Jobs that were put since the server has started.")
               .named("put"),
           field<&queue::JobCounts::loaded>("Jobs in memory; the others are on disk alone.")
               .named("in_memory"));

struct Tube {
  std::string name;
  queue::JobCounts jobs;
  std::uint64_t groups = 0;
  std::uint64_t using_ = 0;
  std::uint64_t watching = 0;
  std::uint64_t waiting = 0;
  std::uint64_t acked = 0;
  std::uint64_t puts_too_fast = 0;
  std::uint64_t dead_deleted = 0;
  bool paused = false;
  bool draining = false;
  TubeLimits limits;
  std::optional<std::uint64_t> pause_left_ms;
  std::optional<RetryPatch> retry;
  std::optional<Duration> retention;
};
template <>
inline constexpr auto kFields<Tube> =
    fields(field<&Tube::name>("Its name."), field<&Tube::jobs>("Its jobs, by state."),
           field<&Tube::groups>("Groups that have jobs, settings, or a schedule."),
           field<&Tube::using_>("Clients of port 11300 whose puts go to it."),
           field<&Tube::watching>("Clients of port 11300 that watch it."),
           field<&Tube::waiting>("Workers that wait for a job of it."),
           field<&Tube::acked>("Jobs that were done or cancelled, since the server has started."),
           field<&Tube::puts_too_fast>("Puts that its put_rate has refused."),
           field<&Tube::dead_deleted>("Dead jobs that its retention has deleted."),
           field<&Tube::paused>("No job goes out."),
           field<&Tube::pause_left_ms>("Milliseconds until the pause ends."),
           field<&Tube::draining>("Clients may put no jobs."),
           field<&Tube::limits>("How fast jobs may go out, and come."),
           field<&Tube::retry>("For jobs that have no policy of their own."),
           field<&Tube::retention>("How long dead jobs are kept."));
Tube tube_of(const queue::TubeStats& stats);

struct Group {
  std::string tube;
  Bytes name;
  queue::JobCounts jobs;
  std::uint32_t weight = 1;
  GroupLimits limits;
};
template <>
inline constexpr auto kFields<Group> =
    fields(field<&Group::tube>("Its tube."), field<&Group::name>("Its name."),
           field<&Group::jobs>("Its jobs, by state."),
           field<&Group::weight>("A group with twice the weight gets twice as many turns."),
           field<&Group::limits>("How fast its jobs may go out."));
Group group_of(std::string_view tube, std::string_view name, const queue::GroupStats& stats);

struct TubePage {
  std::vector<Tube> tubes;
  std::optional<std::string> next_page_token;
};
template <>
inline constexpr auto kFields<TubePage> =
    fields(field<&TubePage::tubes>("In the order of their names."),
           field<&TubePage::next_page_token>(kNextPageHelp, kNextPageRule));

struct GroupPage {
  std::vector<Group> groups;
  std::optional<PlaceToken> next_page_token;
};
template <>
inline constexpr auto kFields<GroupPage> =
    fields(field<&GroupPage::groups>("In the order in which they came."),
           field<&GroupPage::next_page_token>(kNextPageHelp, kNextPageRule));

// --- Requests.

struct ListGroups {
  std::string tube;
  std::uint32_t page_size = kUsuallyListed;
  PlaceToken page_token;
};
template <>
inline constexpr auto kFields<ListGroups> = fields(field<&ListGroups::tube>("The tube.", kTubeRule),
                                                   field<&ListGroups::page_size>(kPageSizeHelp,
                                                                                 kPageSizeRule),
                                                   field<&ListGroups::page_token>(kPageTokenHelp));

struct TubeName {
  std::string tube;
};
template <>
inline constexpr auto kFields<TubeName> = fields(field<&TubeName::tube>("The tube.", kTubeRule));

struct GroupName {
  std::string tube;
  std::string group;
};
template <>
inline constexpr auto kFields<GroupName> = fields(field<&GroupName::tube>("The tube.", kTubeRule),
                                                  field<&GroupName::group>("The group.",
                                                                           {.form = &kKeyForm}));

struct PatchTube {
  std::string tube;
  Patch<TubeLimits> limits;
  Patch<RetryPatch> retry;
  Patch<bool> draining;
  Patch<Duration> retention;
};
template <>
inline constexpr auto kFields<PatchTube> =
    fields(Schema{"TubeSettings", "What is not named stays; null takes it away (RFC 7396)."},
           field<&PatchTube::tube>("The tube.", kTubeRule),
           field<&PatchTube::limits>("How fast jobs may go out, and come."),
           field<&PatchTube::retry>("For jobs that have no policy of their own."),
           field<&PatchTube::draining>("Clients may put no jobs.", {.usual = "false"}),
           field<&PatchTube::retention>("How long dead jobs are kept; null is for ever.",
                                        {.least = 1, .most = queue::kLongestRetention}));

struct PatchGroup {
  std::string tube;
  std::string group;
  Patch<std::uint32_t> weight;
  Patch<GroupLimits> limits;
};
template <>
inline constexpr auto kFields<PatchGroup> =
    fields(Schema{"GroupSettings", "What is not named stays; null takes it away (RFC 7396)."},
           field<&PatchGroup::tube>("The tube.", kTubeRule),
           field<&PatchGroup::group>("The group.", {.form = &kKeyForm}),
           field<&PatchGroup::weight>("A group with twice the weight gets twice as many turns.",
                                      {.least = 1, .most = queue::kMostWeight, .usual = "1"}),
           field<&PatchGroup::limits>("How fast its jobs may go out."));

struct PauseTube {
  std::string tube;
  std::optional<Duration> duration;
};
template <>
inline constexpr auto kFields<PauseTube> =
    fields(Schema{"Pause"}, field<&PauseTube::tube>("The tube.", kTubeRule),
           field<&PauseTube::duration>("Until it is resumed, if nothing is said.",
                                       {.least = 1, .most = queue::kMaxTtr}));

struct KickTube {
  std::string tube;
  std::uint32_t max = UINT32_MAX;
};
template <>
inline constexpr auto kFields<KickTube> =
    fields(Schema{"Kick"}, field<&KickTube::tube>("The tube.", kTubeRule),
           field<&KickTube::max>("At most this many jobs; all, if nothing is said.",
                                 {.least = 1, .most = UINT32_MAX}));

struct Kicked {
  std::uint64_t kicked = 0;
  std::optional<std::string> error;
};
template <>
inline constexpr auto kFields<Kicked> =
    fields(field<&Kicked::kicked>("How many jobs."),
           field<&Kicked::error>("Why it has stopped half-way."));

// Returns what the audit says of a kick.
std::string outcome_of(const queue::Kick& kick);

Problem no_such_tube(std::string_view tube);
// Throws no_such_tube() if the tube does not exist.
queue::TubeStats found_tube(RequestContext& x, const std::string& tube);
// Throws Problem if the request's If-Match does not name the tube as it is.
void require_tube_match(RequestContext& x, const std::string& tube);

}  // namespace carillon::server
