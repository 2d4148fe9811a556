// When dead jobs may go, and must have gone, because their tube keeps them no longer (model.h).

#include <algorithm>
#include <set>
#include <string>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;

// Returns true if the job was dead, and the last change has deleted it.
bool Model::is_end_of_dead(JobId id) const {
  const auto before = history_.before(id);
  return before && before->buried() && before->extras->death != queue::Death::kNone &&
         !history_.state().jobs.contains(id);
}

// The same, and nobody has to have deleted it.
bool Model::is_retention_end(JobId id) const {
  if (!is_end_of_dead(id)) return false;
  const auto judged = ends_judged_.find(id);
  if (judged != ends_judged_.end() && judged->second == history_.changed_at(id)) return true;
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return false;
  return has_moved(id, job->second) || retention_is_over(job->second, times_.last, 0);
}

// The command that is judged has moved the job: then the other tube's retention counts.
bool Model::has_moved(JobId id, const Job& job) const {
  return history_.before(id)->tube != job.record.tube;
}

// And has been over for `late` ns.
bool Model::retention_is_over(const Job& job, queue::Now now, std::uint64_t late) const {
  const auto kept = retentions_.find(job.tube);
  if (kept == retentions_.end() || job.burial == 0 || job.death == queue::Death::kNone)
    return false;
  return now.mono_ns >= job.died + kept->second * kNsPerMs + late;
}

// Those that no client has deleted are gone before the command came to them. If it has moved them
// before, follow_bulk() knows these.
void Model::judge_ends_of_dead(const Case& c) {
  const bool deletes_many =
      c.command.verb == Verb::kDeleteJobs || c.command.verb == Verb::kCancelJobs;
  const bool deletes_one = c.reply.word == "DELETED" || c.reply.word == "CANCELLED";
  for (const JobId id : std::set<JobId>(history_.changed())) {
    if (!is_end_of_dead(id) || deletes_many) continue;
    if (deletes_one && named(c) == id) continue;
    const auto job = jobs_.find(id);
    const bool is_known = job != jobs_.end();
    if (c.command.verb == Verb::kMoveJobs && is_known && has_moved(id, job->second)) continue;
    // By the retention that is set now: the server lets the engine go on before it answers.
    const bool may_be_new =
        c.command.verb == Verb::kSetTube && is_known && job->second.tube == c.command.tube;
    if (may_be_new && !retention_is_over(job->second, times_.last, 0)) continue;
    judge_own_change(id);
  }
}

void Model::judge_retention_end(JobId id, const std::string& who) {
  Job& job = jobs_.at(id);
  // It may have died, and gone, since the last look.
  if (job.burial == 0) follow_end_before(id, *history_.before(id));
  if (!has_moved(id, job) && !retention_is_over(job, times_.last, 0))
    throw Violation(who +
                    "which is gone before its retention is over: " + text_of(id, job, times_.last));
  end_key(job, Is::kNo);
  remove(id);
}

// Nobody has seen when the job died: the record tells, as of a delay (recover_due_time).
void Model::recover_death(Job& job) const {
  constexpr std::int64_t kRounding = 3'000'000;
  const queue::JobExtras& extras = *job.record.extras;
  const std::int64_t steady_ns = history_.state().watermarks.steady_ns;
  job.died = 0;
  if (extras.died == 0 || steady_ns == queue::kNoLead) return;
  const auto died = static_cast<std::int64_t>(kNsPerMs) *
                    (static_cast<std::int64_t>(extras.died) - extras.died_lead);
  job.died = static_cast<std::uint64_t>(std::max<std::int64_t>(died - steady_ns - kRounding, 0));
}

bool Model::has_old_dead(queue::Now now) const {
  constexpr std::uint64_t kLong = 2'000'000'000;
  return clock_steps_ == 0 && std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& each) {
           return retention_is_over(each.second, now, kLong);
         });
}

}  // namespace carillon::simulator
