// Requests and answers of changes of many jobs. A change that takes longer than 0.2 s goes on
// without its client (long_changes.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "carillon/queue/job_bulk.h"
#include "server/api/filters.h"
#include "server/api/long_changes.h"
#include "server/api/operation.h"
#include "server/api/page.h"

namespace carillon::server {

template <>
struct Words<queue::JobBulk::Action> {
  static constexpr std::array<std::string_view, 4> all = {"cancel", "retry", "move", "spread"};
};

// --- Requests.

inline constexpr std::string_view kDryRunHelp = "Counts the jobs, and changes nothing.";
inline constexpr std::string_view kLimitHelp = "At most this many jobs are changed.";
inline constexpr Rule kLimitRule{.least = 1, .most = UINT64_MAX >> 1};

struct ChangeJobs {
  TubeFilter filter;
  bool dry_run = false;
  std::optional<std::uint64_t> limit;
  std::optional<queue::JobCursor> page_token;
};
inline constexpr std::array kChangeJobsFields = {
    field<&ChangeJobs::filter>("filter", "Which jobs. A tube alone: all of it.", {.needed = true}),
    field<&ChangeJobs::dry_run>("dry_run", kDryRunHelp),
    field<&ChangeJobs::limit>("limit", kLimitHelp, kLimitRule),
    field<&ChangeJobs::page_token>("page_token", kPageTokenHelp)};
template <>
inline constexpr Shape kShape<ChangeJobs> = {.name = "Change", .fields = kChangeJobsFields};

struct MoveJobs {
  TubeFilter filter;
  std::string to;
  bool dry_run = false;
  std::optional<std::uint64_t> limit;
  std::optional<queue::JobCursor> page_token;
};
inline constexpr std::array kMoveJobsFields = {
    field<&MoveJobs::filter>("filter", "Which jobs.", {.needed = true}),
    field<&MoveJobs::to>("to", "The tube to which they go.", {.needed = true, .form = &kTubeForm}),
    field<&MoveJobs::dry_run>("dry_run", kDryRunHelp),
    field<&MoveJobs::limit>("limit", kLimitHelp, kLimitRule),
    field<&MoveJobs::page_token>("page_token", kPageTokenHelp)};
template <>
inline constexpr Shape kShape<MoveJobs> = {.name = "Move", .fields = kMoveJobsFields};

struct SpreadFilter {
  std::string tube;
  std::optional<Bytes> group;
  std::optional<Bytes> key_prefix;
  Moment due_after;
  Moment due_before;
};
inline constexpr std::array kSpreadFilterFields = {
    field<&SpreadFilter::tube>("tube", "The tube.", {.needed = true, .form = &kTubeForm}),
    field<&SpreadFilter::group>("group", "Jobs of this group.", {.form = &kKeyForm}),
    field<&SpreadFilter::key_prefix>("key_prefix", "The key begins with this.",
                                     {.form = &kKeyForm}),
    field<&SpreadFilter::due_after>("due_after", "Due from this moment on.", {.needed = true}),
    field<&SpreadFilter::due_before>("due_before", "Due before this moment.", {.needed = true})};
template <>
inline constexpr Shape kShape<SpreadFilter> = {.name = "SpreadFilter",
                                               .fields = kSpreadFilterFields};
struct SpreadJobs {
  SpreadFilter filter;
  Duration over;
  bool dry_run = false;
  std::optional<std::uint64_t> limit;
  std::optional<queue::JobCursor> page_token;
};
inline constexpr std::array kSpreadJobsFields = {
    field<&SpreadJobs::filter>("filter", "Which jobs.", {.needed = true}),
    field<&SpreadJobs::over>("over",
                             "The jobs are dealt out over this time, which begins with due_after. "
                             "It is longer than from due_after to due_before, and at most 30 days.",
                             {.needed = true}),
    field<&SpreadJobs::dry_run>("dry_run", kDryRunHelp),
    field<&SpreadJobs::limit>("limit", kLimitHelp, kLimitRule),
    field<&SpreadJobs::page_token>("page_token", kPageTokenHelp)};
template <>
inline constexpr Shape kShape<SpreadJobs> = {.name = "Spread", .fields = kSpreadJobsFields};

struct ClearTube {
  std::string tube;
  std::optional<Filter> filter;
  bool dry_run = false;
  std::optional<std::uint64_t> limit;
  std::optional<queue::JobCursor> page_token;
};
inline constexpr std::array kClearTubeFields = {
    field<&ClearTube::tube>("tube", "The tube.", {.form = &kTubeForm}),
    field<&ClearTube::filter>("filter", "Which jobs; all, if nothing is said."),
    field<&ClearTube::dry_run>("dry_run", kDryRunHelp),
    field<&ClearTube::limit>("limit", kLimitHelp, kLimitRule),
    field<&ClearTube::page_token>("page_token", kPageTokenHelp)};
template <>
inline constexpr Shape kShape<ClearTube> = {.name = "Clear", .fields = kClearTubeFields};

struct OperationId {
  std::uint64_t id = 0;
};
inline constexpr std::array kOperationIdFields = {
    field<&OperationId::id>("id", "The number that the answer 202 has told.")};
template <>
inline constexpr Shape kShape<OperationId> = {.name = "OperationId", .fields = kOperationIdFields};

// --- Answers.

struct Changed {
  queue::JobBulk::Action action = queue::JobBulk::Action::kCancel;
  std::string tube;
  std::optional<std::string> to;
  std::optional<Duration> over;
  bool dry_run = false;
  std::uint64_t changed = 0;
  std::uint64_t left = 0;
  std::uint64_t looked_at = 0;
  std::optional<bool> incomplete;
  std::optional<queue::JobCursor> next_page_token;
  std::optional<std::string> error;
};
enum class ChangeState : std::uint8_t { kRunning, kDone, kStopped, kInError };
template <>
struct Words<ChangeState> {
  static constexpr std::array<std::string_view, 4> all = {"running", "done", "stopped", "failed"};
};
struct ChangeInSteps : Changed {
  std::uint64_t id = 0;
  ChangeState state = ChangeState::kRunning;
  Moment began;
  std::optional<Moment> ended;
};

inline constexpr std::array kChangedFields = {
    field<&Changed::action>("action", "What was asked for."),
    field<&Changed::tube>("tube", "The tube of the jobs."),
    field<&Changed::to>("to", "The tube to which they go."),
    field<&Changed::over>("over", "The time over which they are spread."),
    field<&Changed::dry_run>("dry_run", kDryRunHelp),
    field<&Changed::changed>("changed", "Jobs that were changed."),
    field<&Changed::left>("left", "Jobs that matched, and could not be changed."),
    field<&Changed::looked_at>("looked_at", "Jobs that were scanned."),
    field<&Changed::incomplete>("incomplete", kIncompleteHelp),
    field<&Changed::next_page_token>("next_page_token", "Where it goes on; null: it is over.",
                                     {.shows_null = true}),
    field<&Changed::error>("error", "Why it has stopped half-way.")};
template <>
inline constexpr Shape kShape<Changed> = {.name = "Changed", .fields = kChangedFields};

inline constexpr auto kChangeInStepsFields = [] {
  std::array<Field, 15> all{};
  std::copy(kChangedFields.begin(), kChangedFields.end(), all.begin());
  all[11] = field<&ChangeInSteps::id>("id", "Its number.");
  all[12] = field<&ChangeInSteps::state>("state", "How it stands.");
  all[13] = field<&ChangeInSteps::began>("began", "Its beginning.");
  all[14] = field<&ChangeInSteps::ended>("ended", "Its end.");
  return all;
}();
template <>
inline constexpr Shape kShape<ChangeInSteps> = {.name = "Operation",
                                                .fields = kChangeInStepsFields};

}  // namespace carillon::server
