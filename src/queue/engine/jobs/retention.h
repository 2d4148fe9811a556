// How long the dead jobs of a tube are kept: TubeSettings::retention.
//
//   retention.follow(tube);                // it was set for the tube
//   retention.await(lane, job);            // a job of the lane has died, or has come
//   retention.go_on(tube, budget, ...);    // the timer of the tube, or lane, is over
//
// Dead jobs are buried, so they are in the store alone, in the order of their burials, which is
// that of their deaths. So each tube, and each lane that has dead jobs, has one timer, for the job
// that died first. When its time is over, jobs are deleted from the front on, some with each
// append, until one has time left. Buried jobs that are not dead are passed over, once.
//
// A record tells when its job died, and the lead of the wall clock then. So the time that it is
// kept is counted as a delay is (engine_clock.h): by the wall clock and by steady time, and a wall
// clock that is set makes no job go early. If the wall clock was ahead when the job died, and was
// put right, steady time alone counts.
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
  // `wheel` is that of the far jobs, which has the timers of all that is looked for in the store.
  Retention(Store& store, const EngineClock& clock, Appender& appender, EngineCounts& counts,
            Removals& removals, EngineWheel& wheel)
      : store_(store),
        clock_(clock),
        appender_(appender),
        counts_(counts),
        removals_(removals),
        wheel_(wheel) {}

  // The tube's retention may be another one. Jobs of its lanes are looked at in steps.
  void follow(Tube& tube) noexcept;
  // The lane has this buried job from now on.
  void await(Tube& lane, const JobRecord& job) noexcept;
  // Returns true if the timer is the one of the tube's dead jobs: then go_on() is to be called.
  static bool has(const TubeTimer& timer) {
    return timer.tube->retained && &timer == &timer.tube->retained->time;
  }
  // Looks at up to `budget` jobs, and deletes those whose time is over. Adds the numbers of lanes
  // that lose jobs to `emptied`. Returns how many it has looked at. Throws StoreError; it is to be
  // tried again then.
  std::size_t go_on(Tube& tube, std::size_t budget, std::vector<std::uint32_t>& emptied);
  // The wall clock was set.
  void follow_the_clock(Tube& tube);
  // The tube goes.
  void forget(Tube& tube) noexcept;
  // Aborts if a job of the lane might stay for ever. For tests. O(buried jobs).
  void check_invariants(const Tube& lane) const;

 private:
  // Returns when UTC has come to the job's end; none if it is not to go.
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
