// What may be refused, and who may have to wait, when memory is short (model.h).

#include <algorithm>

#include "server/service.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;

namespace {

// As in the engine: how many tubes a client watches in any case, and how often the engine checks a
// client that has too many jobs.
constexpr std::size_t kOwnWatches = 16;
constexpr std::uint64_t kPatience = 100'000'000;  // ns
// What a schedule takes beside its body, about.
constexpr std::size_t kOfSchedule = 1'200;

}  // namespace

// A client may hold as many jobs as are free, and one in any case.
Model::Is Model::may_hold_more(const Client& client, queue::Now now) const {
  if (limits_.reserved == SIZE_MAX) return Is::kYes;
  struct Range {
    std::size_t least = 0;
    std::size_t most = 0;
    void count(Is is) {
      least += is == Is::kYes ? 1 : 0;
      most += is != Is::kNo ? 1 : 0;
    }
  };
  Range own;
  Range all;
  for (const JobId id : client.held) own.count(has_time(jobs_.at(id), now));
  for (const auto& [id, job] : jobs_) all.count(held_before(job, now));
  const auto free = [this](std::size_t reserved) {
    return std::max<std::size_t>(limits_.reserved - std::min(limits_.reserved, reserved), 1);
  };
  if (own.most < free(all.most)) return Is::kYes;
  return own.least < free(all.least) ? Is::kMaybe : Is::kNo;
}

// A client that held too many jobs when it began to wait is served as soon as the engine checks it.
bool Model::must_be_served(Client& client, queue::Now now) const {
  if (client.in_line == Is::kYes) return true;
  if (may_hold_more(client, now) != Is::kYes) {
    client.room_since.reset();
  } else if (!client.room_since) {
    client.room_since = now.mono_ns;
  }
  return client.room_since && now.mono_ns - *client.room_since > kPatience + kSlack;
}

void Model::judge_out_of_memory(const Case& c) {
  turns_.forget_all();  // a job may have gone out, and come back
  const bool is_move = c.command.verb == Verb::kMoveJobs;
  if (is_move) follow_bulk(c);
  c.client.bulk_changed = c.client.bulk_maybe = 0;
  expect_changed(is_move ? history_.changed() : std::set<JobId>());
  if (!may_refuse(c)) fail(c, "there is memory for it");
}

bool Model::may_refuse(const Case& c) const {
  const Command& command = c.command;
  const auto any = [&](const auto& may_be_it) {
    return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& job) {
      return may_be_it(job.second) && may_refuse_body_of(job.second);
    });
  };
  switch (command.verb) {
    case Verb::kPatchJob:
      if (!command.has_body) return false;
      [[fallthrough]];
    case Verb::kPut:
    case Verb::kRefused:
      if ((command.verb == Verb::kPut || !command.body.empty()) && may_be_too_fast(c, 1))
        return true;
      [[fallthrough]];
    case Verb::kPutJob:
    case Verb::kPutJobs:
      return c.excuses.disk_low || may_refuse_groups(c) || limits_.system ||
             (limits_.bodies && command.body.size() > server::kOwnBody);
    case Verb::kKick:
    case Verb::kKickJob:
    case Verb::kCheckpoint:
    case Verb::kRetryJobs:
    case Verb::kSpreadJobs:
      return limits_.system;
    case Verb::kListJobs:
    case Verb::kListGroups:
    case Verb::kDueCounts:
      return limits_.system || limits_.bodies;
    case Verb::kMoveJobs:
      return limits_.system || may_refuse_lanes_of_move(c);
    case Verb::kFailJob:
    case Verb::kDeleteJobs:
    case Verb::kReleaseJobs:
      return limits_.bodies && command.body.size() > server::kOwnBody;
    case Verb::kSetTube: {
      const std::size_t made =
          (exists(command.tube) ? 0U : 1U) + (group_exists(command.tube, command.group) ? 0U : 1U);
      return limits_.system || (made > 0 && tubes_and_watches() + made > limits_.tubes);
    }
    case Verb::kSetSchedule:
      return may_refuse_schedule(c);
    case Verb::kListSchedules:
      return limits_.system || limits_.bodies;
    case Verb::kShowJob: {
      const bool makes_tube = !command.key.empty() && !exists(command.tube);
      if (makes_tube && tubes_and_watches() >= limits_.tubes) return true;
      const auto id = named(c);
      return id && may_refuse_body_of(jobs_.at(*id));
    }
    case Verb::kTriggerSchedule:
      return c.excuses.disk_low || limits_.system;
    case Verb::kUse:
    case Verb::kWatch: {
      const bool is_new = !exists(command.tube);
      const bool is_watch = command.verb == Verb::kWatch && !watches(c.client, command.tube);
      const bool needs_room = is_new || (is_watch && c.client.watched.size() >= kOwnWatches);
      return limits_.system || (needs_room && tubes_and_watches() >= limits_.tubes);
    }
    case Verb::kReserve:
    case Verb::kReserveJobs:
      return any([&](const Job& job) {
        return watches(c.client, job.tube) && ready(job, c.now) != Is::kNo;
      });
    case Verb::kReserveJob:
      if (may_hold_more(c.client, c.now) != Is::kYes) return true;
      [[fallthrough]];
    case Verb::kPeek:
    case Verb::kPeekJob: {
      const auto id = named(c);
      return id && may_refuse_body_of(jobs_.at(*id));
    }
    case Verb::kPeekReady:
    case Verb::kPeekDelayed:
    case Verb::kPeekBuried:
      return any([&](const Job& job) { return job.tube == c.client.tube_in_use; });
    default:
      return false;
  }
}

bool Model::may_refuse_schedule(const Case& c) const {
  const Command& command = c.command;
  std::size_t bytes = command.asked.body.size() + kOfSchedule;
  for (const auto& [name, record] : history_.state().schedules)
    bytes += record.schedule.body.size() + kOfSchedule;
  return c.excuses.disk_low || limits_.system || bytes > limits_.schedules ||
         (limits_.bodies && command.bytes.size() > server::kOwnBody) ||
         !has_room_for_lane(command.asked);
}

bool Model::may_refuse_body_of(const Job& job) const {
  return (limits_.bodies || limits_.system) && job.record.body_bytes > server::kOwnReplies;
}

}  // namespace carillon::simulator
