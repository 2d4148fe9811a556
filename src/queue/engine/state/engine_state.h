// All of an engine: its parts, and the advance of time.
//
// Each part owns what it keeps, and refers to those others that it needs:
//
//   appender    the changes of a command, and what the store has of ids and the clock
//   tubes       all tubes and lanes
//   jobs        the jobs in memory, and their moves
//   ripening    delayed jobs become ready
//   far         the jobs in the store alone: loaded in time, counted while there is no room
//   placing     jobs follow a wall clock that was set
//   clients     who watches, holds and waits
//   throttle    pauses, limits and rates of tubes
//   keys        the keys of jobs, the tokens of batches
//   puts        what a put meets; removals: what a deletion leaves
//   endings     reservations that end, jobs that expire
//   retention   dead jobs that go
//   schedules   jobs that are put again and again
//
// The commands (*_commands.cpp, batches.cpp, peek_kick_delete.cpp, job_edits.cpp, job_bulk.cpp) and
// the reports are made of their moves.
//
// A command looks jobs up, appends its changes to the store, and only then changes memory. If the
// append fails, there is nothing to undo. What comes behind an append is noexcept: if memory runs
// out there, the process ends, as its memory would not be what the store has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "carillon/queue/engine.h"
#include "queue/engine/jobs/endings.h"
#include "queue/engine/jobs/far_jobs.h"
#include "queue/engine/jobs/keys.h"
#include "queue/engine/jobs/loaded_jobs.h"
#include "queue/engine/jobs/puts.h"
#include "queue/engine/jobs/removals.h"
#include "queue/engine/jobs/retention.h"
#include "queue/engine/jobs/ripening.h"
#include "queue/engine/schedules/schedules.h"
#include "queue/engine/state/appender.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/engine_counts.h"
#include "queue/engine/state/placing.h"
#include "queue/engine/state/planned.h"
#include "queue/engine/tubes/tubes.h"
#include "queue/engine/workers/clients.h"
#include "queue/engine/workers/throttle.h"

namespace carillon::queue {

struct EngineState {
  EngineState(Store& in, const EngineOptions& with, Recovered recovered, Now now);
  ~EngineState();
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  // Reads the time. Every command does this first.
  void observe(Now now) {
    appender.changes.clear();  // a command that gathered some may have thrown
    if (const std::int64_t step = clock.observe(now)) on_clock_step(step < 0);
  }
  // Does a small part of what is due: enough if no storm is under way. Called by each command.
  void advance(Now now);
  void advance(Now now, std::size_t step);

  // Makes the jobs with these records ready, in one append. REQUIRES: all are in one tube, and each
  // is buried or delayed.
  Sequence kick(const std::vector<JobRecord>& records, Anew anew = Anew::kOfBuried);

  // At a start: the leases that the store has go on.
  void restore(const std::vector<LeaseRecord>& leases);

  void check_invariants() const;

  Store& store;
  const EngineOptions options;
  EngineClock clock;
  const std::int64_t lead_before;  // EngineClock::lead() when the engine before this one ended
  EngineCounts counts;
  Appender appender;
  Tubes tubes;
  LoadedJobs jobs;
  Ripening ripening;
  FarJobs far;
  Placing placing;
  Throttle throttle;
  Clients clients;
  Keys keys;
  Puts puts;
  Removals removals;
  Retention retention;
  Endings endings;
  Schedules schedules;
  std::vector<FormerWorker> former_workers;
  Endpoints endpoints;
  std::uint64_t endpoint_changes = 0;  // how many there were so far

 private:
  // REQUIRES: the client is new.
  void watch_only(Client& client, Tube& tube);
  // The wall clock was set back, or forward.
  void on_clock_step(bool back);
  void load_what_is_near(std::vector<Tube*>& loaded_tubes, std::vector<std::uint32_t>& emptied,
                         std::size_t budget);
};

}  // namespace carillon::queue
