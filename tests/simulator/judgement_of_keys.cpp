// What the replies to commands may say that name a job by its key or its id, and what becomes of
// the key when its job is gone (model.h).

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "simulator/clock.h"
#include "simulator/model.h"

namespace carillon::simulator {

using queue::JobId;

// Returns the job that the command names, if there is one.
std::optional<JobId> Model::named(const Case& c) const {
  if (c.command.key.empty())
    return jobs_.contains(c.command.id) ? std::optional(c.command.id) : std::nullopt;
  const std::string& tube = c.command.by_http ? c.command.tube : c.client.tube_in_use;
  const auto owner = keys_.find({tube, c.command.key});
  return owner == keys_.end() ? std::nullopt : std::optional(owner->second);
}

// Judges the first line of the reply to a command that changes a job which nobody has reserved.
// Returns the job, or none if it must be as it was. `done`: the word that reports the change.
std::optional<JobId> Model::expect_named(const Case& c, std::string_view done) const {
  const std::optional<JobId> id = named(c);
  if (c.reply.line == "NOT_FOUND") {
    // Perhaps the engine has ended it just before.
    const bool is_gone = id && !history_.state().jobs.contains(*id) && is_own_change(*id);
    if (id && !is_gone) fail(c, "job " + std::to_string(*id) + " is there");
    return std::nullopt;
  }
  if (!id) fail(c, "there is no such job");
  if (!c.command.by_http && c.reply.number != *id) fail(c, "it is job " + std::to_string(*id));
  const Is is_held = held(jobs_.at(*id), c.now);
  const std::string_view reserved = c.command.by_http ? "CONFLICT"
                                    : c.command.asks  ? "CANCEL_ASKED"
                                                      : "IS_RESERVED";
  if (c.reply.word == reserved) {
    if (is_held == Is::kNo) fail(c, "nobody holds it");
    return std::nullopt;
  }
  if (c.reply.word != done) fail(c, "that is no answer to it");
  if (is_held == Is::kYes) fail(c, "it was changed, and is reserved");
  return id;
}

void Model::judge_cancel(const Case& c) {
  const std::optional<JobId> id = expect_named(c, "CANCELLED");
  if (c.reply.word == "CANCEL_ASKED") return ask_to_cancel(c);
  if (!id) return expect_changed({});
  if (history_.state().jobs.contains(*id)) fail(c, "its record is still there");
  expect_changed({*id});
  end_key(jobs_.at(*id), Is::kNo);
  remove(*id);
}

// A job that is buried stays as it is.
void Model::judge_bury_job(const Case& c) {
  const std::optional<JobId> id = expect_named(c, "OK");
  if (!id || jobs_.at(*id).burial != 0) return expect_changed({});
  expect_changed({*id});
  Job& job = jobs_.at(*id);
  let_go(*id, job);
  job.priority = c.command.patch.priority.value_or(job.priority);
  job.burial = history_.state().jobs.at(*id).record.burial;
  if (job.burial == 0) fail(c, "it is stored as not buried");
  follow_record(*id, c.now);
}

void Model::ask_to_cancel(const Case& c) {
  const JobId id = c.reply.number;
  Job& job = jobs_.at(id);
  if (job.entrusted == Is::kMaybe && job.holder == 0) job.entrusted = Is::kYes;
  const bool is_asked = std::exchange(job.cancel_asked, true);
  expect_changed(is_asked ? std::set<JobId>{} : std::set{id});
  if (!is_asked) follow_all_but_due_time(id);
}

// Whether the client that has deleted the job says that its work is done.
Model::Is Model::was_done(const Case& c, const Job& job) const {
  const auto before = history_.before(job.record.id);
  if (before->extras->cancel_asked || before->buried()) return Is::kNo;
  if (before->extras->attempts != job.attempts) return Is::kMaybe;  // its attempt has just ended
  const Is is_delayed = delayed(job, c);
  return is_delayed == Is::kMaybe ? Is::kMaybe : is_delayed == Is::kYes ? Is::kNo : Is::kYes;
}

// The job is gone. If its work is done, its key counts for its window, by steady time. The
// command that has come just behind may have given it to another job.
void Model::end_key(const Job& job, Is is_done) const {
  if (job.key.empty()) return;
  const auto refuse = [&job](const std::string& why) {
    throw Violation("job " + std::to_string(job.record.id) + " is gone, and its key " + why);
  };
  const queue::TubeRecord* const tube = history_.find_tube(job.tube);
  const auto ended =
      tube == nullptr ? std::nullopt : history_.state().find_key(tube->number, job.key);
  const bool is_taken = ended && ended->id != job.record.id;
  if (is_taken && history_.changed().contains(ended->id)) return;
  if (job.key_window == 0 || is_done == Is::kNo) {
    if (ended) refuse("is left");
    return;
  }
  if (!ended && is_done == Is::kMaybe) return;
  if (!ended || ended->id != job.record.id) return refuse("is free at once");
  const std::uint64_t until = ended->until * kNsPerMs;
  const std::uint64_t window = job.key_window * kNsPerMs;
  if (until < history_.steady_ns(times_.first) + window ||
      until >= history_.steady_ns(times_.last) + window + kNsPerMs)
    refuse("counts until another moment, " + std::to_string(ended->until));
}

}  // namespace carillon::simulator
