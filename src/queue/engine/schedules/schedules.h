// The schedules of an engine, all of them in memory, and when each must be checked next.
//
//   schedules.take_over(record);           // at a start
//   schedules.fire(budget);                // what is due: one append for each occurrence
//   schedules.jobs_left(changes);          // an occurrence may have waited for a job to go
//
// An occurrence is decided when its moment has come, and not before: it fires, waits for the job
// before, or is skipped. `ScheduleRecord::decided` is the last moment that was decided. If the wall
// clock is set back, `decided` goes back, too, because the moments after it come again; those that
// have fired are in `spans`, and do not fire twice. So an occurrence that was skipped while the
// clock was ahead gets a new chance, also if its own time has come meanwhile
// (EngineClock::wrong_since).
//
// An append that fails changes nothing. The schedule is tried again a second later.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "carillon/queue/commands.h"
#include "carillon/queue/engine_options.h"
#include "carillon/queue/schedule.h"
#include "queue/engine/jobs/keys.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/state/planned.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

// The timer is armed for the next occurrence, unless the schedule is paused or broken.
struct LoadedSchedule : TimerNode {
  // Returns the first occurrence after `after` that has not fired; none if it has no occurrence by
  // kLastDue. REQUIRES: not broken.
  std::optional<Occurrence> next(UtcMs after) const;
  // Returns the last occurrence by `until` that has not fired. REQUIRES: one comes after `after`
  // and by `until`.
  Occurrence last(UtcMs after, UtcMs until) const;
  // Returns how many there are after `after` and by `until`, at most ScheduleEvent::kMostCounted.
  std::uint64_t count(UtcMs after, UtcMs until) const;
  // Returns true if the occurrence does not fire because the zone's clocks skip it.
  bool is_in_gap(const Occurrence& occurrence) const {
    return occurrence.clocks == Occurrence::Clocks::kAfterGap && !record.schedule.run_after_gap;
  }

  ScheduleRecord record;
  Timetable timetable;
  std::string broken;    // why there is no timetable, or empty
  Tube* lane = nullptr;  // of its jobs: their tube, or the lane of their group
};

class Schedules {
 public:
  Schedules(Store& store, const EngineOptions& options, const EngineClock& clock,
            Appender& appender, Tubes& tubes, LoadedJobs& jobs, Puts& puts, Keys& keys);
  ~Schedules();
  Schedules(const Schedules&) = delete;
  Schedules& operator=(const Schedules&) = delete;

  // --- Commands (schedule_commands.cpp). StoreError: nothing has changed.

  LoadedSchedule* find(std::string_view name);
  Sequence set(std::string_view name, const Schedule& asked, bool paused);
  Sequence remove(LoadedSchedule& schedule);
  Sequence pause(LoadedSchedule& schedule);
  Sequence resume(LoadedSchedule& schedule);
  // `token` is the record of the order's token, also if its time is over; none if it has no record.
  BatchOutcome trigger(LoadedSchedule& schedule, BatchToken token, const BatchOrder& order);
  ScheduleView view(const LoadedSchedule& schedule, std::size_t times) const;
  // Returns the first `limit` names after `name`.
  std::vector<std::string> names(std::string_view name, std::size_t limit) const;
  std::vector<ScheduleEvent> take_events() { return std::exchange(events_, {}); }

  // --- Time (schedules.cpp)

  // Takes over what the store holds. `last_known` is what the wall clock showed at the last change.
  void take_over(ScheduleRecord record, UtcMs last_known);
  // Visits up to `budget` schedules that are due, fewer if that takes long.
  void fire(std::size_t budget);
  void follow_the_clock(bool back);
  // These changes were appended.
  void jobs_left(const Changes& appended);
  std::optional<Tick> next_wakeup() const;
  const EngineWheel& wheel() const { return wheel_; }
  // Aborts if a schedule would not be visited in time.
  void check_invariants() const;

 private:
  // Returns how many ms all of them must wait, because no job can be put.
  Millis must_wait() const;
  // Undoes the decisions from `since` on, which were made by a wrong clock.
  void turn_back(ScheduleRecord& record, UtcMs since) const;

  // Decides on the next occurrence, if it has come.
  void decide(LoadedSchedule& schedule);
  // Skips missed occurrences that do not fire any more. Returns the one that comes next.
  std::optional<Occurrence> skip_missed(const LoadedSchedule& schedule, Occurrence next,
                                        ScheduleRecord& after);
  // Returns the last occurrence by `until` that fires, if it is found soon. `first` is the next
  // one.
  static UtcMs last_that_fires(const LoadedSchedule& schedule, Occurrence first, UtcMs until);
  // REQUIRES: the occurrence has come.
  void occur(LoadedSchedule& schedule, ScheduleRecord after, Occurrence occurrence);
  void skip(ScheduleEvent::What what, UtcMs occurrence, std::uint64_t count, ScheduleRecord& after);
  // Puts a job that is due at `when` with one append, in which the record becomes `after`.
  void put(LoadedSchedule& schedule, ScheduleRecord after, UtcMs when);
  // The first step of put(): plans the job, which is due at `when`, or now.
  PlannedPut plan_put(const LoadedSchedule& schedule, std::optional<UtcMs> when);
  // The second step: appends the job together with the record.
  Sequence append_put(LoadedSchedule& schedule, ScheduleRecord after, const PlannedPut& planned);
  // Appends the record.
  Sequence store(LoadedSchedule& schedule, ScheduleRecord after);
  void stored(LoadedSchedule& schedule, ScheduleRecord after) noexcept;
  // Returns how much of the budget of `fire` the visit to a schedule has taken.
  static std::size_t cost_of(const LoadedSchedule& schedule, std::uint64_t skipped_before);
  // Returns true if the job that was put last is there, not buried, and in the tube of its put.
  bool is_last_there(const LoadedSchedule& schedule);
  bool is_in_last_tube(const LoadedSchedule& schedule, const JobRecord& job);
  // Arms the timer for when the schedule is due.
  void arm(LoadedSchedule& schedule) noexcept;
  void tell(ScheduleEvent event);
  // Returns the tube or lane of the jobs, and makes it if it does not exist. It stays as long as
  // the schedule does, so a firing never has to make it. Throws OverLimit.
  Tube& lane_of(const Schedule& schedule);
  // Sets `timetable`, or throws std::invalid_argument.
  void read_times(LoadedSchedule& schedule) const;
  std::size_t bytes_of(const ScheduleRecord& record) const;

  Store& store_;
  const EngineOptions& options_;
  const EngineClock& clock_;
  Appender& appender_;
  Tubes& tubes_;
  LoadedJobs& jobs_;
  Puts& puts_;
  Keys& keys_;
  std::map<std::string, std::unique_ptr<LoadedSchedule>, std::less<>> by_name_;
  std::size_t bytes_ = 0;  // as EngineOptions::max_schedule_bytes counts them
  EngineWheel wheel_;      // of LoadedSchedule, on EngineClock::tick()
  Tick fire_at_ = 0;       // not before
  // The jobs for which an occurrence waits, and are still there as far as is known.
  std::unordered_map<JobId, LoadedSchedule*> awaited_;
  std::vector<ScheduleEvent> events_;
  std::vector<ScheduleEvent> untold_;  // events of a change that is not appended yet
};

}  // namespace carillon::queue
