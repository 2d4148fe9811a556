// The model that judges every reply: a plain list of jobs and clients, and for each reply the
// question whether it is allowed now.
//
//   Model model(history);
//   model.connect(1);
//   model.judge(1, command, reply, now);      // throws Violation; else the model follows the reply
//   model.expect_nobody_waits_in_vain(now);
//
// The model does not foretell replies, it judges them: where the promise leaves room, so does the
// model. Its room in time is kSlack: a job is not ready before its time, to the nanosecond, and it
// must be ready kSlack after it; in between both is right. A moment is counted by the wall clock, a
// delay by the monotonic one, however the wall clock is set (docs/queue.md#time).
//
// After each command the records that were changed (HistoryStore) are those that the reply reports,
// and have what the client asked for.
#pragma once

#include <array>
#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "carillon/queue/now.h"
#include "carillon/queue/retry.h"
#include "simulator/commands.h"
#include "simulator/disk.h"
#include "simulator/history.h"
#include "simulator/known.h"
#include "simulator/limits_model.h"
#include "simulator/schedule_model.h"
#include "simulator/turns_model.h"

namespace carillon::simulator {

class Model {
 public:
  static constexpr std::uint64_t kSlack = KnownJob::kSlack;
  // How late jobs may be that have seen the wall clock being set: a smaller shift is not stored.
  static constexpr std::uint64_t kSlackAfterStep = 200'000'000;
  // What each step adds to that, as leads are whole milliseconds.
  static constexpr std::uint64_t kSlackOfStep = 2'000'000;

  // What a fault explains.
  struct Excuses {
    bool fails = false;      // INTERNAL_ERROR, and jobs that are late
    bool disk_low = false;   // OUT_OF_MEMORY to puts
    bool unordered = false;  // not all ready jobs are in memory
  };

  // What the server may have of memory (docs/operations.md), as it has started with. Beyond it
  // commands are answered OUT_OF_MEMORY and change nothing, or reserves wait.
  struct Limits {
    std::size_t reserved = SIZE_MAX;   // jobs; as EngineOptions::max_reserved
    std::size_t tubes = SIZE_MAX;      // as EngineOptions::max_tubes
    bool bodies = false;               // connections have so little that a body may be refused
    bool system = false;               // now and then the system gives no more
    std::size_t schedules = SIZE_MAX;  // bytes; as EngineOptions::max_schedule_bytes
    bool on_disk = true;               // else there are no checkpoints
  };

  explicit Model(const HistoryStore& history) : history_(history) {}

  // The server has started: it has what the history has, and no clients.
  void restart(const Limits& limits, queue::Now now);
  // Somebody has set the wall clock.
  void clock_was_set(queue::Now now);
  // A client knows this id, so it must not be given again.
  void told_id(queue::JobId id) { last_told_ = std::max(last_told_, id); }

  void connect(ClientNumber client);
  void disconnect(ClientNumber client, queue::Now now);
  // The client sends nothing more, so no reserve of it waits.
  void end_input(ClientNumber client) { clients_.at(client).ended = true; }

  // When the server has read its clock for a command: first, and last. What lasts for a while may
  // be counted from the first time, and what is due is due by the last.
  struct Times {
    queue::Now first;
    queue::Now last;
  };

  // Judges the reply to a command. No reply: a reserve waits.
  void judge(ClientNumber client, const Command& command, const std::optional<Reply>& reply,
             const Times& times, const Excuses& excuses);
  // Judges what a command has done since its last part, that is not answered yet.
  void judge_part(ClientNumber client, const Command& command, const Times& times,
                  const Excuses& excuses);
  // Judges the end of a client's waiting.
  void judge_end(ClientNumber client, const Reply& reply, const Times& times,
                 const Excuses& excuses);

  // --- What nobody has asked for (judgement_of_attempts.cpp).

  // The engine has done what was due: it may have ended reservations and jobs that have expired,
  // and fired schedules, and changed nothing else.
  void judge_what_was_due(const Times& times);
  // Returns true if a reservation is over for long, and its end is not stored.
  bool has_old_end(queue::Now now) const;
  // Returns true if a job has expired long ago, is ready, and its end is not stored.
  bool has_old_expiry(queue::Now now) const;
  // Returns true if a dead job should have gone long ago (judgement_of_retention.cpp).
  bool has_old_dead(queue::Now now) const;
  // The same for an occurrence of a schedule.
  bool has_old_occurrence(queue::Now now) const { return schedules_.has_old_occurrence(now); }

  // --- Large bodies, which come and go in pieces.

  // The store has the beginning of a body that the client puts.
  void begin_body(ClientNumber client, queue::JobId id);
  // Throws Violation if it has a part of a body that no client is putting.
  void expect_no_remains() const;
  // Judges that the reply to a reserve goes on with the body of the job; and that the reply to a
  // reserve (`holds`) or a peek does not, and the client is disconnected. `body`: the one that
  // the reply began with; it may have been replaced.
  void judge_more_of_body(ClientNumber client, queue::JobId id, const Times& times);
  void judge_cut(ClientNumber client, queue::JobId id, queue::JobId body, bool holds,
                 const Times& times, const Excuses& excuses);

  // Returns the last append that a cancelJobs, retryJobs or moveJobs of the client has made; 0:
  // none.
  std::uint64_t take_append_of_many(ClientNumber client) {
    return std::exchange(clients_.at(client).bulk_append, 0);
  }

  // A step of a change of many jobs that goes on without its client. `changed`: how many
  // jobs it says that it has changed, if it has ended.
  void judge_long_change(std::uint64_t id, std::optional<std::uint64_t> changed, const Times& times,
                         const Excuses& excuses);

  const ScheduleModel& schedules() const { return schedules_; }

  // Judges the reply to a client that waits for a checkpoint of the store.
  void judge_checkpoint(ClientNumber client, const Reply& reply, const Excuses& excuses);

  // Throws Violation if a client waits for what is there.
  void expect_nobody_waits_in_vain(queue::Now now);

  // For clients that want something to do.
  std::size_t jobs() const { return jobs_.size(); }
  bool may_put_large_body() const;  // they are costly, so there are never many
  std::optional<queue::JobId> any_job(Random& random) const;
  const KnownJob& known(queue::JobId id) const { return jobs_.at(id); }
  const std::set<queue::JobId>& held_by(ClientNumber client) const {
    return clients_.at(client).held;
  }
  // With a token.
  const std::optional<Command>& last_batch() const { return batch_; }
  // The page that follows on the last one, if one follows; the same of a change of many jobs.
  const std::optional<Command>& next_page() const { return next_page_; }
  const std::optional<Command>& next_of_many() const { return next_of_many_; }
  std::optional<queue::JobId> any_held(ClientNumber client, Random& random) const;
  // Returns true if there is the job, and a cancel of it was asked for.
  bool cancel_is_asked(queue::JobId id) const;
  const std::string& tube_in_use(ClientNumber client) const {
    return clients_.at(client).tube_in_use;
  }

 private:
  using Is = Certainty;
  using Job = KnownJob;
  using Client = KnownClient;
  struct LongChange {
    Command command;
    Client client;  // what it has done
    std::optional<std::uint64_t> changed = {};
  };
  // What one judgement is about.
  struct Case {
    ClientNumber number;
    Client& client;
    const Command& command;
    const Reply& reply;
    queue::Now since;  // Times::first
    queue::Now now;    // Times::last
    const Excuses& excuses;
  };

  static Is is(std::uint64_t now, std::uint64_t moment, std::uint64_t slack = kSlack);
  Is due(const Job& job, queue::Now now) const;
  Is ready(const Job& job, queue::Now now) const;
  Is counts_as_ready(const Job& job, queue::Now now) const;
  Is held(const Job& job, queue::Now now) const;
  // The same, as if no client had got it within the command that is judged.
  Is held_before(const Job& job, queue::Now now) const;
  Is held_by(const Job& job, ClientNumber client, queue::Now now) const;
  // Whether the time of a job that somebody holds has not run out.
  static Is has_time(const Job& job, queue::Now now);
  Is paused(const std::string& tube, queue::Now now) const;
  Is deadline_soon(const Client& client, queue::Now now) const;
  bool watches(const Client& client, const std::string& tube) const;
  bool exists(const std::string& tube) const;
  // A tube that is gone takes its pause with it.
  void forget_pauses();
  bool is_free(const Job& job, queue::Now now) const;
  // Jobs of the tube that are with workers: at least, without those that were asked for by their
  // ids, which may have gone out after what is judged now; and at most. The same of a group.
  std::pair<std::size_t, std::size_t> running(const std::string& tube, queue::Now now) const;
  std::pair<std::size_t, std::size_t> running(const std::string& tube, const std::string& group,
                                              queue::Now now) const;
  // Returns true if free jobs of the tube must go out.
  bool is_open(const std::string& tube, queue::Now now) const;
  // The same for those of the group, if the tube is open.
  bool is_open(const std::string& tube, const std::string& group, queue::Now now) const;
  bool must_go_out(const Job& job, queue::Now now) const {
    return is_free(job, now) && is_open(job.tube, job.group, now);
  }
  bool group_exists(const std::string& tube, const std::string& group) const;
  queue::GroupSettings group_settings(const std::string& tube, const std::string& group) const;
  bool may_refuse_groups(const Case& c) const;
  bool may_refuse_lanes_of_move(const Case& c) const;
  void expect_room_for_group(const Case& c, const Job& job) const;
  void expect_turn(const Case& c, const std::string& tube, const Job& job, queue::JobId id) const;
  void follow_turn(const Case& c, const Job& job, bool is_known);
  void note_change(Job& job);
  void judge_set_group(const Case& c);
  void judge_stats_group(const Case& c);
  void judge_list_groups(const Case& c);
  void expect_group(const Case& c, const std::string& group,
                    const boost::json::object& shown) const;
  // Jobs by their states: ready, reserved, delayed, buried.
  using Counts = std::array<std::uint64_t, 4>;
  void expect_counts(const Case& c, const std::optional<std::string>& group,
                     const Counts& told) const;
  Is may_hold_more(const Client& client, queue::Now now) const;
  bool must_be_served(Client& client, queue::Now now) const;
  std::size_t tubes_and_watches() const;

  void judge_command(const Case& c);
  void judge_what_changes_nothing(const Case& c);
  void judge_refused(const Case& c);
  void judge_name(const Case& c);
  void judge_put(const Case& c, queue::JobId body);
  void judge_put_jobs(const Case& c);
  void judge_refused_batch(const Case& c);
  void follow_batch(const Case& c);
  void follow_put(const Case& c, queue::JobId body);
  bool may_be_too_fast(const Case& c, std::uint64_t jobs) const;
  void judge_too_fast(const Case& c, std::uint64_t jobs);
  void judge_inserted(const Case& c, queue::JobId body);
  void judge_conflict(const Case& c, queue::JobId body);
  void judge_ended_key(const Case& c);
  void replace(const Case& c, queue::JobId id, queue::JobId body);
  void expect_right_due_time(const Case& c, const Job& job, const Job& next, bool keeps) const;
  void judge_patch(const Case& c);
  void judge_cancel(const Case& c);
  void judge_bury_job(const Case& c);
  void ask_to_cancel(const Case& c);
  void judge_schedule(const Case& c);
  void judge_change_of_schedule(const Case& c);
  std::size_t own_step_of(const Case& c) const;
  void judge_trigger(const Case& c);
  void judge_show_schedule(const Case& c);
  bool has_room_for_lane(const queue::Schedule& of) const;
  void follow_expiry_of_schedule(Job& job, const queue::Schedule& asked,
                                 const queue::JobRecord& put, const std::string& what) const;
  // Judges what the engine has changed of schedules by itself, up to the step `end`.
  void judge_own_steps(std::size_t end);
  void add_scheduled(const HistoryStore::ScheduleStep& step);
  void judge_fail(const Case& c);
  void judge_show_job(const Case& c);
  void expect_shown(const Case& c, const Job& job, const boost::json::object& shown) const;
  void judge_set_tube(const Case& c);
  const queue::RetryPolicy& policy_of(const Job& job) const;
  bool end_is_stored(const Job& job, queue::Ending ending) const;
  bool may_end(const Job& job, queue::Now now) const;
  void entrust(Job& job, Is is_it, std::set<queue::Ending> endings, queue::Now now);
  // Whether the engine has changed the job by itself; and whether it was right to.
  bool is_own_change(queue::JobId id) const;
  void judge_own_change(queue::JobId id);
  void judge_end_of_attempt(queue::JobId id, const std::string& who);
  // When the job expires by the wall clock as it is then; 0: never.
  queue::UtcMs expiry_of(queue::UtcMs expires, std::int64_t lead, queue::Now now) const;
  bool has_expired(const Job& job, queue::Now now) const;
  // The same, and no clock that was just set forward says so alone.
  bool has_surely_expired(const Job& job, queue::Now now) const;
  bool is_expiry(queue::JobId id) const;
  void judge_expiry(queue::JobId id, const std::string& who);
  bool is_end_of_dead(queue::JobId id) const;
  bool is_retention_end(queue::JobId id) const;
  bool has_moved(queue::JobId id, const Job& job) const;
  bool retention_is_over(const Job& job, queue::Now now, std::uint64_t late) const;
  void judge_ends_of_dead(const Case& c);
  void judge_retention_end(queue::JobId id, const std::string& who);
  void recover_death(Job& job) const;
  void follow_expiry(const Case& c, Job& job, const queue::JobRecord& record) const;
  void follow_burial(const Case& c, Job& job, const queue::JobRecord& record) const;
  void follow_spread(const Case& c, Job& job, const queue::JobRecord& record);
  void follow_attempt(queue::JobId id, const queue::Failure& failure);
  void expect_story(queue::JobId id, Job& job);
  void settle_deadlines(const std::string& tube, const queue::RetryPolicy& next, queue::Now now);
  std::optional<queue::JobId> named(const Case& c) const;
  std::optional<queue::JobId> expect_named(const Case& c, std::string_view done) const;
  Is was_done(const Case& c, const Job& job) const;
  void end_key(const Job& job, Is is_done) const;
  void expect_owner(const Case& c, const Job& job) const;
  void judge_reserve(const Case& c);
  // How a client has got a job: at once, after it has waited, or while other commands came between.
  enum class Taking : std::uint8_t { kAtOnce, kWaited, kInParts };
  void judge_reserved(const Case& c, Taking how);
  void expect_first_in_order(const Case& c, const Job& job) const;
  void judge_reserve_jobs(const Case& c, const std::optional<queue::Now>& begun);
  void follow_gathered(const Case& c, queue::Now begun, Taking how, std::size_t wanted);
  void expect_no_more_to_gather(const Case& c) const;
  void lose_gathered(const Client& client, ClientNumber number, queue::Now now);
  bool may_be_gathered(const std::string& tube) const;
  void judge_reserve_job(const Case& c);
  void judge_held(const Case& c);
  void follow_release(const Case& c, queue::JobId id, queue::Priority priority);
  void judge_each(const Case& c);
  bool may_go_out_meanwhile(const Job& job) const;
  void follow_each(const Case& c);
  bool follow_one(const Case& c, queue::JobId id);
  void judge_delete(const Case& c);
  void judge_peek(const Case& c);
  Is is_in(const Job& job, std::uint32_t states, const Case& c) const;
  Is is_meant(const Job& job, const queue::JobRecord& record, const Case& c) const;
  void judge_list(const Case& c);
  void keep_next_page(const Case& c, std::string_view next, const std::set<queue::JobId>& told,
                      bool is_whole);
  void judge_due_counts(const Case& c);
  void judge_bulk(const Case& c);
  void begin_long_change(const Case& c);
  void judge_show_change(const Case& c);
  void follow_bulk(const Case& c);
  bool follow_changed(const Case& c, queue::JobId id);
  void follow_end_before(queue::JobId id, const queue::JobRecord& before);
  void note_changed(const Case& c, queue::JobId id);
  void expect_meant(const Case& c, queue::JobId id, const queue::JobRecord& before) const;
  void retry(const Case& c, queue::JobId id);
  Is may_be_spread(const Job& job, queue::JobId id, const Case& c) const;
  bool follow_spread_out(const Case& c, queue::JobId id, const queue::JobRecord& before);
  void move(const Case& c, queue::JobId id, const queue::JobRecord& moved);
  const std::set<queue::JobId>& jobs_in(const std::string& tube) const;
  void judge_kick(const Case& c);
  void kick(const Case& c, bool whole);
  std::uint64_t judge_kicked_and_gone(const Case& c, queue::JobId id);
  void judge_kick_job(const Case& c);
  void judge_tubes(const Case& c);
  void judge_stats_job(const Case& c);
  void judge_stats_tube(const Case& c);
  void judge_checkpoint(const Case& c);
  void judge_out_of_memory(const Case& c);
  bool may_refuse(const Case& c) const;
  bool may_refuse_schedule(const Case& c) const;
  bool may_refuse_body_of(const Job& job) const;
  void expect_body(const Case& c) const;
  // Besides, reservations may have ended meanwhile.
  void expect_changed(const std::set<queue::JobId>& ids);
  void expect_free_key(const Case& c) const;
  void expect_new_body(const Case& c, queue::JobId given, queue::JobId id);
  void expect_due(const Case& c, const Job& job, const queue::JobRecord& record,
                  queue::Millis delay) const;
  Job as_put(const Case& c) const;
  void revive(const Case& c, Job& job) const;
  const queue::JobRecord& stored_record(queue::JobId id) const;  // throws Violation if none
  void follow_record(queue::JobId id, queue::Now now);
  void follow_record(const queue::JobRecord& record, queue::Now now);  // as it was, or is
  void follow_all_but_due_time(queue::JobId id);
  void follow_all_but_due_time(const queue::JobRecord& record);
  Is delayed(const Job& job, const Case& c) const;
  // After the wall clock was set, delayed jobs may have another order than that of their records.
  bool has_order(bool buried) const { return buried || clock_steps_ == 0; }
  // A far job may count as ready from its due time on, though its delay ends later; and as delayed
  // until its due time, though its delay has ended.
  bool may_call_ready(const Case& c) const { return c.excuses.unordered && clock_steps_ > 0; }
  void recover_due_time(Job& job) const;
  bool is_stored(const std::string& tube) const;
  [[noreturn]] void fail(const Case& c, const std::string& why) const;

  Job* find(queue::JobId id);
  void add(queue::JobId id, Job job);
  void remove(queue::JobId id);
  void take(const Case& c, queue::JobId id);
  static void give_time(Job& job, queue::Now since, queue::Now now);
  // Clients that hold too many jobs may have to wait again.
  void forget_room();
  void let_go(queue::JobId id, Job& job);
  std::string text_of(queue::JobId id, const Job& job, queue::Now now) const;

  const HistoryStore& history_;
  Limits limits_;
  std::unordered_map<queue::JobId, Job> jobs_;
  std::vector<queue::JobId> ids_;
  std::map<std::string, std::set<queue::JobId>> tubes_;  // that have jobs
  // Which job has the key of the tube. The history knows the keys whose jobs are gone.
  std::map<std::pair<std::string, std::string>, queue::JobId> keys_;
  std::map<ClientNumber, Client> clients_;
  // Changes of many jobs that go on without their clients, and those that have ended.
  std::map<std::uint64_t, LongChange> long_changes_;
  std::map<std::string, std::uint64_t> paused_until_;   // ns, monotonic
  std::map<std::string, queue::RetryPolicy> policies_;  // of tubes
  std::set<std::string> drained_;                       // tubes that take no puts
  std::map<std::string, queue::Millis> retentions_;     // of tubes that have one
  Times times_ = {};                                    // of what is judged now
  LimitsModel tube_limits_{history_};                   // and of groups
  LimitsModel put_rates_{history_, &queue::TubeSettings::put_rate};
  std::set<std::string> rated_;  // tubes that have had such a rate since the start
  TurnsModel turns_;
  ScheduleModel schedules_{history_};
  std::uint64_t last_step_ = 0;       // the append of a schedule that is judged
  std::set<queue::JobId> scheduled_;  // jobs that were put by schedules since the start
  // The last append that has ended a reservation of the job, as far as it is judged.
  std::map<queue::JobId, std::uint64_t> ends_judged_;
  ClientNumber checkpoint_of_ = 0;  // who has the checkpoint, or waits for it; 0: nobody
  std::uint64_t order_ = 0;
  std::uint64_t clock_steps_ = 0;
  std::uint64_t clock_set_at_ = 0;  // ns, monotonic
  // The steps of the wall clock that the server has seen: when, and what it has shown before.
  std::vector<queue::Now> steps_seen_;
  queue::Now last_now_ = {};                      // that the engine may know of
  std::optional<Command> batch_;                  // the last one with a token
  std::map<std::string, std::uint64_t> batches_;  // Command::batch by the fingerprint of a token
  std::optional<Command> next_page_;              // of a listJobs
  std::optional<Command> next_of_many_;           // of a command that changes many jobs
  // Which clients have jobs by a reserve-jobs that is not answered yet, and since when.
  std::map<ClientNumber, queue::Now> gathering_;
  std::uint64_t spread_jobs_ = 0;  // jobs that were spread
  double spread_parts_ = 0;        // the sum of their parts of the spread
  queue::JobId last_given_ = 0;    // since the start
  queue::JobId last_told_ = 0;
};

}  // namespace carillon::simulator
