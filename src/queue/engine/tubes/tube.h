// A tube: its jobs in memory in their orders, the clients that wait for them, and how far its jobs
// have been loaded from the store.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "carillon/queue/store.h"
#include "queue/engine/jobs/loaded_job.h"
#include "queue/engine/tubes/groups.h"
#include "queue/engine/workers/client.h"
#include "queue/engine/workers/limiter.h"

namespace carillon::queue {

// A timer that belongs to a tube: the time when its first delayed job is due, the end of its pause,
// or the time to load more of its jobs.
struct TubeTimer : TimerNode {
  explicit TubeTimer(Tube& of) : tube(&of) {}
  Tube* tube;
};

// How many far jobs of a tube are ready (far_jobs.h).
struct FarCount {
  explicit FarCount(Tube& of) : time(of) {}

  // The far jobs before `counted`: those with a priority below kUrgentBelow, and all.
  std::uint64_t urgent = 0;
  std::uint64_t ready = 0;
  // At most the first (due, id) that was not due yet at the last count.
  DueKey counted{};
  // No other far job is due before this.
  UtcMs next = 0;
  // Armed while there are other far jobs: no later than the first of them is due.
  TubeTimer time;
};

// What bounds the jobs of a tube that are reserved (throttle.h).
struct TubeLimits {
  TubeLimits(Tube& of, const Limits& limits, std::uint64_t now) : limiter(limits, now), wake(of) {}

  Limiter limiter;
  // Armed while a client was refused for lack of a token: expires no later than a token comes.
  TubeTimer wake;
};

// Awaits the end of the retention of dead jobs (retention.h).
struct Retained {
  explicit Retained(Tube& of) : time(of) {}

  // Armed while there may be dead jobs: expires no later than the first one must go.
  TubeTimer time;
  // No dead job of the tube, or lane, is buried with a lower number.
  std::uint64_t from = 0;
  // In a tube with groups: the lanes from this number on must still be visited. 0: none.
  std::uint32_t lane = 0;
};

struct Tube {
  explicit Tube(TubeRecord stored)
      : record(std::move(stored)),
        due_time(*this),
        far(record.scheduled),
        pause_end(*this),
        load_time(*this) {}

  template <class Order>
  using JobSet = boost::intrusive::set<
      LoadedJob, boost::intrusive::compare<Order>,
      boost::intrusive::member_hook<LoadedJob, LoadedJob::OrderHook, &LoadedJob::order_hook>>;
  using WaitingLine = boost::intrusive::list<
      Watch, boost::intrusive::member_hook<Watch, boost::intrusive::list_member_hook<>,
                                           &Watch::waiting_hook>>;

  bool paused() const { return pause_end.armed(); }
  bool ripening() const { return ripening_hook.is_linked(); }
  // The tube that clients know: for a lane the tube of its group (groups.h).
  Tube& head() { return turn ? *turn->head : *this; }
  const Tube& head() const { return turn ? *turn->head : *this; }
  bool is_lane() const { return record.head != 0; }
  // The sums of the tube and its groups together; nullptr for a tube without groups.
  Groups::Sums* sums() { return turn ? &turn->head->groups->sums : nullptr; }

  // The lane with this number, or the next one by number; for 0 the tube itself. nullptr: no lane
  // follows.
  Tube* lane_from(std::uint32_t number) {
    if (number == 0) return this;
    return groups ? groups->from_number(number) : nullptr;
  }
  // The lane after `lane`, which may be the tube itself, in that order.
  Tube* lane_after(const Tube& lane) {
    return lane_from(lane.is_lane() ? lane.record.number + 1 : 1);
  }

  // Returns the ready job in memory that goes out next; nullptr if no job is ready. REQUIRES: this
  // is no lane.
  LoadedJob* first() {
    Tube* const lane = groups ? groups->first() : this;
    return lane == nullptr || lane->ready.empty() ? nullptr : &*lane->ready.begin();
  }
  // Returns true if its ready jobs may go out. REQUIRES: this is no lane.
  bool open() const {
    if (paused() || ripening()) return false;
    return groups != nullptr || !ready.empty();
  }
  // No delayed job in memory is due before this; none if there is no such job. REQUIRES: this is no
  // lane.
  std::optional<UtcMs> due_from() const {
    if (groups) {
      const Turn* const first = groups->first_due();
      return first == nullptr ? std::nullopt : std::optional(first->due_from);
    }
    return delayed.empty() ? std::nullopt : std::optional(delayed.begin()->due_at);
  }
  // Returns the client that has waited longest; nullptr if no client waits. Removes from the line
  // the clients before it that have stopped waiting.
  Client* first_waiting() {
    while (!waiting.empty() && !waiting.front().client->waiting) waiting.pop_front();
    return waiting.empty() ? nullptr : waiting.front().client;
  }
  // A job of the tube that is due then is reserved from now on.
  void reserve(UtcMs its_due) {
    reserved_until = std::max(reserved == 0 ? 0 : reserved_until, its_due);
    ++reserved;
    if (turn) ++sums()->reserved;
  }
  void end_reservation() {
    --reserved;
    if (turn) --sums()->reserved;
  }
  // Clients may not put jobs; schedules may.
  bool refuses_puts() const { return record.settings && record.settings->refuses_puts; }
  bool referenced() const {
    return !record.empty() || users + watchers + schedules > 0 || groups != nullptr;
  }

  // Jobs that are with workers, or were and their end is not stored yet; in a tube with groups, all
  // of them.
  std::uint64_t running() const {
    return groups ? groups->sums.reserved - groups->sums.ending : reserved - ending;
  }
  // Limits of the tube, or of the group and its tube, may hold it back.
  bool limited() const { return limits || head().limits; }
  // The rate of puts has changed, or was removed.
  void follow_put_rate(std::uint64_t now) noexcept;
  // Returns true if the rate lets clients put this many jobs now.
  bool lets_put(std::uint64_t jobs, std::uint64_t now) const {
    return puts == nullptr || puts->tokens(now) >= jobs;
  }
  // Clients have put this many jobs. REQUIRES: lets_put().
  void count_puts(std::uint64_t jobs, std::uint64_t now) noexcept {
    if (puts) puts->take(jobs, now);
  }
  // One job more, or less, waits for its end to be stored, and does not come from a worker.
  void count_ending(int by) {
    ending += static_cast<std::uint64_t>(by);
    if (turn) sums()->ending += static_cast<std::uint64_t>(by);
  }
  // Jobs in memory that are not reserved: EngineOptions::max_loaded_per_tube bounds these.
  std::size_t queued() const { return loaded - reserved; }

  // Ready jobs, in memory or in the store alone.
  std::uint64_t ready_jobs() const { return ready.size() + (far_count ? far_count->ready : 0); }
  // The same, with a priority below kUrgentBelow.
  std::uint64_t urgent_jobs() const { return urgent + (far_count ? far_count->urgent : 0); }

  // Jobs that are neither ready nor reserved nor buried, in memory or in the store alone.
  std::uint64_t delayed_jobs() const { return record.scheduled - ready_jobs() - reserved; }

  // For the tube and its groups together.
  std::uint64_t all_buried() const { return groups ? groups->sums.buried : record.buried; }
  std::uint64_t all_delayed() const {
    if (!groups) return delayed_jobs();
    return groups->sums.scheduled - groups->sums.ready - groups->sums.reserved;
  }

  // As it is in the store, if the tube has jobs.
  TubeRecord record;
  JobSet<ByPriority> ready;
  // The delayed jobs in memory.
  JobSet<ByDue> delayed;
  // Not used in a lane. Armed while the tube, or a lane of it, has delayed jobs in memory and is
  // not ripening: expires no later than the first of them is due.
  TubeTimer due_time;
  // While the tube is *ripening*, its delayed jobs that were due at `ripe_until` become ready,
  // those of its lanes too. Many may be due together, so that takes several steps. Until it is done
  // no ready job goes out, because another one may come before it. Not used in a lane.
  boost::intrusive::list_member_hook<> ripening_hook;
  UtcMs ripe_until = 0;
  std::uint64_t reserved = 0;
  std::uint64_t ending =
      0;              // reserved jobs that wait for their end to be stored: see count_ending()
  Tick end_turn = 0;  // the last job whose end was queued has it (endings.h). 0 in a lane
  UtcMs reserved_until = 0;  // while any job is reserved: none of these is due later
  std::uint64_t urgent = 0;  // those in `ready`
  std::size_t loaded = 0;    // ready + delayed + reserved

  // Every job that is not buried and whose due key is before the cursor is in memory. So a new job
  // that is due before the cursor must be in memory too. The next scan of the store, from the
  // cursor on, will find a new job that is due after it: no job is missed, and none is loaded
  // twice.
  DueKey cursor;
  // Jobs that are not buried and only in the store. Jobs of a batch that was appended, and is not
  // all in memory yet, do not count.
  std::uint64_t far = 0;
  // No job that is only in the store is due before this. Meaningless while `far` is 0.
  UtcMs next_far = 0;
  // True if jobs were left in the store because memory had no room. They are loaded when it has.
  bool starved = false;
  // Made when the tube is starved, and kept until all jobs that are due are in memory.
  std::unique_ptr<FarCount> far_count;

  WaitingLine waiting;
  TubeTimer pause_end;
  Millis pause = 0;                    // as the pause in force asked
  std::unique_ptr<TubeLimits> limits;  // null: no limits
  std::unique_ptr<Limiter> puts;       // the rate of puts; null: no rate
  TubeTimer load_time;
  std::unique_ptr<Retained> retained;  // null: no dead job of the tube must go

  std::unique_ptr<Turn> turn;      // in a lane, and in a tube with groups
  std::unique_ptr<Groups> groups;  // while it has lanes

  std::size_t position = 0;  // in the engine's order of tubes, or of lanes
  std::uint64_t made = 0;    // the number of tubes made before it
  std::uint64_t users = 0;
  std::uint64_t watchers = 0;
  std::uint64_t schedules = 0;  // schedules that put jobs into it
  std::uint64_t total = 0;
  std::uint64_t deletes = 0;
  std::uint64_t deaths = 0;
  std::uint64_t dead_deleted = 0;
  std::uint64_t puts_too_fast = 0;
  std::uint64_t pauses = 0;
};

}  // namespace carillon::queue
