// Requests and answers of tubes and their groups.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine_stats.h"
#include "server/api/field.h"
#include "server/api/limits.h"
#include "server/api/operation.h"
#include "server/api/page.h"
#include "server/api/problem.h"

namespace carillon::server {

// --- What is told.

inline constexpr std::array kCountsFields = {
    field<&queue::JobCounts::ready>("ready", "Jobs that a worker may have."),
    field<&queue::JobCounts::delayed>("delayed", "Jobs that are not due."),
    field<&queue::JobCounts::reserved>("reserved", "Jobs that workers have."),
    field<&queue::JobCounts::buried>("buried", "Jobs that nobody gets before a kick or retry."),
    field<&queue::JobCounts::total>("put", "Jobs that were put since the server has started."),
    field<&queue::JobCounts::loaded>("in_memory", "Jobs in memory; the others are on disk alone.")};

template <>
inline constexpr Shape kShape<queue::JobCounts> = {.name = "Counts", .fields = kCountsFields};

struct Tube {
  std::string name;
  queue::JobCounts jobs;
  std::uint64_t groups = 0;
  std::uint64_t using_ = 0;
  std::uint64_t watching = 0;
  std::uint64_t waiting = 0;
  std::uint64_t deleted = 0;
  std::uint64_t puts_too_fast = 0;
  std::uint64_t dead_deleted = 0;
  bool paused = false;
  bool draining = false;
  TubeLimits limits;
  std::optional<std::uint64_t> pause_left_ms;
  std::optional<RetryPatch> retry;
  std::optional<Duration> retention;
};
inline constexpr std::array kTubeFields = {
    field<&Tube::name>("name", "Its name."),
    field<&Tube::jobs>("jobs", "Its jobs, by state."),
    field<&Tube::groups>("groups", "Groups that have jobs, settings, or a schedule."),
    field<&Tube::using_>("using", "Clients of port 11300 whose puts go to it."),
    field<&Tube::watching>("watching", "Clients of port 11300 that watch it."),
    field<&Tube::waiting>("waiting", "Workers that wait for a job of it."),
    field<&Tube::deleted>("deleted",
                          "Jobs that clients have deleted since the server has started."),
    field<&Tube::puts_too_fast>("puts_too_fast", "Puts that its put_rate has refused."),
    field<&Tube::dead_deleted>("dead_deleted", "Dead jobs that its retention has deleted."),
    field<&Tube::paused>("paused", "No job goes out."),
    field<&Tube::pause_left_ms>("pause_left_ms", "Milliseconds until the pause ends."),
    field<&Tube::draining>("draining", "Clients may put no jobs."),
    field<&Tube::limits>("limits", "How fast jobs may go out, and come."),
    field<&Tube::retry>("retry", "For jobs that have no policy of their own."),
    field<&Tube::retention>("retention", "How long dead jobs are kept.")};
template <>
inline constexpr Shape kShape<Tube> = {.name = "Tube", .fields = kTubeFields};
Tube tube_of(const queue::TubeStats& stats);

struct Group {
  std::string tube;
  Bytes name;
  queue::JobCounts jobs;
  std::uint32_t weight = 1;
  GroupLimits limits;
};
inline constexpr std::array kGroupFields = {
    field<&Group::tube>("tube", "Its tube."), field<&Group::name>("name", "Its name."),
    field<&Group::jobs>("jobs", "Its jobs, by state."),
    field<&Group::weight>("weight", "A group with twice the weight gets twice as many turns."),
    field<&Group::limits>("limits", "How fast its jobs may go out.")};
template <>
inline constexpr Shape kShape<Group> = {.name = "Group", .fields = kGroupFields};
Group group_of(std::string_view tube, std::string_view name, const queue::GroupStats& stats);

struct TubePage {
  std::vector<Tube> tubes;
  std::optional<std::string> next_page_token;
};
inline constexpr std::array kTubePageFields = {
    field<&TubePage::tubes>("tubes", "In the order of their names."),
    field<&TubePage::next_page_token>("next_page_token", kNextPageHelp, kNextPageRule)};
template <>
inline constexpr Shape kShape<TubePage> = {.name = "TubePage", .fields = kTubePageFields};

// A page begins with the group of this number. 0: the first group.
struct GroupToken {
  std::uint32_t group = 0;
};
template <>
struct Text<GroupToken> {
  static GroupToken parse(std::string_view text);
  static std::string show(GroupToken token);
};
struct GroupPage {
  std::vector<Group> groups;
  std::optional<GroupToken> next_page_token;
};
inline constexpr std::array kGroupPageFields = {
    field<&GroupPage::groups>("groups", "In the order in which they came."),
    field<&GroupPage::next_page_token>("next_page_token", kNextPageHelp, kNextPageRule)};
template <>
inline constexpr Shape kShape<GroupPage> = {.name = "GroupPage", .fields = kGroupPageFields};

// --- Requests.

struct ListGroups {
  std::string tube;
  std::uint32_t page_size = kUsuallyListed;
  GroupToken page_token;
};
inline constexpr std::array kListGroupsFields = {
    field<&ListGroups::tube>("tube", "The tube.", kTubeRule),
    field<&ListGroups::page_size>("page_size", kPageSizeHelp, kPageSizeRule),
    field<&ListGroups::page_token>("page_token", kPageTokenHelp)};
template <>
inline constexpr Shape kShape<ListGroups> = {.name = "ListGroups", .fields = kListGroupsFields};

struct TubeName {
  std::string tube;
};
inline constexpr std::array kTubeNameFields = {
    field<&TubeName::tube>("tube", "The tube.", kTubeRule)};
template <>
inline constexpr Shape kShape<TubeName> = {.name = "TubeName", .fields = kTubeNameFields};

struct GroupName {
  std::string tube;
  std::string group;
};
inline constexpr std::array kGroupNameFields = {
    field<&GroupName::tube>("tube", "The tube.", kTubeRule),
    field<&GroupName::group>("group", "The group.", {.form = &kKeyForm})};
template <>
inline constexpr Shape kShape<GroupName> = {.name = "GroupName", .fields = kGroupNameFields};

struct PatchTube {
  std::string tube;
  Patch<TubeLimits> limits;
  Patch<RetryPatch> retry;
  Patch<bool> draining;
  Patch<Duration> retention;
};
inline constexpr std::array kPatchTubeFields = {
    field<&PatchTube::tube>("tube", "The tube.", kTubeRule),
    field<&PatchTube::limits>("limits", "How fast jobs may go out, and come."),
    field<&PatchTube::retry>("retry", "For jobs that have no policy of their own."),
    field<&PatchTube::draining>("draining", "Clients may put no jobs.", {.usual = "false"}),
    field<&PatchTube::retention>("retention", "How long dead jobs are kept; null is for ever.",
                                 {.least = 1, .most = queue::kLongestRetention})};
template <>
inline constexpr Shape kShape<PatchTube> = {
    .name = "TubeSettings",
    .fields = kPatchTubeFields,
    .help = "What is not named stays; null takes it away (RFC 7396)."};

struct PatchGroup {
  std::string tube;
  std::string group;
  Patch<std::uint32_t> weight;
  Patch<GroupLimits> limits;
};
inline constexpr std::array kPatchGroupFields = {
    field<&PatchGroup::tube>("tube", "The tube.", kTubeRule),
    field<&PatchGroup::group>("group", "The group.", {.form = &kKeyForm}),
    field<&PatchGroup::weight>("weight", "A group with twice the weight gets twice as many turns.",
                               {.least = 1, .most = queue::kMostWeight, .usual = "1"}),
    field<&PatchGroup::limits>("limits", "How fast its jobs may go out.")};
template <>
inline constexpr Shape kShape<PatchGroup> = {
    .name = "GroupSettings",
    .fields = kPatchGroupFields,
    .help = "What is not named stays; null takes it away (RFC 7396)."};

struct PauseTube {
  std::string tube;
  std::optional<Duration> duration;
};
inline constexpr std::array kPauseTubeFields = {
    field<&PauseTube::tube>("tube", "The tube.", kTubeRule),
    field<&PauseTube::duration>("duration", "Until it is resumed, if nothing is said.",
                                {.least = 1, .most = queue::kMaxTtr})};
template <>
inline constexpr Shape kShape<PauseTube> = {.name = "Pause", .fields = kPauseTubeFields};

struct KickTube {
  std::string tube;
  std::uint32_t max = UINT32_MAX;
};
inline constexpr std::array kKickTubeFields = {
    field<&KickTube::tube>("tube", "The tube.", kTubeRule),
    field<&KickTube::max>("max", "At most this many jobs; all, if nothing is said.",
                          {.least = 1, .most = UINT32_MAX})};
template <>
inline constexpr Shape kShape<KickTube> = {.name = "Kick", .fields = kKickTubeFields};

struct Kicked {
  std::uint64_t kicked = 0;
  std::optional<std::string> error;
};
inline constexpr std::array kKickedFields = {
    field<&Kicked::kicked>("kicked", "How many jobs."),
    field<&Kicked::error>("error", "Why it has stopped half-way.")};
template <>
inline constexpr Shape kShape<Kicked> = {.name = "Kicked", .fields = kKickedFields};

Problem no_such_tube(std::string_view tube);

}  // namespace carillon::server
