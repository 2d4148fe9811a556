// Keeps the dead jobs of a tube for a time: TubeSettings::retention.
//
//   retention.follow(tube);                // it was set for the tube
//   retention.await(lane, job);            // a job of the lane has died, or has come
//   retention.go_on(tube, budget, ...);    // the timer of the tube, or lane, is over
//
// Dead jobs are buried, so they are only in the store, in the order of their burials, which is also
// the order of their deaths. So each tube, and each lane that has dead jobs, has one timer, for the
// job that died first. When its time is over, jobs are deleted from the front on, several with each
// append, until a job has time left. Buried jobs that are not dead are skipped, once.
//
// A record says when its job died, and the lead of the wall clock then. So the retention is counted
// like a delay (engine_clock.h), by the wall clock and by steady time: setting the wall clock makes
// no job go early. If the wall clock was ahead when the job died, and was put right since, only
// steady time counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "carillon/queue/store.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

class Retention {
 public:
  // `wheel` belongs to the far jobs: it has the timers of all searches of the store.
  Retention(Store& store, const EngineClock& clock, Appender& appender, EngineCounts& counts,
            Removals& removals, EngineWheel& wheel)
      : store_(store),
        clock_(clock),
        appender_(appender),
        counts_(counts),
        removals_(removals),
        wheel_(wheel) {}

  // The tube's retention may have changed. Jobs of its lanes are visited in steps.
  void follow(Tube& tube) noexcept;
  // The lane has got this buried job.
  void await(Tube& lane, const JobRecord& job) noexcept;
  // Returns true if this is the timer of the tube's dead jobs: call go_on() then.
  static bool has(const TubeTimer& timer) {
    return timer.tube->retained && &timer == &timer.tube->retained->time;
  }
  // Visits up to `budget` jobs, and deletes those whose time is over. Adds the numbers of lanes
  // that lose jobs to `emptied`. Returns how many jobs it has visited. Throws StoreError; the
  // caller must try again then.
  std::size_t go_on(Tube& tube, std::size_t budget, std::vector<std::uint32_t>& emptied);
  // The wall clock was set.
  void follow_the_clock(Tube& tube);
  // The tube goes.
  void forget(Tube& tube) noexcept;
  // Aborts if a job of the lane might stay for ever. For tests. O(buried jobs).
  void check_invariants(const Tube& lane) const;

 private:
  // Returns the UTC at which the job's time is over; none if it stays.
  std::optional<UtcMs> end_of(const JobRecord& job, Millis kept) const;
  bool will_go(const Tube& lane) const;
  void look_not_after(Tube& tube, Tick when) noexcept;
  std::size_t look_at_lanes(Tube& tube, std::size_t budget);
  void remove_all(const std::vector<JobRecord>& jobs);

  Store& store_;
  const EngineClock& clock_;
  Appender& appender_;
  EngineCounts& counts_;
  Removals& removals_;
  EngineWheel& wheel_;
};

}  // namespace carillon::queue
