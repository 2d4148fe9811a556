// Session: the table of verbs, and the commands that are one call of the engine (session.h).
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "server/beanstalk/session.h"
#include "server/beanstalk/stats.h"

namespace carillon::server::beanstalk {
namespace {

// Returns true for commands after which the engine may hold more than before. The other commands
// can still empty the queue.
bool takes_memory(Verb verb) {
  switch (verb) {
    case Verb::kUse:
    case Verb::kWatch:
    case Verb::kKick:
    case Verb::kKickJob:
    case Verb::kCheckpoint:
    case Verb::kListJobs:
    case Verb::kListGroups:
    case Verb::kSetTube:
    case Verb::kRetryJobs:
    case Verb::kMoveJobs:
    case Verb::kSpreadJobs:
    case Verb::kDueCounts:
      return true;
    default:
      return false;
  }
}

// The entries are in the order of Verb: so each verb has an entry, or the table does not compile.
constexpr bool is_in_order(const auto& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].verb != static_cast<Verb>(i)) return false;
  return true;
}

}  // namespace

constexpr std::array<Session::VerbEntry, kVerbs> Session::kEntries{{
    {Verb::kUnknown, &Session::refuse_unknown, {Needs::kNothing, Reach::kNoTube}},
    {Verb::kPut, &Session::begin_put, {Needs::kPut, Reach::kTubeInUse}},
    {Verb::kPutMs, &Session::begin_put, {Needs::kPut, Reach::kTubeInUse}},
    {Verb::kPutAt, &Session::begin_put, {Needs::kPut, Reach::kTubeInUse}},
    {Verb::kPeek, &Session::peek, {Needs::kRead, Reach::kJob}},
    {Verb::kPeekReady, &Session::peek_ready, {Needs::kRead, Reach::kTubeInUse}},
    {Verb::kPeekDelayed, &Session::begin_peek_delayed, {Needs::kRead, Reach::kTubeInUse}},
    {Verb::kPeekBuried, &Session::peek_buried, {Needs::kRead, Reach::kTubeInUse}},
    {Verb::kReserve, &Session::reserve, {Needs::kWork, Reach::kWatched}},
    {Verb::kReserveWithTimeout, &Session::reserve, {Needs::kWork, Reach::kWatched}},
    {Verb::kReserveWithTimeoutMs, &Session::reserve, {Needs::kWork, Reach::kWatched}},
    {Verb::kReserveJob, &Session::reserve_job, {Needs::kWork, Reach::kJob}},
    {Verb::kDelete, &Session::remove, {Needs::kWork, Reach::kJob}},
    {Verb::kRelease, &Session::release, {Needs::kWork, Reach::kJob}},
    {Verb::kReleaseMs, &Session::release, {Needs::kWork, Reach::kJob}},
    {Verb::kBury, &Session::bury, {Needs::kWork, Reach::kJob}},
    {Verb::kKick, &Session::begin_kick, {Needs::kAdmin, Reach::kTubeInUse}},
    {Verb::kKickJob, &Session::kick_job, {Needs::kAdmin, Reach::kJob}},
    {Verb::kTouch, &Session::touch, {Needs::kWork, Reach::kJob}},
    {Verb::kStats, &Session::stats, {Needs::kRead, Reach::kNoTube}},
    {Verb::kStatsJob, &Session::stats_job, {Needs::kRead, Reach::kJob}},
    {Verb::kStatsTube, &Session::stats_tube, {Needs::kRead, Reach::kTube}},
    {Verb::kUse, &Session::use, {Needs::kToken, Reach::kTube}},
    {Verb::kWatch, &Session::watch, {Needs::kWork, Reach::kTube}},
    {Verb::kIgnore, &Session::ignore, {Needs::kToken, Reach::kNoTube}},
    {Verb::kListTubes, &Session::list_tubes, {Needs::kRead, Reach::kChecked}},
    {Verb::kListTubeUsed, &Session::list_used, {Needs::kToken, Reach::kNoTube}},
    {Verb::kListTubesWatched, &Session::list_watched, {Needs::kToken, Reach::kNoTube}},
    {Verb::kPauseTube, &Session::pause, {Needs::kAdmin, Reach::kTube}},
    {Verb::kCheckpoint, &Session::checkpoint, {Needs::kAdmin, Reach::kAllTubes}},
    {Verb::kPutJob, &Session::begin_put_job, {Needs::kPut, Reach::kTubeInUse}},
    {Verb::kPatchJob, &Session::begin_patch, {Needs::kPut, Reach::kJob}},
    {Verb::kCancelJob, &Session::cancel_job, {Needs::kPut, Reach::kJob}},
    {Verb::kPeekJob, &Session::peek_job, {Needs::kRead, Reach::kJob}},
    {Verb::kShowJob, &Session::show_job, {Needs::kRead, Reach::kJob}},
    {Verb::kBuryJob, &Session::bury_job, {Needs::kAdmin, Reach::kJob}},
    {Verb::kFailJob, &Session::begin_fail, {Needs::kWork, Reach::kJob}},
    {Verb::kTouchJob, &Session::touch_job, {Needs::kWork, Reach::kJob}},
    {Verb::kStoryJob, &Session::story_job, {Needs::kRead, Reach::kJob}},
    {Verb::kSetTube, &Session::set_tube, {Needs::kAdmin, Reach::kTube}},
    {Verb::kStatsGroup, &Session::stats_group, {Needs::kRead, Reach::kTube}},
    {Verb::kNameClient, &Session::name_client, {Needs::kToken, Reach::kNoTube}},
    {Verb::kPutJobs, &Session::begin_batch, {Needs::kPut, Reach::kTubeInUse}},
    {Verb::kReserveJobs, &Session::reserve_jobs, {Needs::kWork, Reach::kWatched}},
    {Verb::kDeleteJobs, &Session::begin_batch, {Needs::kWork, Reach::kChecked}},
    {Verb::kReleaseJobs, &Session::begin_batch, {Needs::kWork, Reach::kChecked}},
    {Verb::kSetSchedule, &Session::begin_set_schedule, {Needs::kPut, Reach::kChecked}},
    {Verb::kDeleteSchedule, &Session::change_schedule, {Needs::kPut, Reach::kSchedule}},
    {Verb::kPauseSchedule, &Session::change_schedule, {Needs::kPut, Reach::kSchedule}},
    {Verb::kResumeSchedule, &Session::change_schedule, {Needs::kPut, Reach::kSchedule}},
    {Verb::kTriggerSchedule, &Session::trigger_schedule, {Needs::kPut, Reach::kSchedule}},
    {Verb::kStatsSchedule, &Session::stats_schedule, {Needs::kRead, Reach::kSchedule}},
    {Verb::kShowSchedule, &Session::show_schedule, {Needs::kRead, Reach::kSchedule}},
    {Verb::kListSchedules, &Session::list_schedules, {Needs::kRead, Reach::kAllTubes}},
    {Verb::kListGroups, &Session::list_groups, {Needs::kRead, Reach::kTube}},
    {Verb::kListJobs, &Session::list_jobs, {Needs::kRead, Reach::kTube}},
    {Verb::kCancelJobs, &Session::change_jobs, {Needs::kAdmin, Reach::kTube}},
    {Verb::kRetryJobs, &Session::change_jobs, {Needs::kAdmin, Reach::kTube}},
    {Verb::kMoveJobs, &Session::change_jobs, {Needs::kAdmin, Reach::kTube}},
    {Verb::kSpreadJobs, &Session::change_jobs, {Needs::kAdmin, Reach::kTube}},
    {Verb::kDueCounts, &Session::due_counts, {Needs::kRead, Reach::kTube}},
    {Verb::kAuth, &Session::show_token, {Needs::kNothing, Reach::kNoTube}},
    {Verb::kQuit, &Session::quit, {Needs::kNothing, Reach::kNoTube}},
}};

const Session::VerbEntry& Session::entry_of(Verb verb) {
  static_assert(is_in_order(kEntries));
  return kEntries[static_cast<std::size_t>(verb)];
}

void Session::dispatch(const Command& c) {
  const bool is_put = c.verb == Verb::kPut || c.verb == Verb::kPutMs || c.verb == Verb::kPutAt;
  if (c.form == Form::kCountedBad && !is_put) return replies_.add(0, kBadFormat);
  if (service_.is_out_of_memory() && takes_memory(c.verb))
    return answer_out_of_memory(kSystemGivesNone);
  (this->*entry_of(c.verb).carry_out)(c);
}

void Session::refuse_unknown(const Command&) {
  replies_.add(0, "UNKNOWN_COMMAND\r\n");
}

void Session::remove(const Command& c) {
  answer(service_.engine().remove(client_, service_.now(), c.id), "DELETED\r\n");
}

void Session::bury(const Command& c) {
  answer(service_.engine().bury(client_, service_.now(), c.id, c.priority), "BURIED\r\n");
}

void Session::touch(const Command& c) {
  answer(service_.engine().touch(client_, service_.now(), c.id), "TOUCHED\r\n");
}

void Session::peek(const Command& c) {
  find(service_.engine().peek(service_.now(), c.id));
}

void Session::peek_ready(const Command&) {
  find(service_.engine().peek_ready(client_, service_.now()));
}

void Session::begin_peek_delayed(const Command&) {
  peek_ = {};
  state_ = State::kPeeking;
}

void Session::peek_buried(const Command&) {
  find(service_.engine().peek_buried(client_, service_.now()));
}

void Session::begin_kick(const Command& c) {
  kick_ = {.bound = c.bound};
  state_ = State::kKicking;
}

void Session::kick_job(const Command& c) {
  answer(service_.engine().kick_job(service_.now(), c.id), "KICKED\r\n");
}

void Session::use(const Command& c) {
  service_.engine().use(client_, c.tube);
  replies_.add(0, "USING ", c.tube, kEnd);
}

void Session::watch(const Command& c) {
  replies_.add(0, "WATCHING ", service_.engine().watch(client_, c.tube), kEnd);
}

void Session::ignore(const Command& c) {
  const std::optional<std::size_t> watched = service_.engine().ignore(client_, c.tube);
  if (!watched) return replies_.add(0, "NOT_IGNORED\r\n");
  replies_.add(0, "WATCHING ", *watched, kEnd);
}

void Session::list_used(const Command&) {
  replies_.add(0, "USING ", service_.engine().tube_in_use(client_), kEnd);
}

void Session::stats(const Command&) {
  answer_yaml(0, server_stats_yaml(service_));
}

void Session::name_client(const Command& c) {
  service_.engine().name_client(client_, c.tube);
  replies_.add(0, "NAMED\r\n");
}

void Session::quit(const Command&) {
  close();
}

}  // namespace carillon::server::beanstalk
