// The queue engine: tubes, jobs and workers as a deterministic state machine on timing wheels.
//
// Commands and the time go in; answers and changes to the store come out. There is no thread, clock
// or socket inside, and no disk but the Store it is given, so whole histories can be replayed, on a
// virtual clock, with a store in memory.
//
//   MemoryStore store;
//   Engine engine(store, {}, now);
//   ClientId client = engine.connect();
//   auto put = engine.put(client, now, {.priority = 0, .due_in = 3'000, .ttr = 60'000}, "hello");
//   if (auto got = engine.reserve(client, now, {})) ...         // an answer at once, or
//   engine.advance(later);                                      // the 3 s go by
//   for (Delivery& d : engine.take_deliveries()) ...            // d.client got the job
//
// Contracts
// 1. *Never early.* No job is handed out before its due time by the engine's clock, which is the
//    UTC clock, never set back: when the wall clock is, the engine's goes on at the pace of the
//    monotonic one until the wall clock has caught up, over restarts too.
// 2. *Nothing acknowledged is lost.* Each command appends its changes to the store before it
//    changes anything in memory; when the append throws StoreError, the command throws it on and
//    has had no effect (but see `kick`). An answer may leave for the client once `durable_at`
//    (which see) is durable.
// 3. *Far jobs cost no memory.* In memory are the jobs due within `load_ahead`, those reserved, and
//    those ready, at most about `max_loaded_per_tube` of each tube; the rest is in the store alone
//    and is loaded shortly before its time, or as room appears. Where more are ready than may be
//    loaded, priorities hold among those loaded, and those are the ones due first.
// 4. *Bounded work.* No call but `kick` and `disconnect`, which do what was asked, does more than a
//    bounded number of steps; what is left is done by the next, and `next_wakeup` says now.
//
// Thread safety: none. One thread owns an engine; a process may have many engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carillon/queue/job.h"
#include "carillon/queue/now.h"
#include "carillon/queue/store.h"

namespace carillon::queue {

using ClientId = std::uint64_t;

struct EngineOptions {
  Millis load_ahead = 60'000;  // a job due within this time is brought into the wheel
  std::size_t max_loaded_per_tube =
      1'000'000;             // ready and delayed jobs of one tube in memory, about
  std::size_t step = 1'000;  // timers fired, and jobs loaded, by one call of advance at the most
};

// What is asked of a new job, beside its body. Exactly one of the two times counts: `due_at` if it
// is there, else `due_in`.
struct PutOrder {
  Priority priority = 0;
  Millis due_in = 0;                 // from now
  std::optional<UtcMs> due_at = {};  // by the engine's clock (contract 1); the past is now
  Millis ttr = 60'000;               // less than kMinTtr becomes kMinTtr, more than kMaxTtr kMaxTtr
};

// The answer to a command. It may leave for the client once the store's appends up to `durable_at`
// are durable: it tells of them.
struct Outcome {
  bool done = false;  // false: there is no such job in a state that the command works on
  Sequence durable_at = 0;
};

struct PutOutcome {
  JobId id = 0;  // 0: refused, because it would be due after kLastDue
  Sequence durable_at = 0;
};

struct KickOutcome {
  std::uint64_t kicked = 0;
  Sequence durable_at = 0;
};

// A job as a client gets to see it.
struct JobView {
  JobId id = 0;
  std::string body;
  Sequence durable_at = 0;
};

// How a reserve ends.
struct Delivery {
  enum class Kind : std::uint8_t {
    kReserved,  // `job` is the client's for its ttr
    kDeadlineSoon,  // a job that the client holds has less than kSafetyMargin left, and no watched tube has a ready one
    kTimedOut,
    kFailed,  // the job's body could not be read: `error` says why; the job was buried
  };
  ClientId client = 0;
  Kind kind = Kind::kTimedOut;
  JobView job;
  std::string error;
};

struct JobStats {
  JobRecord record;
  std::string tube;
  JobState state = JobState::kReady;
  Millis age = 0;        // since it was put
  Millis time_left = 0;  // until it is ready (delayed) or its ttr is over (reserved); else 0
  Sequence durable_at = 0;
};

// Jobs by state. `delayed` counts those in the store alone too, `loaded` those in memory.
struct JobCounts {
  std::uint64_t urgent = 0;  // ready, with a priority below kUrgentBelow
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;
  std::uint64_t total = 0;  // put since the engine was made
  std::uint64_t loaded = 0;
};

struct TubeStats {
  std::string name;
  JobCounts jobs;
  std::uint64_t using_ = 0;  // clients that use it
  std::uint64_t watching = 0;
  std::uint64_t waiting = 0;  // clients that wait in a reserve and watch it
  std::uint64_t deletes = 0;
  std::uint64_t pauses = 0;
  Millis pause = 0;  // as last asked for, while it lasts
  Millis pause_left = 0;
};

struct EngineStats {
  JobCounts jobs;
  std::uint64_t timeouts = 0;  // reservations that ran out of their ttr
  std::uint64_t tubes = 0;
  std::uint64_t waiting = 0;  // clients that wait in a reserve
};

class Engine {
 public:
  // Takes up what the store holds, and loads what is due by now, so that the first reserve finds it
  // in its order: O(tubes + jobs due), whatever the number of jobs that are not. `store` must
  // outlive the engine. Throws StoreError; not when jobs could not be loaded, which `advance`
  // tells.
  Engine(Store& store, const EngineOptions& options, Now now);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A client uses and watches the tube `default` at first. REQUIRES, here and below: `client` is
  // connected, and does not wait in a reserve (but may be disconnected then).
  ClientId connect();
  // Its reserved jobs are ready again at once.
  void disconnect(ClientId client, Now now);

  // --- Producers. `put` goes to the tube in use.
  void use(ClientId client,
           std::string_view tube);  // REQUIRES, here and below: a tube's name has 1 to 200 bytes
  const std::string& used(ClientId client) const;
  PutOutcome put(ClientId client, Now now, const PutOrder& order, std::string_view body);

  // --- Workers.
  std::size_t watch(ClientId client, std::string_view tube);  // how many it watches then
  std::optional<std::size_t> ignore(ClientId client,
                                    std::string_view tube);  // none: it was the only one, and stays
  std::vector<std::string> watched(ClientId client) const;

  // The ready job of the lowest (priority, id) in the watched tubes. None: the client waits, and
  // its Delivery comes by take_deliveries(): after `timeout` (none: for ever) at the latest. A
  // timeout of 0 is answered at once.
  std::optional<Delivery> reserve(ClientId client, Now now, std::optional<Millis> timeout);
  // A given job that is ready, delayed or buried: the one way to get a job before it is due. The
  // Delivery is kReserved or kFailed (the job is where it was); none: there is no such job, or it
  // is reserved.
  std::optional<Delivery> reserve_job(ClientId client, Now now, JobId id);
  // Ends a client's waiting with kTimedOut (its half of the connection was closed). Nothing happens
  // to one that does not wait.
  void stop_waiting(ClientId client);

  Outcome release(ClientId client, Now now, JobId id, Priority priority,
                  Millis delay);  // see `fits`
  Outcome bury(ClientId client, Now now, JobId id, Priority priority);
  Outcome touch(ClientId client, Now now, JobId id);  // the ttr begins anew
  bool holds_jobs(ClientId client) const;  // any that are reserved by it; also while it waits

  // --- Anyone. `remove` works on jobs that are ready, delayed, buried, or reserved by the client
  // itself.
  Outcome remove(ClientId client, Now now, JobId id);
  std::optional<JobView> peek(Now now, JobId id);
  std::optional<JobView> peek_ready(
      ClientId client,
      Now now);  // of the tube in use, here and below: the next to go out
  std::optional<JobView> peek_delayed(ClientId client, Now now);  // the one due first
  std::optional<JobView> peek_buried(ClientId client, Now now);   // the one buried first
  // Makes up to `bound` buried jobs ready, or, if there is none, delayed ones; in the order in
  // which peek shows them. Its work is in proportion to the jobs kicked. When the store fails
  // half-way, those already kicked stay kicked.
  KickOutcome kick(ClientId client, Now now, std::uint64_t bound);
  Outcome kick_job(Now now, JobId id);                          // buried or delayed
  bool pause(Now now, std::string_view tube, Millis duration);  // false: there is no such tube

  // Whether a delay of this many ms can be represented: what does not fit is to be refused (release
  // has no other way to say so).
  bool fits(Now now, Millis delay) const;

  // --- Time. Makes happen what is due: jobs become ready or run out of their ttr, reserves time
  // out, pauses end, far jobs are loaded. Every command that takes `now` does this first. When
  // `options.step` cut it short, next_wakeup() is in the past. Throws StoreError when jobs that are
  // near could not be loaded, now or in a command before; all else was done, and loading is tried
  // again a second later.
  void advance(Now now);
  // Nothing happens before this moment by the monotonic clock (ns) unless a command or a step of
  // the wall clock comes. None: nothing is pending.
  std::optional<std::uint64_t> next_wakeup() const;
  // Ends of waiting since the last call, in the order in which they happened.
  std::vector<Delivery> take_deliveries();

  // --- Reports.
  // How far the engine's clock is ahead of the wall clock, since that was set back (contract 1); as
  // of the last command.
  Millis clock_ahead() const;
  std::optional<JobStats> job_stats(Now now, JobId id);
  std::optional<TubeStats> tube_stats(Now now, std::string_view tube);
  EngineStats stats() const;
  std::vector<std::string> tubes() const;
  Sequence last_sequence()
      const;  // of the last append: what "there is no such job" may be telling of

  // Stores exact watermarks, so that ids go on without a gap. For a clean shutdown.
  void close();

  // Aborts with a line to stderr if an invariant is broken. O(jobs in memory). For tests.
  void check_invariants() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carillon::queue
