// The queue engine: tubes, jobs and workers as a deterministic state machine on timing wheels.
//
// Commands and the time go in; answers and changes to the store come out. The engine has no thread,
// clock or socket, and no disk except the Store that it is given. So a test can run whole histories
// on a virtual clock with a store in memory, and get the same answers each time.
//
//   MemoryStore store;
//   Engine engine(store, {}, now);
//   ClientId client = engine.connect();
//   auto put = engine.put(client, now, {.priority = 0, .due_in = 3'000, .ttr = 60'000}, "hello");
//   if (auto got = engine.reserve(client, now, {})) ...         // an answer at once, or
//   engine.advance(later);                                      // the 3 s go by
//   for (Delivery& d : engine.take_deliveries()) ...            // d.client got the job
//   std::string body = whole_body(store, d.job.body_id, d.job.body_bytes);  // "hello"
//
// Contracts
// 1. *Never early.* No job is handed out before the wall clock shows its due time. A wrong wall
//    clock may harm only what is decided while it is wrong: once it has been put right, nothing
//    that was put before, meanwhile or after is early, over restarts too, and nothing fires twice.
//    A delay is counted by the monotonic clock as well, so setting the wall clock forward does not
//    shorten it. docs/queue.md has a table of what happens when (#time).
// 2. *Nothing acknowledged is lost.* Each command appends its changes to the store before it
//    changes anything in memory. If the append throws StoreError, the command throws it on and has
//    changed nothing. The answer to a command may leave for the client once the store's appends up
//    to the answer's `durable_at` are durable.
// 3. *Far jobs cost no memory.* In memory are: the jobs due within `load_ahead`, the reserved jobs,
//    and the ready jobs; of each tube at most about `max_loaded_per_tube`, reserved jobs not
//    counted. All other jobs are in the store alone. They are loaded shortly before they are due,
//    or when there is room. If a tube has more ready jobs than may be loaded, those that were due
//    first are loaded, and priorities hold among the loaded ones only.
// 4. *Bounded work.* No command does more than a bounded number of steps, with two exceptions. The
//    first one when the wall clock was set looks at all jobs in memory and all tubes. And one that
//    makes jobs ready, ends a pause or raises a limit hands them to all clients that wait. The next
//    calls do the remaining work; until it is done, `next_wakeup` returns a moment that has passed.
// 5. *No bodies.* The engine appends the body of a put, and reads none: a job is handed out by its
//    id, and whoever asked for it reads the body from the store, in a thread of its choice. If the
//    body cannot be read now, `give_back` undoes the reserve. If it is damaged, it will be so the
//    next time, too: `bury` the job, or it comes again and again.
//
// Errors. A method that reads or appends throws StoreError if the store fails; the state is then as
// before the command, but the time has advanced. StoreError can come from `put`, `put_all`,
// `reserve`, `reserve_next`, `reserve_job`, `release`, `release_all`, `bury`, `fail`, `remove`,
// `remove_all`, `cancel`, `patch`, `bury_job`, `job_with_key`, all peeks and kicks, `job_stats`,
// `story`, `set_tube`, `advance`, `close` and the constructor. A failed read may pass, and changes
// no job. A ClientId that is not connected throws std::out_of_range. A command that throws
// std::bad_alloc has changed nothing; if memory runs out behind its append, the process ends
// (docs/queue.md#memory).
//
// Complexity. A command costs O(log jobs in memory) and at most one append, besides the work that
// time has made due, unless its comment says more.
//
// Thread safety: none. One thread owns an engine. A process may have many engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/endpoint.h"
#include "carillon/queue/engine_options.h"
#include "carillon/queue/engine_stats.h"
#include "carillon/queue/job.h"
#include "carillon/queue/now.h"
#include "carillon/queue/schedule.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

// A client asks for more than a limit of the engine's options allows. Nothing was changed.
class OverLimit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct JobListing;  // job_listing.h
struct ListedJob;
struct JobBulk;    // job_bulk.h
struct DueCounts;  // due_counts.h

class Engine {
 public:
  // Takes over what the store holds, and loads the jobs that are due by now, so that the first
  // reserve finds them in their order. O(tubes + jobs that are due): about 2 µs for each tube that
  // has jobs. Jobs that are not due and tubes without jobs cost nothing. `store` must outlive the
  // engine. Throws StoreError if the store cannot be read, and std::invalid_argument if an option
  // is out of range. If only jobs cannot be loaded, the constructor does not throw, but the next
  // `advance` does.
  Engine(Store& store, const EngineOptions& options, Now now);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Returns the id of a new client. At first it uses and watches the tube `default`.
  // REQUIRES, of all methods below that take a ClientId: the client is connected. It does not wait
  // in a reserve either, except for `disconnect`, `stop_waiting` and `holds_jobs`.
  ClientId connect();
  // Gives the client a name, for the stories of the jobs that it reserves. It is cut after
  // kMaxWorkerName bytes.
  void name_client(ClientId client, std::string_view name);
  const std::string& name_of(ClientId client) const;
  // Ends the client's waiting without a Delivery, and makes its reserved jobs ready, or delayed if
  // they were reserved before their time: up to 64 at once, the others in the next calls.
  void disconnect(ClientId client, Now now);

  // --- Producers.

  // Makes `tube` the client's tube in use, which its puts, peeks and kicks work on.
  // REQUIRES, here and below: the name of a tube has 1 to 200 bytes.
  void use(ClientId client, std::string_view tube);
  // Returns the name of the client's tube in use.
  const std::string& tube_in_use(ClientId client) const;
  // Puts a new job into the tube in use. A put that throws may use up an id. Throws StoreError also
  // after kLastId was given, NeverRuns (never_runs.h), or std::invalid_argument if the key has over
  // kMaxKey bytes, or the attributes over kMaxAttributes. A key costs one more look-up.
  PutOutcome put(ClientId client, Now now, const PutOrder& order, std::string_view body);
  // Returns how fast clients may put jobs into the tube now; none if nothing bounds that.
  std::optional<PutRate> put_rate(Now now, std::string_view tube);

  // The same for a body that comes in pieces, so that nobody has to hold all of it, and no call
  // takes long:
  //
  //   LargeBody body = engine.begin_body(1'000'000);
  //   while (body.put < body.bytes) engine.add_piece(body, next_piece());
  //   engine.put(client, now, order, body);
  //
  // A body that was begun is to be put or given up; the next start of an engine gives it up, too.
  // If `put` throws, or refuses the order, nothing was put yet. REQUIRES: more than kBodyPiece
  // bytes; each piece has kBodyPiece bytes, the last one the rest.
  LargeBody begin_body(std::uint32_t bytes);
  void add_piece(LargeBody& body, std::string_view piece);
  PutOutcome put(ClientId client, Now now, const PutOrder& order, const LargeBody& body);
  void give_up(const LargeBody& body);

  // Puts all of the jobs into the tube in use with one append, in their order, or none of them. A
  // job that is not put because of OnConflict::kIgnore does not stand in the way of the others. A
  // caller that got no answer repeats the call with the same BatchOrder::once. Throws NeverRuns and
  // std::invalid_argument if two of them have the same key, or one a larger body than kBodyPiece.
  // O(jobs * log jobs): 1 000 jobs take about 2 ms, and 5 ms if they have keys.
  BatchOutcome put_all(ClientId client, Now now, std::span<const NewJob> jobs,
                       const BatchOrder& order = {});

  // --- Workers.

  // A client watches at most so many tubes. A reserve looks at each of them.
  static constexpr std::size_t kMaxWatched = 10'000;
  // Returns the number of tubes that the client watches then. Throws OverLimit if that would be
  // more than kMaxWatched, or if there are as many tubes as there may be.
  std::size_t watch(ClientId client, std::string_view tube);
  // Returns the number of tubes that the client watches then; none if `tube` is the only one that
  // it watches: then it goes on watching it.
  std::optional<std::size_t> ignore(ClientId client, std::string_view tube);
  std::vector<std::string> watched(ClientId client) const;

  // Reserves the ready job with the lowest (priority, id) in the watched tubes that are not paused,
  // and whose limits let one more job go out (limits.h).
  // While many jobs of a tube become ready at once, in steps, none of it goes out: the order holds
  // among all of them.
  // Returns none if the client has to wait. Then take_deliveries() has its Delivery later: at the
  // latest after `timeout` ms, or without limit if there is no timeout. A timeout of 0 is answered
  // at once, unless many expired jobs stand before the others: then as soon as the next calls of
  // `advance` have taken them away.
  // O(tubes that the client watches): about 0.1 µs for each.
  std::optional<Delivery> reserve(ClientId client, Now now, std::optional<Millis> timeout);
  // Reserves one more job, after a reserve, for a reply that has room for a body of `most` bytes.
  // Returns none, and changes nothing, if no job is ready now, or the one that is next has a larger
  // body: so its group keeps its turn, and its tube the token of a rate.
  std::optional<JobView> reserve_next(ClientId client, Now now, std::uint64_t most);
  // Reserves the given job if it is ready, delayed or buried: the only way to get a job before it
  // is due. No limit of its tube holds it back, but it counts: it runs, and takes a token if there
  // is one. Returns none if there is no such job, or if it is reserved; else a Delivery that is
  // kReserved. When the ttr of a job that was delayed is over, it is delayed until its own time.
  std::optional<Delivery> reserve_job(ClientId client, Now now, JobId id);
  // Ends the client's waiting with kTimedOut, because it has closed its half of the connection.
  // Does nothing if the client does not wait.
  void stop_waiting(ClientId client);

  // The next seven work on jobs that the client has reserved.

  // Makes the job ready, or delayed if `delay` (ms) is not 0. Throws std::out_of_range if the delay
  // does not fit: see `fits`.
  Outcome release(ClientId client, Now now, JobId id, Priority priority, Millis delay);
  // The same for many jobs, with one append. Without a priority each job keeps its own. Returns an
  // outcome for each id; that of an id that comes twice is done once.
  std::vector<Outcome> release_all(ClientId client, Now now, std::span<const JobId> ids,
                                   std::optional<Priority> priority, Millis delay);
  Outcome bury(ClientId client, Now now, JobId id, Priority priority);
  // Lets the job's ttr begin anew; with `ttr` (ms, limited to kMinTtr .. kMaxTtr) it is over after
  // this time, for once. Appends nothing.
  Outcome touch(ClientId client, Now now, JobId id, std::optional<Millis> ttr = std::nullopt);
  // The attempt has failed: counts it, adds it to the job's story (retry.h), and buries the job if
  // it was the last one, else makes it ready or delayed. Without a policy there is no last one.
  // Throws std::out_of_range as `release` does.
  FailOutcome fail(ClientId client, Now now, JobId id, const Failure& failure);
  // Returns true if somebody has asked for the job's cancel. The worker may delete it, or stop in
  // any other way: a release, bury, fail, lost connection or time-out deletes the job then, too.
  bool cancel_asked(ClientId client, JobId id) const;
  // Makes the job ready again, or delayed if it is not due yet, as if it had not been reserved: its
  // history does not show it, and its token goes back. The turn of its group does not. For a job
  // whose body cannot be read now. Appends nothing. Returns false if the client does not hold it.
  bool give_back(ClientId client, Now now, JobId id);
  // Returns true if the client has reserved the job, by the time of the last call.
  bool holds(ClientId client, JobId id) const;
  // Returns true if the client has reserved any job.
  bool holds_jobs(ClientId client) const;

  // --- Anyone.

  // Deletes a job that is ready, delayed, buried, or reserved by this client. If it is reserved or
  // ready (a worker may have taken longer than its ttr), it counts as done, and the window of its
  // key begins. If it is delayed or buried, or its cancel was asked for, its key is free.
  Outcome remove(ClientId client, Now now, JobId id);
  // The same for many jobs, with one append. Returns an outcome for each id; that of an id that
  // comes twice is done once.
  std::vector<Outcome> remove_all(ClientId client, Now now, std::span<const JobId> ids);
  // Deletes a job that nobody has reserved, and its key is free. If somebody has, and `ask` is
  // true, the job is deleted when its reservation ends, and cancel_asked() tells its worker.
  ChangeOutcome cancel(Now now, JobId id, bool ask = false);
  // Changes a job that nobody has reserved. A buried job that gets a due time is not buried any
  // more. Throws NeverRuns.
  ChangeOutcome patch(Now now, JobId id, const Patch& patch);
  // Buries a job that nobody has reserved. It is no attempt, and no reserve. A job that is buried
  // stays where it is.
  ChangeOutcome bury_job(Now now, JobId id, std::optional<Priority> priority = std::nullopt);
  // Returns the job of the tube in use that has the key, or none.
  std::optional<JobId> job_with_key(ClientId client, std::string_view key);

  // The peeks return none if there is no such job.
  std::optional<JobView> peek(Now now, JobId id);
  // The ready job of the tube in use that goes out next.
  std::optional<JobView> peek_ready(ClientId client, Now now);
  // The delayed job of the tube in use that is due first. A call looks at 16 jobs at most, and jobs
  // that were reserved before their time may come first:
  //
  //   DelayedPeek peek;
  //   while (!peek.done) engine.peek_delayed(client, now(), peek);
  //
  // REQUIRES: `use` is not called in between.
  void peek_delayed(ClientId client, Now now, DelayedPeek& peek);
  // The buried job of the tube in use that was buried first.
  std::optional<JobView> peek_buried(ClientId client, Now now);

  // Makes up to `kick.bound` buried jobs of the tube in use ready; if it has none, up to that many
  // delayed jobs. The order is the one in which the peeks show them. A call does one step of at
  // most kKickStep jobs, so that the owner can serve others in between:
  //
  //   Kick kick{.bound = 1'000'000};
  //   while (!kick.done) engine.kick(client, now(), kick);    // kick.kicked: the answer
  //
  // REQUIRES: `use` is not called in between. Jobs that other commands change meanwhile are kicked
  // or not; `kicked` counts the right ones. If the store fails half-way, the kick is done, and has
  // counted those kicked so far; StoreError comes from the first step only.
  static constexpr std::size_t kKickStep = 16;
  void kick(ClientId client, Now now, Kick& kick);
  // Makes one buried or delayed job ready.
  Outcome kick_job(Now now, JobId id);
  // For `duration` ms no job of the tube is reserved, except by `reserve_job`. 0 ends a pause. A
  // pause is not stored: a restart ends it. Returns false if there is no such tube.
  bool pause(Now now, std::string_view tube, Millis duration);

  // Sets what holds for a tube, and makes the tube if there is none. It stays as long as anything
  // is set. Throws std::invalid_argument if a setting is out of its range. Returns the append.
  Sequence set_tube(Now now, std::string_view tube, const TubeSettings& settings);
  // Returns what is set; nothing for a tube that does not exist.
  TubeSettings tube_settings(std::string_view tube) const;
  // The same for a group of a tube (PutOrder::group). Throws OverLimit, too. REQUIRES: the name of
  // a group has 1 to kMaxGroup bytes.
  Sequence set_group(Now now, std::string_view tube, std::string_view group,
                     const GroupSettings& settings);

  // Returns true if a job with this delay (ms) would be due by kLastDue. A caller checks this
  // before `release`, whose Outcome has no way to say so.
  bool fits(Now now, Millis delay) const;

  // --- Schedules: queue/schedule.h says what they are, docs/queue.md#schedules what happens when.
  // REQUIRES: the name of a schedule has 1 to kMaxScheduleText bytes. Each command is one append.

  // Makes a schedule, or changes the one with the name. What it has put, counted and skipped stays;
  // if it occurs at other times from now on, no occurrence before now is caught up. If it is
  // paused, it stays so. Throws std::invalid_argument, with one line that says what is wrong and
  // what is allowed, and OverLimit if schedules would take more than options.max_schedule_bytes, or
  // if there may be no more tubes.
  // With `paused` it is paused from then on, too.
  Outcome set_schedule(Now now, std::string_view name, const Schedule& schedule,
                       bool paused = false);
  // The four return without effect if there is no such schedule. Deletes it; its jobs stay.
  Outcome remove_schedule(Now now, std::string_view name);
  // No occurrence fires until the schedule is resumed. Those that come meanwhile are skipped.
  Outcome pause_schedule(Now now, std::string_view name);
  Outcome resume_schedule(Now now, std::string_view name);
  // Puts the schedule's job now, also if it is paused, or a job of it is there: a batch of one. If
  // its token is known, it is answered again, though the schedule may be gone.
  std::optional<BatchOutcome> trigger_schedule(Now now, std::string_view name,
                                               const BatchOrder& order = {});
  // Returns the schedule with its next `times` occurrences. O(times).
  std::optional<ScheduleView> schedule(Now now, std::string_view name, std::size_t times);
  // Returns the first `limit` names after `name`, in the order of their bytes. O(limit).
  std::vector<std::string> schedules(std::string_view name, std::size_t limit) const;
  // Returns what happened to schedules since the last call; of more than 1 000 events the first.
  std::vector<ScheduleEvent> take_schedule_events();

  // --- Endpoints: queue/endpoint.h says what they are, and what is thrown.

  Outcome set_endpoint(Now now, std::string_view name, const Endpoint& endpoint);
  Outcome remove_endpoint(Now now, std::string_view name);
  const Endpoints& endpoints() const;
  std::uint64_t endpoint_changes() const;  // grows with each change of one

  // --- Time.

  // Does what is due by now: delayed jobs become ready, reserved jobs run out of their ttr, waiting
  // clients time out, pauses end, far jobs are loaded. Every command that takes `now` does this
  // first, except `disconnect`. If `options.step` cut it short, next_wakeup() is in the past.
  // Throws StoreError if jobs that will soon be due could not be loaded, in this call or in an
  // earlier command. All else was done then. Loading is tried again after 1 s.
  void advance(Now now);
  // Returns the moment of the monotonic clock (ns) before which nothing happens, unless a command
  // comes or the wall clock is set. Returns none if nothing is pending.
  std::optional<std::uint64_t> next_wakeup() const;
  // Returns how the waits ended that have ended since the last call, in the order of their ends.
  std::vector<Delivery> take_deliveries();

  // --- Reports.

  // Returns true if a batch with this token (BatchOrder::once) would be answered as the first one.
  bool knows_token(std::string_view token) const;
  // Returns how many milliseconds the wall clock was set forward (negative: back), as of the last
  // command, since an engine of this store last knew the time.
  std::int64_t clock_moved() const;
  // Returns the story of the job (retry.h), from the earliest attempt on; none if there is no such
  // job.
  std::optional<std::vector<Attempt>> story(Now now, JobId id);
  std::optional<JobStats> job_stats(Now now, JobId id);
  std::optional<TubeStats> tube_stats(Now now, std::string_view tube);
  std::optional<GroupStats> group_stats(Now now, std::string_view tube, std::string_view group);
  // Returns up to `limit` groups of a tube, from the one with the number `from` on, or the next
  // one; 0: from the first. A group that has jobs or settings has a number, over restarts too: so a
  // list in pages has each group that is there all the time once. Returns none if there is no such
  // tube. O(limit + log groups).
  std::optional<GroupPage> list_groups(Now now, std::string_view tube, std::uint32_t from,
                                       std::size_t limit);
  EngineStats stats(Now now);
  // The same, as of the last call that was told the time. O(1).
  EngineStats stats() const;
  // Goes on with a count of the timers on the wheels: reads the slots of a wheel until it has read
  // 2^18 entries, of which each timer has one to three: under a millisecond. Returns true if it has
  // read all. Timers that move meanwhile may be counted twice, or not at all. REQUIRES: the count
  // is not done.
  bool count_timers(TimerCount& count) const;
  // Returns the names of all tubes. O(tubes).
  std::vector<std::string> tubes() const;
  // The same in steps, so that the owner can serve others in between. `list_tubes` begins, and
  // returns how long the list will be; each call of `next_tubes` returns some of the names:
  //
  //   const TubeListSize size = engine.list_tubes(client);
  //   for (std::uint64_t got = 0; got < size.tubes;) {
  //     const auto names = engine.next_tubes(client);       // perhaps none of them
  //     if (!names) break;                                  // the list is lost
  //     got += names->size();
  //   }
  //
  // The list has the tubes that there were when it began, also those that are forgotten meanwhile;
  // the others are in the order of `tubes`. It is lost if more than 16 384 tubes were forgotten
  // between two calls. A client has one list at a time: the next one ends the one before.
  TubeListSize list_tubes(ClientId client);
  // REQUIRES: names are left.
  std::optional<std::vector<std::string>> next_tubes(ClientId client);
  void end_tube_list(ClientId client);  // if it has one

  // Returns up to `limit` jobs of a tube, and moves the list on (job_listing.h). A call looks at 64
  // jobs at most, and at 32 groups, so it may return none though others follow. Throws StoreError;
  // the list can go on then.
  std::vector<ListedJob> list_jobs(Now now, JobListing& list, std::size_t limit);
  // Goes on with a change of many jobs of a tube, by one append at most (job_bulk.h). Throws
  // StoreError with nothing changed, and OverLimit if the tube they move to cannot be made.
  void change_jobs(Now now, JobBulk& bulk);
  // Goes on counting what is due when (due_counts.h).
  void count_due(Now now, DueCounts& counts);
  // Returns the sequence number of the last append. An answer "there is no such job" may depend on
  // it, so the answer waits until that append is durable.
  Sequence last_sequence() const;

  // Stores exact watermarks, so that after a clean shutdown the ids go on without a gap.
  void close();

  // Writes a line to stderr and aborts if an invariant is broken. For tests. O(jobs of the store).
  void check_invariants() const;

 private:
  PutOutcome put(ClientId client, Now now, const PutOrder& order, const LargeBody& of,
                 std::string_view body);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carillon::queue
