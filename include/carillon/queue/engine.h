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
// Each part of its methods has a header of its own:
//   engine_jobs.h        put, delete, cancel, patch, peek, kick
//   engine_workers.h     watch, reserve, release, bury, touch, fail
//   engine_tubes.h       pauses, settings, groups, lists of tubes
//   engine_schedules.h   schedules, endpoints
//   engine_reports.h     statistics, stories, lists of jobs, what is due when
// Code that needs only one part can take only that: `void fire(EngineSchedules& engine, Now now);`.
//
// Contracts
// 1. *Never early.* No job is handed out before the wall clock shows its due time. A wrong wall
//    clock may harm only decisions made while it is wrong: once it has been put right, no job that
//    was put before, meanwhile or after is early, not even over restarts, and nothing fires twice.
//    A delay is counted by the monotonic clock as well, so setting the wall clock forward does not
//    shorten it. docs/queue.md has a table of what happens when (#time).
// 2. *Nothing acknowledged is lost.* Each command appends its changes to the store before it
//    changes anything in memory. If the append throws StoreError, the command throws it on and has
//    changed nothing. The answer to a command may leave for the client once the store's appends up
//    to the answer's `durable_at` are durable.
// 3. *Far jobs cost no memory.* In memory are the jobs due within `load_ahead`, the reserved jobs,
//    and the ready jobs; at most about `max_loaded_per_tube` for each tube, without the reserved
//    ones. All other jobs are only in the store. They are loaded shortly before they are due, or
//    when there is room. If a tube has more ready jobs than may be loaded, those that were due
//    first are loaded, and priorities order only the loaded ones.
// 4. *Bounded work.* No command does more than a bounded number of steps, with two exceptions. The
//    first command after the wall clock was set visits all jobs in memory and all tubes. And a
//    command that makes jobs ready, ends a pause or raises a limit serves all clients that wait.
//    The next calls do the remaining work; until it is done, `next_wakeup` returns a moment that
//    has passed.
// 5. *No bodies.* The engine appends the body of a put, and reads none: a job is handed out by its
//    id, and the caller reads the body from the store, in a thread of its choice. If the body
//    cannot be read now, `give_back` undoes the reserve. If it is damaged, it will be so the next
//    time, too: `bury` the job, or it comes again and again.
//
// Errors. A method that reads or appends throws StoreError if the store fails; the state is then as
// it was before the command, but the time has advanced. StoreError can come from `put`, `put_all`,
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

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/engine_jobs.h"
#include "carillon/queue/engine_options.h"
#include "carillon/queue/engine_reports.h"
#include "carillon/queue/engine_schedules.h"
#include "carillon/queue/engine_tubes.h"
#include "carillon/queue/engine_workers.h"
#include "carillon/queue/now.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

class Engine : public EngineJobs,
               public EngineWorkers,
               public EngineTubes,
               public EngineSchedules,
               public EngineReports {
 public:
  // Loads from the store the jobs that are due by now, so that the first reserve finds them in
  // their order. O(tubes + jobs that are due): about 2 µs for each tube that has jobs. Jobs that
  // are not due and tubes without jobs cost nothing. `store` must outlive the engine. Throws
  // StoreError if the store cannot be read, and std::invalid_argument if an option is out of range.
  // If only jobs cannot be loaded, the constructor does not throw, but the next `advance` does.
  Engine(Store& store, const EngineOptions& options, Now now);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- Clients

  // Returns the id of a new client. At first it uses and watches the tube `default`. All methods
  // that take a ClientId, also those of the parts, REQUIRE: the client is connected, and, except
  // for `disconnect`, `stop_waiting` and `holds_jobs`, does not wait in a reserve.
  ClientId connect();
  // Gives the client a name, for the stories of the jobs that it reserves. It is cut after
  // kMaxWorkerName bytes.
  void name_client(ClientId client, std::string_view name);
  const std::string& name_of(ClientId client) const;
  // Ends the client's waiting without a Delivery, and makes its reserved jobs ready, or delayed if
  // they were reserved before their time: up to 64 now, the others in the next calls.
  void disconnect(ClientId client, Now now);

  // --- Time

  // Does everything that is due by now: delayed jobs become ready, reserved jobs run out of their
  // ttr, waiting clients time out, pauses end, far jobs are loaded. Every command that takes `now`
  // does this first, except `disconnect`. If `options.step` cut it short, next_wakeup() is in the
  // past. Throws StoreError if jobs that will soon be due could not be loaded, in this call or in
  // an earlier command. Everything else was done then. Loading is tried again after 1 s.
  void advance(Now now);
  // Returns the moment of the monotonic clock (ns) before which nothing happens, unless a command
  // comes or the wall clock is set. Returns none if nothing is pending.
  std::optional<std::uint64_t> next_wakeup() const;
  // Returns how waits have ended since the last call, in the order of their ends.
  std::vector<Delivery> take_deliveries();
  // Returns how many milliseconds the wall clock was set forward (negative: back), as of the last
  // command, since an engine of this store last knew the time.
  std::int64_t clock_moved() const;

  // --- The store

  // Returns the sequence number of the last append. An answer "there is no such job" may depend on
  // it, so the answer waits until that append is durable.
  Sequence last_sequence() const;

  // Appends a change of nothing, so that what waits for an append need not wait for a command.
  // Throws StoreError.
  void append_barrier();

  // Stores exact watermarks, so that after a clean shutdown the ids go on without a gap.
  void close();

  // Writes a line to stderr and aborts if an invariant is broken. For tests. O(jobs of the store).
  void check_invariants() const;

 private:
  explicit Engine(std::unique_ptr<EngineState> state);

  const std::unique_ptr<EngineState> state_;
};

}  // namespace carillon::queue
