// The moves that an engine's commands are made of. What they move is in engine_memory.h.
//
// Where to look:
//   put, use                              puts.cpp
//   reserve, release, bury, touch, watch  worker_commands.cpp; how a client waits: reserving.cpp
//   remove, peek, kick, pause             peek_kick_delete.cpp; cancel, patch: job_edits.cpp
//   put_all, release_all, remove_all      batches.cpp
//   the keys of jobs                      keys.cpp
//   fail, the settings of tubes           failed_attempts.cpp; attempts that end: job_endings.cpp
//   schedules                             schedules.h; their commands: schedule_commands.cpp
//   what the passing of time does         engine.cpp, advance
//   what clients leave behind             leaving.cpp
//   the limits of tubes                   limits.cpp
//   far jobs are loaded                   loading.cpp; those that are ready: overdue_counts.cpp
//   the time itself                       engine_clock.h; when it is set: clock_steps.cpp
//   what is appended to the store         append_changes.cpp; dead jobs that go: retention.h
//   statistics, and the list of tubes     reports.cpp; tube_lists.cpp
//   lists of jobs                         job_lists.cpp; of a tube with groups: lane_merge.cpp
//
// A command looks jobs up, appends its changes to the store, and only then changes the state below.
// If the append fails, there is nothing to undo. What comes behind an append is noexcept: if memory
// runs out there, the process ends, as its memory would not be what the store has. A job that is in
// memory is ready, delayed, reserved or *detached*: in none of the collections, on the way from one
// to another. No command ends with a detached job. The moves of a job:
//
//   from                        move              to
//   the store alone             add_to_memory     detached
//   ready, delayed, reserved    detach            detached
//   detached                    make_ready        ready
//   detached                    enqueue           ready, delayed, or, if it is far, the store alone
//   detached                    drop_from_memory  the store alone, or nothing if it was deleted
//   ready, delayed, detached    hold              reserved
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/engine.h"
#include "queue/engine/jobs/loaded_job.h"
#include "queue/engine/state/engine_memory.h"
#include "queue/engine/state/planned.h"
#include "queue/engine/tubes/tube.h"
#include "queue/engine/workers/client.h"

namespace carillon::queue {

struct Schedules;  // schedules.h

struct EngineState : EngineMemory {
  EngineState(Store& in, const EngineOptions& with, Recovered recovered, Now now);
  ~EngineState();

  // --- Tubes (tubes.cpp)

  // Makes the tube if there is none.
  Tube& tube_named(std::string_view name);
  // The same for the lane of a group (groups.h); without a group, returns the tube itself.
  Tube& lane_named(Tube& tube, std::string_view group);
  void forget_lane(const Tube& tube, std::string_view group);  // if it is not needed
  // The same two without a limit.
  Tube& made_tube(std::string_view name);
  Tube& made_lane(Tube& tube, std::string_view group);
  std::uint32_t free_number();  // for a new tube
  // Throws OverLimit if there may be no more tubes and watches than there are.
  void refuse_more_tubes() const;
  // Makes a tube, or a lane. REQUIRES: no tube has its name or number; it has its head.
  Tube& add_tube(TubeRecord record);
  // Throws StoreError if there is none: the store is damaged, as each stored job has its tube.
  Tube& tube_numbered(std::uint32_t number);
  // Forgets a tube without jobs and clients. The tube `default` stays.
  void forget_if_unreferenced(Tube& tube) noexcept;
  void forget_if_unreferenced(std::uint32_t number) noexcept;
  void use(Client& client, Tube& tube);
  void watch(Client& client, Tube& tube);
  void unwatch(Watch& watch);

  // --- Jobs (jobs.cpp)

  // Returns nullptr if the job is not in memory.
  LoadedJob* loaded(JobId id);
  // Returns the record of a job in memory or in the store; none if there is no such job.
  std::optional<JobRecord> record_of(JobId id);
  Sequence durable_at(JobId id);  // must be durable before a client is told of the job
  JobState state_of(const JobRecord& record);
  JobView view(const JobRecord& record);
  // A client is to see the record: sets its expiry to what the wall clock will show then.
  void show_expiry(JobRecord& job) const;
  // Makes a detached job. REQUIRES: the record is stored, not buried, and not in memory yet.
  LoadedJob& add_to_memory(const JobRecord& record) noexcept;
  void detach(LoadedJob& job) noexcept;
  // Puts a detached job among the ready or the delayed ones. A far job leaves memory instead: `job`
  // is a dangling reference then.
  void enqueue(LoadedJob& job) noexcept;
  // A job that was stored, and is neither buried nor in memory, goes to where it belongs.
  void take_in(const JobRecord& record) noexcept;
  // REQUIRES of both: the job is detached. Who waits for it gets it only when `serve` is called.
  void drop_from_memory(LoadedJob& job) noexcept;
  void make_ready(LoadedJob& job) noexcept;

  // Gives up bodies whose put a crash has cut short. What it cannot give up, the next start does.
  void give_up_unfinished(const std::vector<UnfinishedBody>& bodies);
  // Returns the id for a new job. Throws StoreError after kLastId.
  JobId give_id();

  // --- The store (append_changes.cpp)

  // Gathers a change of one job. The changes of a command are gathered and appended at once.
  void add_change(std::optional<JobRecord> before, std::optional<JobRecord> after,
                  std::string_view body = {});
  void add_key_change(std::optional<KeyRecord> before, std::optional<KeyRecord> after);
  // Returns the record of a tube as it will stand after what was gathered.
  TubeRecord& changed_tube(std::uint32_t number);
  // Returns what is to be stored with these bounds.
  Watermarks watermarks(JobId ids, std::uint64_t burials) const;
  // Appends what was gathered, with the tubes' counts and, if needed, watermarks. When it throws
  // StoreError, nothing has changed, and nothing is gathered any more.
  Sequence append();
  void appended() noexcept;  // the store has it: memory follows

  // --- Keys (keys.cpp)

  // The job is about to be deleted: gathers what becomes of its key.
  void end_key(const JobRecord& job, Work work);
  // Returns who has the key of a job that is there.
  KeyOwner owner_of_key(const JobRecord& job);
  // A key will end when steady time comes to `when`: it is to be forgotten then, or about a second
  // later.
  void sweep_keys_not_after(Millis when);
  // Forgets keys that have ended, up to `budget` of them.
  void sweep_keys(std::size_t budget);

  // --- Puts (puts.cpp), and changes of a job (job_edits.cpp)

  // Throws std::invalid_argument if a body of one call has more than kBodyPiece bytes.
  static void refuse_large(std::string_view body);
  static void check_attributes(std::string_view attributes);
  // Looks at what a put into the tube meets. The spread is drawn from `body_id`. Gathers nothing.
  PlannedPut check_put(Tube& tube, const PutOrder& order, JobId body_id);
  // Returns when a job expires (0: never), as PutOrder and Patch say; none if after kLastDue.
  std::optional<UtcMs> expiry(Millis in, std::optional<UtcMs> at) const;
  std::int64_t lead_of_expiry(UtcMs expires, bool is_moment) const;
  // Throws NeverRuns if a job expires by the time at which it is due, as PutOrder and Patch say,
  // and that is still to come. `expires` is what expiry() returns. REQUIRES: the due time fits.
  void require_time_to_run(Millis in, std::optional<UtcMs> at, Millis spread, UtcMs expires) const;
  // Gathers a put into the tube if it can be carried out; a body in `bytes` has no id yet.
  PlannedPut plan_put(Tube& tube, const PutOrder& order, const LargeBody& body,
                      std::string_view bytes);
  // The same for a client. A tube that refuses it answers only one that adds nothing.
  PlannedPut plan_client_put(Tube& tube, const PutOrder& order, const LargeBody& body,
                             std::string_view bytes);
  // Sets what becomes of a put whose key has an owner.
  void plan_conflict(const PutOrder& order, PlannedPut& put);
  // Does a planned put in memory. REQUIRES: its change was appended, and the time has not advanced.
  void finish_put(const PlannedPut& put) noexcept;
  // The record of a job that nobody has reserved was changed by an append: moves it to its place.
  void replaced(const JobRecord& before, const JobRecord& after) noexcept;

  // --- Batches (batches.cpp)

  // Returns the refusal of a batch for which the tube lacks tokens, or none.
  std::optional<BatchOutcome> refusal_of_rate(Tube& tube, std::span<const NewJob> batch);
  using Token = std::optional<KeyRecord>;
  // Returns the record of the batch's token, or none. Throws std::invalid_argument.
  Token token_of(const BatchOrder& order) const;
  // Returns the answer that the token has, until its time is over.
  std::optional<BatchOutcome> answer_of(const Token& token, const BatchOrder& order) const;
  // Gathers the record of a batch's token, in place of `before`.
  void add_token(Token before, const BatchOrder& order, const BatchOutcome& outcome);

  // --- Attempts (job_endings.cpp)

  static void check(const RetryPolicy& policy);  // throws std::invalid_argument
  const RetryPolicy& policy_of(const JobRecord& job);
  // Returns true if more is to be stored than a ready job needs, when the job's reservation ends
  // without a word of its worker.
  bool end_is_stored(const LoadedJob& job, Ending ending);
  // Gives the job to `pending_endings`. REQUIRES: it is detached, reserved, or ready and expired.
  void queue_ending(LoadedJob& job, std::optional<Ending> ending) noexcept;
  // Gathers the release of a reserved job (worker_commands.cpp).
  PlannedEnd plan_release(LoadedJob& job, Priority priority, Millis delay);
  // Gathers the end of an attempt that has failed. Throws StoreError if the story cannot be read.
  PlannedEnd plan_end(LoadedJob& job, Attempt attempt, const Failure& failure);
  void add_to_story(const JobRecord& job, Attempt attempt);
  // REQUIRES: it was appended. The tube may be unreferenced then.
  void finish_end(const PlannedEnd& end) noexcept;
  // The same for all that were appended together.
  void finish_ends(const std::vector<PlannedEnd>& ends) noexcept;
  // Stores up to `budget` queued ends of jobs. Adds the tubes of those that come again to `served`,
  // and the numbers of those that lose a job to `emptied`.
  void end_attempts(std::vector<Tube*>& served, std::vector<std::uint32_t>& emptied,
                    std::size_t budget);
  // Returns the turn in which the next queued end of a job of the tube is stored.
  Tick next_end_turn(Tube& of) noexcept;
  // Gathers the end of a job that was cancelled or has expired.
  PlannedEnd plan_end(LoadedJob& job);
  // Entrusts up to `budget` ready jobs that have expired. Adds their tubes to `served`.
  void expire(std::vector<Tube*>& served, std::size_t budget);
  // Takes up to `budget` of the jobs that have expired by a clock in doubt, if that is over or the
  // clock was set. The end of each is queued again, or not.
  void decide_doubted(std::vector<Tube*>& served, std::size_t budget);
  // Arms the timer of a ready job that expires.
  void await_expiry(LoadedJob& job);
  // Returns false if memory holds too many expired jobs, so that the tube must not load more. While
  // the clock that says so is in doubt, only tubes with such a job must wait.
  bool may_load(const Tube& tube) const;
  // Sets when the ttr of a reserved job is over.
  void set_deadline(LoadedJob& job, std::uint64_t mono);

  // REQUIRES: the job is reserved.
  void ask_to_cancel(LoadedJob& job);
  // Deletes the job. Returns the append.
  Sequence remove(const JobRecord& record, Work work);
  // Whether deleting this job means that its work was done.
  Work work_of(const JobRecord& record);
  // Returns the job if the client has reserved it, else nullptr.
  LoadedJob* held_by(const Client& client, JobId id);
  // Returns the record of the job if the client may delete it.
  std::optional<JobRecord> record_to_remove(const Client& client, JobId id);
  // Gathers a deletion.
  void add_removal(const JobRecord& record, Work work);
  // Does a deletion in memory. Returns the tube, which may be unreferenced then, and to be served
  // if it has limits. REQUIRES: it was appended.
  Tube& finish_removal(const JobRecord& record) noexcept;

  // --- Loading (loading.cpp)

  // Returns the first (due, id) that is far: all jobs before it are near.
  DueKey horizon() const;
  // Returns the moment at which a job with this due time becomes near.
  Tick time_to_load(UtcMs due_time) const;
  // Loads the tube's jobs at `when`, or earlier if that was planned.
  void load_not_after(Tube& tube, Tick when);
  // Moves the cursor as far as is possible without a look into the store.
  void extend_cursor(Tube& tube);
  // Returns how many ready and delayed jobs a tube may have in memory now: at least 1.
  std::size_t most_queued() const;
  bool memory_is_short() const { return options.memory_is_short && options.memory_is_short(); }
  // One more job is in the store alone from now on: it will be loaded in time.
  void leave_far(Tube& tube, const JobRecord& record) noexcept;
  // If the tube has too many jobs in memory, those due last leave memory, perhaps `newest` too: a
  // few at once, the others in the next calls.
  void make_room(Tube& tube, LoadedJob& newest) noexcept;
  // If the tube has too many jobs in memory, up to `budget` delayed ones leave memory. Returns how
  // many. If more must go, the next call of `advance` continues.
  std::size_t drop_surplus(Tube& tube, std::size_t budget);
  // Leaves a ready or delayed job in the store alone, because there is no room.
  void drop_for_room(LoadedJob& job);
  // A job of the tube has left memory or was reserved: perhaps more can be loaded.
  void room_appeared(Tube& tube);
  // Loads near jobs from the cursor on, or drops jobs if the tube has too many. Returns how many it
  // has read or dropped: at most `budget`.
  std::size_t load(Tube& tube, std::size_t budget);
  // Loads those of the records that are near. They are the first ones from the cursor on; there may
  // be more if there are `limit` of them.
  void load(Tube& tube, std::span<const JobRecord> records, std::size_t limit);
  // At a start: loads the first near jobs of these tubes, and all jobs that are due. REQUIRES: they
  // are in the order of numbers.
  void look_at_all(const std::deque<Tube*>& order);
  void look_at(const std::vector<Tube*>& those);  // the same for these tubes
  // Keeps the error for Engine::advance, and plans another try.
  void loading_failed(TubeTimer& timer, const StoreError& error);
  // Loads all of the tube's jobs that are due by now, as far as memory is allowed.
  void load_what_is_due(Tube& tube);
  // Jobs that were found in the store, and where to look for more.
  struct FarJobs {
    std::vector<JobRecord> jobs;
    DueKey next;
    bool more;  // there may be more
  };
  // Looks at the tube's next 16 delayed jobs in the store, by (due, id), from `from` on. Finds up
  // to `limit` of those that are in the store alone: perhaps none, though there are more.
  FarJobs scan_far(Tube& tube, DueKey from, std::size_t limit);

  // --- Counting far jobs that are ready (overdue_counts.cpp)

  // Jobs of the tube are left in the store because there is no room: those that are due count as
  // ready from now on.
  void starve(Tube& tube);
  void end_count(Tube& tube);  // all of its jobs that are due are in memory
  // The wall clock was set. If far jobs were counted that are not due any more, begins anew.
  void count_after_step(Tube& tube);
  void forget_count(Tube& tube);
  // Counts on at `when`, or earlier if that was planned.
  void count_not_after(Tube& tube, UtcMs when);
  // A job that is stored with this record has become far (+1), or is not far any more (-1).
  void note_far(Tube& tube, const JobRecord& record, int by) noexcept;
  void count_far(Tube& tube, const JobRecord& record, int by) noexcept;  // in far_count alone
  // Goes on counting, and returns how many records it has read: at most `budget`.
  std::size_t count_more(Tube& tube, std::size_t budget);

  // --- Limits (limits.cpp)

  // The limits of the tube were set: it follows them.
  void follow_limits(Tube& tube) noexcept;
  // Returns true if the tube's limits let one more job go out. If it has no token for that, it is
  // served when there is one.
  bool may_start(Tube& tube) { return tube.limits == nullptr || limits_let_start(tube); }
  bool limits_let_start(Tube& tube);
  // Counts, and returns, that so many jobs may not be put into the tube now, and when they may.
  PutOutcome too_fast(Tube& tube, std::uint64_t wanted);

  // --- Reserving (reserving.cpp)

  // Returns the ready job of the tube that goes out next; nullptr if none may go out now. Those
  // before it that have expired are queued_endings, up to a few: `advance` goes on with the rest.
  LoadedJob* first_ready(Tube& tube);
  // Returns true if a client waits for the tube's first_ready().
  bool can_serve(Tube& tube) { return tube.first_waiting() != nullptr && first_ready(tube); }
  // Returns the ready job that the client gets if it reserves now; nullptr if there is none.
  LoadedJob* best_ready(const Client& client);
  bool is_hidden(const Client& client);  // perhaps, by expired ones, until `advance` ends these
  // Lets the client hold the ready job, and returns the Delivery.
  Delivery hand_over(Client& client, LoadedJob& job);
  void hold(Client& client, LoadedJob& job) noexcept;
  // Gives the tube's ready jobs to the clients that wait for them; a lane stands for its tube.
  // Frees nothing: a reference to a job or a tube stays valid.
  void serve(Tube& tube) noexcept;
  // The same for many tubes: the lowest (priority, id) of all goes out first. Empties `those`.
  void serve(std::vector<Tube*>& those) noexcept;
  // REQUIRES: can_serve(tube).
  void serve_next(Tube& tube);
  void start_waiting(Client& client, std::optional<Millis> timeout);
  void stand_in_lines(Client& client);
  // Returns false if the client holds as many jobs as it may (EngineOptions::max_reserved).
  bool may_hold_more(const Client& client) const;
  // The waiting client was over its share of reserved jobs and is not now.
  void let_reserve(Client& client);
  // Arms the client's timer for the first moment that may end its waiting.
  void schedule_wake(Client& client);
  // The client stays in the lines of some of its tubes if it watches many: see leave_lines().
  void end_waiting(Client& client);
  // The client's timer has expired.
  void wait_is_over(Client& client);

  // --- Lists: of all tubes (tube_lists.cpp), and of jobs (job_lists.cpp)

  void end_listing(Client& client);
  ListedJob listed(const JobRecord& job, JobState state);

  // --- What clients leave behind (leaving.cpp)

  // One call of a client that watches or holds much does at most so much of these: the rest is left
  // to `advance`.
  static constexpr std::size_t kLeaveAtOnce = 64;
  // Takes up to `budget` watches of a client that does not wait out of the lines of their tubes.
  // Returns how many it has looked at.
  std::size_t leave_lines(Client& client, std::size_t budget);
  // Makes jobs of a client that has disconnected ready, and then ends its watches: up to `budget`
  // of both together. Returns how many there were.
  std::size_t give_up(Client& client, std::size_t budget);
  // Goes on with what clients have left behind.
  void clear_up(std::size_t budget);

  // --- A wall clock that was set (clock_steps.cpp)

  // Reads the time. Every command does that first.
  void observe(Now now) {
    changes.clear();  // a command that gathered some may have thrown
    if (const std::int64_t step = clock.observe(now)) on_clock_step(step < 0);
  }
  // The wall clock was set back, or forward.
  void on_clock_step(bool back);
  // Orders the tube's delayed jobs and sets its timers anew. If the wall clock was set `back`, the
  // ready jobs whose due time is ahead again are delayed again.
  void follow_the_clock(Tube& tube, bool back);
  // Returns the time that UTC will show when the job is due, if nobody sets the wall clock: also of
  // a job whose delay ends well before the due time in its record, and which is not placed yet.
  UtcMs due_of(const JobRecord& record) const;
  // Begins to look for such jobs in the store, if there may be any.
  void begin_placing();
  // Goes on with it, by up to `budget` records. Appends to `served` the tubes that get jobs.
  void place_more(std::vector<Tube*>& served, std::size_t budget);
  // Returns how many records it has read.
  std::size_t place_more_of(Tube& tube, std::size_t budget);
  // Returns true if the due time in the record is well after `end`, at which the job's delay ends.
  bool is_late(const JobRecord& record, UtcMs end) const;
  // Stores jobs with earlier due times; near ones are in memory then. StoreError: nothing changed.
  void place(const std::vector<JobChange>& moves);
  // Returns true if the job's delay ends when it is far, though its due time is near.
  bool is_too_early(const JobRecord& record) const;
  // Stores those of the near `records` that are too early, and not in memory, with later due times.
  // Returns them as they are then. Throws StoreError, with nothing changed.
  std::vector<JobRecord> place_later(std::span<const JobRecord> records);

  // --- Time (engine.cpp)

  // Does a small part of what is due: enough if no storm is under way. Called by each command.
  void advance(Now now);
  void advance(Now now, std::size_t step);
  void load_what_is_near(std::vector<Tube*>& loaded_tubes, std::vector<std::uint32_t>& emptied,
                         std::size_t budget);
  // The tube, or lane, has a delayed job in memory: arms the timer.
  void await_first_delayed(Tube& lane);
  // Arms the timer of a tube, which is no lane, for its first delayed job and those of its lanes.
  void await_due(Tube& tube);
  // Makes up to `budget` due jobs ready, tube by tube. Adds those that are ripe then to `ripe`.
  void ripen(std::vector<Tube*>& ripe, std::size_t budget);
  // Returns true if that was done for the tube and its lanes.
  bool ripen(Tube& tube, std::size_t budget);
  // Does it for one lane, or the tube itself. Returns how many jobs became ready.
  std::size_t ripen_lane(Tube& lane, UtcMs until, std::size_t budget);

  // --- Kicking (peek_kick_delete.cpp)

  // Makes the jobs with these records ready, in one append. REQUIRES: all are in one tube, and each
  // is buried or delayed.
  Sequence kick(const std::vector<JobRecord>& records, Anew anew = Anew::kOfBuried);

  Client& client(ClientId id);

  const std::unique_ptr<Schedules> schedules;
};

}  // namespace carillon::queue
