// Session: the table of verbs, and the commands that are one call of the engine (session.h).
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
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
      return true;
    default:
      return false;
  }
}

// The entries are in the order of Verb, and each says whether it appends: so each verb has a whole
// entry, or the table does not compile.
constexpr bool is_whole(const auto& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool says_it = static_cast<int>(entries[i].appends_at_once) != 0;
    if (entries[i].verb != static_cast<Verb>(i) || !says_it) return false;
  }
  return true;
}

}  // namespace

constexpr std::array<Session::VerbEntry, kVerbs> Session::kEntries{{
    {Verb::kUnknown,
     &Session::refuse_unknown,
     {Needs::kNothing, Reach::kNoTube},
     AppendsAtOnce::kNo},
    {Verb::kPut, &Session::begin_put, {Needs::kPut, Reach::kTubeInUse}, AppendsAtOnce::kNo},
    {Verb::kPutMs, &Session::begin_put, {Needs::kPut, Reach::kTubeInUse}, AppendsAtOnce::kNo},
    {Verb::kPutAt, &Session::begin_put, {Needs::kPut, Reach::kTubeInUse}, AppendsAtOnce::kNo},
    {Verb::kPeek, &Session::peek, {Needs::kRead, Reach::kJob}, AppendsAtOnce::kNo},
    {Verb::kPeekReady, &Session::peek_ready, {Needs::kRead, Reach::kTubeInUse}, AppendsAtOnce::kNo},
    {Verb::kPeekDelayed,
     &Session::begin_peek_delayed,
     {Needs::kRead, Reach::kTubeInUse},
     AppendsAtOnce::kNo},
    {Verb::kPeekBuried,
     &Session::peek_buried,
     {Needs::kRead, Reach::kTubeInUse},
     AppendsAtOnce::kNo},
    {Verb::kReserve, &Session::reserve, {Needs::kWork, Reach::kWatched}, AppendsAtOnce::kNo},
    {Verb::kReserveWithTimeout,
     &Session::reserve,
     {Needs::kWork, Reach::kWatched},
     AppendsAtOnce::kNo},
    {Verb::kReserveWithTimeoutMs,
     &Session::reserve,
     {Needs::kWork, Reach::kWatched},
     AppendsAtOnce::kNo},
    {Verb::kReserveJob, &Session::reserve_job, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kNo},
    {Verb::kDelete, &Session::remove, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kYes},
    {Verb::kRelease, &Session::release, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kYes},
    {Verb::kReleaseMs, &Session::release, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kYes},
    {Verb::kBury, &Session::bury, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kYes},
    {Verb::kKick, &Session::begin_kick, {Needs::kAdmin, Reach::kTubeInUse}, AppendsAtOnce::kNo},
    {Verb::kKickJob, &Session::kick_job, {Needs::kAdmin, Reach::kJob}, AppendsAtOnce::kYes},
    {Verb::kTouch, &Session::touch, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kNo},
    {Verb::kStats, &Session::stats, {Needs::kRead, Reach::kNoTube}, AppendsAtOnce::kNo},
    {Verb::kStatsJob, &Session::stats_job, {Needs::kRead, Reach::kJob}, AppendsAtOnce::kNo},
    {Verb::kStatsTube, &Session::stats_tube, {Needs::kRead, Reach::kTube}, AppendsAtOnce::kNo},
    {Verb::kUse, &Session::use, {Needs::kToken, Reach::kTube}, AppendsAtOnce::kNo},
    {Verb::kWatch, &Session::watch, {Needs::kWork, Reach::kTube}, AppendsAtOnce::kNo},
    {Verb::kIgnore, &Session::ignore, {Needs::kToken, Reach::kNoTube}, AppendsAtOnce::kNo},
    {Verb::kListTubes, &Session::list_tubes, {Needs::kRead, Reach::kChecked}, AppendsAtOnce::kNo},
    {Verb::kListTubeUsed, &Session::list_used, {Needs::kToken, Reach::kNoTube}, AppendsAtOnce::kNo},
    {Verb::kListTubesWatched,
     &Session::list_watched,
     {Needs::kToken, Reach::kNoTube},
     AppendsAtOnce::kNo},
    {Verb::kPauseTube, &Session::pause, {Needs::kAdmin, Reach::kTube}, AppendsAtOnce::kNo},
    {Verb::kPutJob, &Session::begin_put_job, {Needs::kPut, Reach::kTubeInUse}, AppendsAtOnce::kNo},
    {Verb::kPatchJob, &Session::begin_patch, {Needs::kPut, Reach::kJob}, AppendsAtOnce::kYes},
    {Verb::kCancelJob, &Session::cancel_job, {Needs::kPut, Reach::kJob}, AppendsAtOnce::kYes},
    {Verb::kPeekJob, &Session::peek_job, {Needs::kRead, Reach::kJob}, AppendsAtOnce::kNo},
    {Verb::kFailJob, &Session::begin_fail, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kNo},
    {Verb::kTouchJob, &Session::touch_job, {Needs::kWork, Reach::kJob}, AppendsAtOnce::kNo},
    {Verb::kNameClient, &Session::name_client, {Needs::kToken, Reach::kNoTube}, AppendsAtOnce::kNo},
    {Verb::kPutJobs, &Session::begin_batch, {Needs::kPut, Reach::kTubeInUse}, AppendsAtOnce::kNo},
    {Verb::kReserveJobs,
     &Session::reserve_jobs,
     {Needs::kWork, Reach::kWatched},
     AppendsAtOnce::kNo},
    {Verb::kDeleteJobs, &Session::begin_batch, {Needs::kWork, Reach::kChecked}, AppendsAtOnce::kNo},
    {Verb::kReleaseJobs,
     &Session::begin_batch,
     {Needs::kWork, Reach::kChecked},
     AppendsAtOnce::kNo},
    {Verb::kAuth, &Session::show_token, {Needs::kNothing, Reach::kNoTube}, AppendsAtOnce::kNo},
    {Verb::kQuit, &Session::quit, {Needs::kNothing, Reach::kNoTube}, AppendsAtOnce::kNo},
}};

const Session::VerbEntry& Session::entry_of(Verb verb) {
  static_assert(is_whole(kEntries));
  return kEntries[static_cast<std::size_t>(verb)];
}

bool Session::appends_at_once(Verb verb) {
  return entry_of(verb).appends_at_once == AppendsAtOnce::kYes;
}

void Session::dispatch(const Command& c) {
  const bool is_put = c.verb == Verb::kPut || c.verb == Verb::kPutMs || c.verb == Verb::kPutAt;
  if (c.form == Form::kCountedBad && !is_put) return replies_.add(0, kBadFormat);
  if (service_.is_out_of_memory() && takes_memory(c.verb))
    return answers_.out_of_memory(kSystemGivesNone);
  (this->*entry_of(c.verb).carry_out)(c);
}

void Session::refuse_unknown(const Command&) {
  replies_.add(0, "UNKNOWN_COMMAND\r\n");
}

void Session::remove(const Command& c) {
  answers_.done(service_.engine().remove(client_, service_.now(), c.id), "DELETED\r\n");
}

void Session::bury(const Command& c) {
  answers_.done(service_.engine().bury(client_, service_.now(), c.id, c.priority), "BURIED\r\n");
}

void Session::touch(const Command& c) {
  answers_.done(service_.engine().touch(client_, service_.now(), c.id), "TOUCHED\r\n");
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
  answers_.done(service_.engine().kick_job(service_.now(), c.id), "KICKED\r\n");
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
  answers_.yaml(0, server_stats_yaml(service_));
}

void Session::stats_job(const Command& c) {
  const auto stats = service_.engine().job_stats(service_.now(), c.id);
  if (!stats) return answers_.not_found();
  answers_.yaml(stats->durable_at, job_stats_yaml(*stats));
}

void Session::stats_tube(const Command& c) {
  const auto stats = service_.engine().tube_stats(service_.now(), c.tube);
  if (!stats) return answers_.not_found();
  answers_.yaml(0, tube_stats_yaml(*stats));
}

void Session::name_client(const Command& c) {
  service_.engine().name_client(client_, c.tube);
  replies_.add(0, "NAMED\r\n");
}

void Session::quit(const Command&) {
  close();
}

}  // namespace carillon::server::beanstalk
