// A tube: its jobs in memory in their orders, the clients that wait for them, and how far the
// store's jobs have been loaded.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "carillon/queue/store.h"
#include "queue/engine/client.h"
#include "queue/engine/loaded_job.h"

namespace carillon::queue {

// A timer that belongs to a tube: the end of its pause, or the time to load more of its jobs.
struct TubeTimer : TimerNode {
  explicit TubeTimer(Tube& of) : tube(&of) {}
  Tube* tube;
};

struct Tube {
  Tube(std::uint32_t number, std::string name) : pause_end(*this), load_time(*this) {
    record.number = number;
    record.name = std::move(name);
  }

  template <class Order>
  using JobSet = boost::intrusive::set<
      LoadedJob, boost::intrusive::compare<Order>,
      boost::intrusive::member_hook<LoadedJob, LoadedJob::OrderHook, &LoadedJob::order_hook>>;
  using WaitingLine = boost::intrusive::list<
      Watch, boost::intrusive::member_hook<Watch, boost::intrusive::list_member_hook<>,
                                           &Watch::waiting_hook>>;

  bool paused() const { return pause_end.armed(); }
  bool can_serve() const { return !ready.empty() && !waiting.empty() && !paused(); }
  bool has_jobs() const { return record.scheduled + record.buried > 0; }
  bool referenced() const { return has_jobs() || users + watchers > 0; }

  // Jobs in memory that nobody has reserved: what the bound on memory counts.
  std::size_t queued() const { return loaded - reserved; }

  // Jobs that are scheduled and in the store alone. Exact between commands.
  std::uint64_t far() const { return record.scheduled - loaded; }

  TubeRecord record;  // as it stands in the store, if it has jobs
  JobSet<ByPriority> ready;
  JobSet<ByDue> delayed;  // those in memory; each one's due key is before the cursor
  std::uint64_t reserved = 0;
  std::uint64_t urgent = 0;
  std::size_t loaded = 0;  // ready + delayed + reserved

  // Loading. Every scheduled job whose due key is before the cursor is in memory, so a new job that
  // is due before it must be put there too, and one that is due after it will be found by the next
  // scan of the store: no gap, and nothing twice.
  DueKey cursor;
  UtcMs next_far =
      0;  // no job that is in the store alone is due before; meaningless when far() is 0
  bool starved = false;  // jobs were left in the store for want of room; load when there is some

  WaitingLine waiting;
  TubeTimer pause_end;
  Millis pause = 0;  // as last asked for, while it lasts
  TubeTimer load_time;

  std::size_t position = 0;  // in the engine's order of tubes
  std::uint64_t users = 0;
  std::uint64_t watchers = 0;
  std::uint64_t total = 0;
  std::uint64_t deletes = 0;
  std::uint64_t pauses = 0;
};

}  // namespace carillon::queue
