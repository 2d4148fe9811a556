// What the model knows, and how time passes in it (model.h). The judgements are in judgement.cpp.

#include "simulator/model.h"

#include <algorithm>
#include <utility>

#include "simulator/clock.h"

namespace carillon::simulator {

using queue::JobId;
using queue::JobRecord;
using queue::Now;

// --- Jobs and clients.

void Model::restart(const Limits& limits, Now now) {
  limits_ = limits;
  const std::unordered_map<JobId, Job> before = std::exchange(jobs_, {});
  ids_.clear();
  tubes_.clear();
  keys_.clear();
  clients_.clear();
  steps_seen_.clear();
  if (clock_steps_ > 0) clock_set_at_ = now.mono_ns;
  gathering_.clear();
  long_changes_.clear();
  paused_until_.clear();
  checkpoint_of_ = 0;
  // The numbers of changes that are lost are given again.
  if (next_page_ && history_.opened_at() < next_page_->listed_at) next_page_->listed_at = 0;
  last_given_ = 0;
  ends_judged_.clear();
  scheduled_.clear();
  last_step_ = history_.last();
  schedules_.restart(now);
  tube_limits_.restart(last_now_, now);
  put_rates_.restart(last_now_, now);
  turns_.forget_all();
  last_now_ = now;
  policies_.clear();
  drained_.clear();
  rated_.clear();
  retentions_.clear();
  for (const auto& [number, tube] : history_.state().tubes) {
    if (tube.head != 0) continue;
    if (tube.settings) policies_[tube.name] = tube.settings->retry;
    if (tube.settings->refuses_puts) drained_.insert(tube.name);
    if (tube.settings->put_rate != queue::Limits()) rated_.insert(tube.name);
    if (tube.settings->retention > 0) retentions_[tube.name] = tube.settings->retention;
  }
  for (const auto& [id, stored] : history_.state().jobs) {
    const JobRecord& record = stored.record;
    const queue::TubeRecord& lane = history_.state().tubes.at(record.tube);
    const bool has_group = lane.head != 0;
    Job job{.tube = has_group ? history_.state().tubes.at(lane.head).name : lane.name,
            .group = has_group ? lane.name : "",
            .priority = record.priority,
            .record = record,
            .ttr = record.ttr,
            .key = record.extras->key,
            .key_window = record.extras->key_window,
            .retry = record.extras->retry,
            .attributes = record.extras->attributes,
            .attempts = record.extras->attempts,
            .death = record.extras->death,
            .expires = record.extras->expires,
            .expires_lead = record.extras->expires_lead,
            .at_expiry = record.extras->at_expiry,
            .cancel_asked = record.extras->cancel_asked,
            .burial = record.burial};
    const auto story = history_.state().stories.find(id);
    if (story != history_.state().stories.end()) job.story = story->second;
    const auto known = before.find(id);
    if (known != before.end() && !history_.has_lost_change_of(id) &&
        same_but_due_time(known->second.record, record)) {
      job.moment = known->second.moment;
      job.delay_end = known->second.delay_end;
      job.slack = known->second.slack;
    } else {
      recover_due_time(job);
    }
    const bool saw_death = known != before.end() && known->second.burial == job.burial;
    saw_death ? void(job.died = known->second.died) : recover_death(job);
    add(id, std::move(job));
    order_ = std::max(order_, record.burial);
  }
}

// The client's last command on the job is lost, and nobody knew it. So only the record says its
// time: a delay's by steady time, in whole milliseconds.
void Model::recover_due_time(Job& job) const {
  constexpr std::int64_t kRounding = 3'000'000;
  const JobRecord& record = job.record;
  const std::int64_t steady_ns = history_.state().watermarks.steady_ns;
  if (record.lead == queue::kNoLead || steady_ns == queue::kNoLead) {
    job.moment = record.due * kNsPerMs;
    return;
  }
  const auto end =
      static_cast<std::int64_t>(kNsPerMs) * (static_cast<std::int64_t>(record.due) - record.lead);
  const std::int64_t from = end - steady_ns - (clock_steps_ > 0 ? kRounding : 0);
  job.delay_end = static_cast<std::uint64_t>(std::max<std::int64_t>(from, 0));
  if (clock_steps_ == 0) return;
  // If the wall clock was set back, the job's place in its tube's order is behind that end. The
  // engine searches for such jobs from the start on, in steps.
  job.delay_end = std::max(job.delay_end, last_now_.mono_ns);
  job.slack = kSlackAfterStep + clock_steps_ * kSlackOfStep;
}

// A job that is ready may be delayed again for a moment, if its delay was over just now.
void Model::clock_was_set(Now now) {
  ++clock_steps_;
  clock_set_at_ = now.mono_ns;
  steps_seen_.push_back(
      {.utc_ns = last_now_.utc_ns + (now.mono_ns - last_now_.mono_ns), .mono_ns = now.mono_ns});
  turns_.forget_all();
  schedules_.clock_was_set(now);
  for (auto& [id, job] : jobs_) {
    const bool was_to_end = has_surely_expired(job, last_now_) && due(job, last_now_) != Is::kNo;
    job.has_seen_expiry = job.has_seen_expiry || was_to_end;
    job.slack = kSlackAfterStep + clock_steps_ * kSlackOfStep;
    if (job.moment == 0) job.delay_end = std::max(job.delay_end, now.mono_ns);
  }
}

void Model::connect(ClientNumber client) {
  clients_[client] = {};
}

// If the time of a job was over just now, it may be too late to call it lost.
void Model::disconnect(ClientNumber client, Now now) {
  using queue::Ending;
  last_now_ = now;
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  if (gathering_.contains(client)) lose_gathered(found->second, client, now);
  turns_.forget_all();  // a job may have been on its way to the client
  gathering_.erase(client);
  for (const JobId id : std::set<JobId>(found->second.held)) {
    Job& job = jobs_.at(id);
    const bool may_be_over = has_time(job, now) != Is::kYes;
    const bool was_settled = job.entrusted != Is::kNo;  // by another policy
    const bool timed_out = was_settled || (may_be_over && end_is_stored(job, Ending::kTimedOut));
    const bool lost = end_is_stored(job, Ending::kLost);
    const Is is_sure = lost && !was_settled ? Is::kYes : Is::kMaybe;
    let_go(id, job);
    if (lost) entrust(job, is_sure, {Ending::kLost}, now);
    if (timed_out) entrust(job, is_sure, {Ending::kTimedOut}, now);
  }
  clients_.erase(found);
  if (checkpoint_of_ == client) checkpoint_of_ = 0;
  forget_pauses();
}

Model::Job* Model::find(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

void Model::add(JobId id, Job job) {
  job.position = ids_.size();
  ids_.push_back(id);
  tubes_[job.tube].insert(id);
  note_change(job);
  if (!job.key.empty() && !keys_.emplace(std::pair(job.tube, job.key), id).second)
    throw Violation("job " + std::to_string(id) + " has the key of another one: " + job.key);
  jobs_[id] = std::move(job);
}

void Model::remove(JobId id) {
  Job& job = jobs_.at(id);
  let_go(id, job);
  const auto tube = tubes_.find(job.tube);
  tube->second.erase(id);
  keys_.erase({job.tube, job.key});
  if (tube->second.empty()) tubes_.erase(tube);
  ids_[job.position] = ids_.back();
  jobs_.at(ids_.back()).position = job.position;
  ids_.pop_back();
  jobs_.erase(id);
}

void Model::let_go(JobId id, Job& job) {
  note_change(job);
  job.entrusted = Is::kNo;
  job.endings.clear();
  if (job.holder == 0) return;
  clients_.at(job.holder).held.erase(id);
  job.holder = 0;
}

void Model::take(const Case& c, JobId id) {
  Job& job = jobs_.at(id);
  let_go(id, job);
  job.holder = c.number;
  job.by_id = c.command.verb == Verb::kReserveJob;
  job.worker = c.number;
  job.worker_has_name = c.client.has_name;
  give_time(job, c.since, times_.last);  // perhaps anew, when its body was read
  c.client.held.insert(id);
  forget_room();
}

// The client that holds the job has its whole ttr again, from a moment between the two.
void Model::give_time(Job& job, Now since, Now now) {
  job.deadline = since.mono_ns + job.ttr * kNsPerMs;
  job.deadline_slack = kSlack + now.mono_ns - since.mono_ns;
  job.entrusted = Is::kNo;
  job.endings.clear();
}

void Model::forget_room() {
  for (auto& [number, client] : clients_) client.room_since.reset();
}

std::optional<JobId> Model::any_job(Random& random) const {
  if (ids_.empty()) return std::nullopt;
  return ids_[random() % ids_.size()];
}

std::optional<JobId> Model::any_held(ClientNumber client, Random& random) const {
  const std::set<JobId>& held = clients_.at(client).held;
  if (held.empty()) return std::nullopt;
  return *std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
}

// --- Time.

// Whether a moment has come: for `slack` after it, both answers are right.
Model::Is Model::is(std::uint64_t now, std::uint64_t moment, std::uint64_t slack) {
  if (now < moment) return Is::kNo;
  return now - moment < slack ? Is::kMaybe : Is::kYes;
}

Model::Is Model::due(const Job& job, Now now) const {
  return std::min(is(now.utc_ns, job.moment, job.slack), is(now.mono_ns, job.delay_end, job.slack));
}

Model::Is Model::has_time(const Job& job, Now now) {
  const Is over = is(now.mono_ns, job.deadline, job.deadline_slack);
  return over == Is::kNo ? Is::kYes : over == Is::kYes ? Is::kNo : Is::kMaybe;
}

// If the end of its reservation must still be stored, the job is reserved until then. A job that
// has expired, or whose cancel was asked for, ends once no worker holds it and it is due, or was
// due before the wall clock was set back.
Model::Is Model::held(const Job& job, Now now) const {
  const Is before = held_before(job, now);
  if (before != Is::kNo || job.burial != 0 || due(job, now) == Is::kNo) return before;
  return may_go_out_meanwhile(job) ? Is::kMaybe : before;
}

Model::Is Model::held_before(const Job& job, Now now) const {
  Is is_held = job.entrusted;
  if (job.holder != 0 && is_held == Is::kNo)
    is_held = end_is_stored(job, queue::Ending::kTimedOut) ? Is::kYes : has_time(job, now);
  const bool is_to_end = job.cancel_asked || job.has_seen_expiry || has_expired(job, now);
  const bool may_be_held = is_to_end || may_be_gathered(job.tube);
  if (is_held != Is::kNo || !may_be_held || job.burial != 0) return is_held;
  return job.has_seen_expiry || due(job, now) != Is::kNo ? Is::kMaybe : Is::kNo;
}

// The reserve-jobs says which client has it, when it is answered.
bool Model::may_be_gathered(const std::string& tube) const {
  return std::any_of(gathering_.begin(), gathering_.end(),
                     [&](const auto& each) { return watches(clients_.at(each.first), tube); });
}

Model::Is Model::held_by(const Job& job, ClientNumber client, Now now) const {
  return job.holder == client ? has_time(job, now) : Is::kNo;
}

// Within a command, a client that waits may get the job before the command finds it: when a
// reservation or a pause ends or a token comes, or, if the client holds too many jobs, when the
// engine checks it.
bool Model::may_go_out_meanwhile(const Job& job) const {
  const auto is_limited = [&] {
    const auto pause = paused_until_.find(job.tube);
    const bool pause_ends = pause != paused_until_.end() &&
                            paused(job.tube, times_.last) != Is::kYes &&
                            pause->second + kSlack > times_.first.mono_ns;
    return pause_ends || tube_limits_.of(job.tube) != queue::Limits() ||
           tube_limits_.of(LimitsModel::lane(job.tube, job.group)) != queue::Limits();
  };
  return std::any_of(clients_.begin(), clients_.end(), [&](const auto& each) {
    const Client& client = each.second;
    return client.waits_as != 0 && watches(client, job.tube) &&
           (client.in_line != Is::kYes || is_limited());
  });
}

bool Model::is_free(const Job& job, Now now) const {
  return job.burial == 0 && !job.cancel_asked && due(job, now) == Is::kYes &&
         held_before(job, now) == Is::kNo;
}

Model::Is Model::ready(const Job& job, Now now) const {
  if (job.burial != 0 || job.cancel_asked) return Is::kNo;
  const Is is_due = due(job, now);
  const Is is_held = held(job, now);
  if (is_held == Is::kYes || is_due == Is::kNo) return Is::kNo;
  const bool may_have_been_held = is_held == Is::kMaybe || job.freed_at > times_.first.mono_ns;
  return may_have_been_held ? Is::kMaybe : is_due;
}

// A job whose cancel was asked for will be deleted when it is due. Until then it may count as one
// that is ready, but no worker gets it.
Model::Is Model::counts_as_ready(const Job& job, Now now) const {
  const bool is_to_go = job.cancel_asked && job.burial == 0 && due(job, now) != Is::kNo;
  return is_to_go ? Is::kMaybe : ready(job, now);
}

Model::Is Model::paused(const std::string& tube, Now now) const {
  const auto found = paused_until_.find(tube);
  if (found == paused_until_.end()) return Is::kNo;
  const Is over = is(now.mono_ns, found->second);
  return over == Is::kNo ? Is::kYes : over == Is::kYes ? Is::kNo : Is::kMaybe;
}

Model::Is Model::deadline_soon(const Client& client, Now now) const {
  constexpr std::uint64_t kMargin = queue::kSafetyMargin * kNsPerMs;
  Is soon = Is::kNo;
  for (const JobId id : client.held) {
    const Job& job = jobs_.at(id);
    if (has_time(job, now) == Is::kNo) continue;
    const Is this_one = is(now.mono_ns + kMargin + kSlack / 2, job.deadline, job.deadline_slack);
    if (this_one == Is::kYes && has_time(job, now) == Is::kYes) return Is::kYes;
    if (this_one != Is::kNo) soon = Is::kMaybe;
  }
  return soon;
}

bool Model::watches(const Client& client, const std::string& tube) const {
  return std::find(client.watched.begin(), client.watched.end(), tube) != client.watched.end();
}

bool Model::exists(const std::string& tube) const {
  return tube == "default" || tubes_.contains(tube) || is_stored(tube) ||
         schedules_.tubes().contains(tube) ||
         std::any_of(clients_.begin(), clients_.end(), [&](const auto& client) {
           return client.second.tube_in_use == tube || watches(client.second, tube);
         });
}

// It has a record, because keys of it have ended, or something is set for it.
bool Model::is_stored(const std::string& tube) const {
  const queue::TubeRecord* const found = history_.find_tube(tube);
  return found != nullptr && (found->ended_keys > 0 || found->lanes > 0 || found->settings);
}

bool Model::cancel_is_asked(JobId id) const {
  const auto job = jobs_.find(id);
  return job != jobs_.end() && job->second.cancel_asked;
}

void Model::forget_pauses() {
  std::erase_if(paused_until_, [this](const auto& pause) { return !exists(pause.first); });
}

void Model::expect_nobody_waits_in_vain(Now now) {
  for (auto& [number, client] : clients_) {
    if (client.waits_as == 0) continue;
    const std::string who = "client " + std::to_string(number) + " waits, ";
    if (client.ended) throw Violation(who + "and has closed its half of the connection");
    if (client.give_up && is(now.mono_ns, *client.give_up) == Is::kYes)
      throw Violation(who + "and its time-out is over");
    if (deadline_soon(client, now) == Is::kYes)
      throw Violation(who + "and holds a job whose time to run is nearly over");
    if (!must_be_served(client, now)) continue;
    for (const std::string& tube : client.watched) {
      const auto jobs = tubes_.find(tube);
      if (jobs == tubes_.end() || !is_open(tube, now)) continue;
      for (const JobId id : jobs->second) {
        const Job& job = jobs_.at(id);
        if (must_go_out(job, now)) throw Violation(who + "and there is " + text_of(id, job, now));
      }
    }
  }
}

std::string Model::text_of(JobId id, const Job& job, Now now) const {
  std::string text = "job " + std::to_string(id) + " of tube " + job.tube +
                     (job.group.empty() ? "" : ", group " + job.group) + ", priority " +
                     std::to_string(job.priority);
  if (job.expires != 0) text += ", which expires at " + std::to_string(job.expires);
  if (job.burial != 0) return text + ", buried";
  const auto ms = [](std::uint64_t from, std::uint64_t to) {
    return std::to_string((static_cast<double>(to) - static_cast<double>(from)) / kNsPerMs) + " ms";
  };
  if (job.holder != 0) {
    return text + ", held by client " + std::to_string(job.holder) + " for " +
           ms(now.mono_ns, job.deadline);
  }
  if (job.moment != 0) return text + ", due in " + ms(now.utc_ns, job.moment);
  return text + ", delayed for " + ms(now.mono_ns, job.delay_end);
}

}  // namespace carillon::simulator
