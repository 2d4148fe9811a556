// Requests and answers of changes of many jobs. A change that takes longer than 0.2 s goes on
// without its client (long_changes.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "carillon/queue/job_bulk.h"
#include "server/api/filters.h"
#include "server/api/long_changes.h"
#include "server/api/operation.h"

namespace carillon::server {

template <>
inline constexpr auto kWords<queue::JobBulk::Action> = words("cancel", "retry", "move", "spread");

// --- Requests.

inline constexpr std::string_view kDryRunHelp = "Counts the jobs, and changes nothing.";

// What all changes of many jobs have.
struct ChangeOptions {
  bool dry_run = false;
  std::optional<std::uint64_t> max;
  std::optional<queue::JobCursor> page_token;
};
template <class Of>
inline constexpr std::array kChangeOptions = {
    field<&Of::dry_run, Of>(kDryRunHelp),
    field<&Of::max, Of>("At most this many jobs are changed.",
                        {.least = 1, .most = UINT64_MAX >> 1}),
    field<&Of::page_token, Of>(kPageTokenHelp)};

struct ChangeJobs : ChangeOptions {
  TubeFilter filter;
};
template <>
inline constexpr auto kFields<ChangeJobs> =
    fields(Schema{"Change"},
           field<&ChangeJobs::filter>("Which jobs. A tube alone: all of it.", {.needed = true}),
           kChangeOptions<ChangeJobs>);

struct MoveJobs : ChangeOptions {
  TubeFilter filter;
  std::string to;
};
template <>
inline constexpr auto kFields<MoveJobs> =
    fields(Schema{"Move"}, field<&MoveJobs::filter>("Which jobs.", {.needed = true}),
           field<&MoveJobs::to>("The tube to which they go.", {.needed = true, .form = &kTubeForm}),
           kChangeOptions<MoveJobs>);

struct SpreadFilter {
  std::string tube;
  std::optional<Bytes> group;
  std::optional<Bytes> key_prefix;
  Moment due_after;
  Moment due_before;
};
template <>
inline constexpr auto kFields<SpreadFilter> =
    fields(field<&SpreadFilter::tube>("The tube.", {.needed = true, .form = &kTubeForm}),
           field<&SpreadFilter::group>("Jobs of this group.", {.form = &kKeyForm}),
           field<&SpreadFilter::key_prefix>("The key begins with this.", {.form = &kKeyForm}),
           field<&SpreadFilter::due_after>("Due from this moment on.", {.needed = true}),
           field<&SpreadFilter::due_before>("Due before this moment.", {.needed = true}));
struct SpreadJobs : ChangeOptions {
  SpreadFilter filter;
  Duration over;
};
template <>
inline constexpr auto kFields<SpreadJobs> = fields(
    Schema{"Spread"}, field<&SpreadJobs::filter>("Which jobs.", {.needed = true}),
    field<&SpreadJobs::over>("The jobs are dealt out over this time, which begins with due_after. "
                             "It is longer than from due_after to due_before, and at most 30 days.",
                             {.needed = true}),
    kChangeOptions<SpreadJobs>);

struct ClearTube : ChangeOptions {
  std::string tube;
  std::optional<Filter> filter;
};
template <>
inline constexpr auto kFields<ClearTube> = fields(
    Schema{"Clear"}, field<&ClearTube::tube>("The tube.", {.form = &kTubeForm}),
    field<&ClearTube::filter>("Which jobs; all, if nothing is said."), kChangeOptions<ClearTube>);

struct OperationId {
  std::uint64_t id = 0;
};
template <>
inline constexpr auto kFields<OperationId> =
    fields(field<&OperationId::id>("The number that the answer 202 has told."));

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
inline constexpr auto kWords<ChangeState> = words("running", "done", "stopped", "failed");
struct ChangeInSteps : Changed {
  std::uint64_t id = 0;
  ChangeState state = ChangeState::kRunning;
  Moment began;
  std::optional<Moment> ended;
};

template <>
inline constexpr auto kFields<Changed> = fields(
    field<&Changed::action>("What was asked for."), field<&Changed::tube>("The tube of the jobs."),
    field<&Changed::to>("The tube to which they go."),
    field<&Changed::over>("The time over which they are spread."),
    field<&Changed::dry_run>(kDryRunHelp), field<&Changed::changed>("Jobs that were changed."),
    field<&Changed::left>("Jobs that matched, and could not be changed."),
    field<&Changed::looked_at>("Jobs that were scanned."),
    field<&Changed::incomplete>(kIncompleteHelp),
    field<&Changed::next_page_token>("Where it goes on; null: it is over.", {.shows_null = true}),
    field<&Changed::error>("Why it has stopped half-way."));

template <>
inline constexpr auto kFields<ChangeInSteps> = fields(
    Schema{"Operation"}, kFields<Changed>.all, field<&ChangeInSteps::id>("Its number."),
    field<&ChangeInSteps::state>("How it stands."), field<&ChangeInSteps::began>("Its beginning."),
    field<&ChangeInSteps::ended>("Its end."));

}  // namespace carillon::server
