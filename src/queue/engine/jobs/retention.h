// How long the dead jobs of a tube are kept: TubeSettings::retention.
//
//   Retention::follow(s, tube);               // it was set for the tube
//   Retention::await(s, lane, job);           // a job of the lane has died, or has come
//   Retention::go_on(s, tube, budget, ...);   // the timer of the tube, or lane, is over
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

#include "queue/engine/state/engine_state.h"

namespace carillon::queue {

struct Retention {
  // The tube's retention may be another one. Jobs of its lanes are looked at in steps.
  static void follow(EngineState& s, Tube& tube) noexcept;
  // The lane has this buried job from now on.
  static void await(EngineState& s, Tube& lane, const JobRecord& job) noexcept;
  // Looks at up to `budget` jobs, and deletes those whose time is over. Adds the numbers of lanes
  // that lose jobs to `emptied`. Returns how many it has looked at. Throws StoreError; it is to be
  // tried again then.
  static std::size_t go_on(EngineState& s, Tube& tube, std::size_t budget,
                           std::vector<std::uint32_t>& emptied);
  // Returns when UTC has come to the job's end; none if it is not to go.
  static std::optional<UtcMs> end_of(const EngineState& s, const JobRecord& job, Millis kept);
  // Returns false if a job of the lane might stay for ever. O(buried jobs).
  static bool check_invariants(const EngineState& s, const Tube& lane);

 private:
  static void look_not_after(EngineState& s, Tube& tube, Tick when) noexcept;
  static std::size_t look_at_lanes(EngineState& s, Tube& tube, std::size_t budget);
  static void remove_all(EngineState& s, const std::vector<JobRecord>& jobs);
};

}  // namespace carillon::queue
