// Makes delayed jobs in memory ready when they are due.
//
//   ripening.await_first_delayed(lane);         // a job has come to be the first of its lane
//   ripening.go_on(utc, ripe, budget);          // what is due becomes ready, tube by tube
//
// Owns the wheel with a timer for each tube with delayed jobs, and the line of the tubes that are
// *ripening* (Tube::ripening_hook). Invariant: the timer of a tube, which is no lane, is armed no
// later than its first delayed job, or that of its lanes, is due, unless the tube is ripening.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

class Ripening {
 public:
  Ripening(const EngineClock& clock, EngineCounts& counts, LoadedJobs& jobs)
      : clock_(clock), counts_(counts), jobs_(jobs), wheel_(clock.tick()) {}

  // The tube, or lane, has a delayed job in memory: arms the timer.
  void await_first_delayed(Tube& lane);
  // Arms the timer of a tube that is no lane, for the first delayed job of it and of its lanes.
  void await_due(Tube& tube);
  // These check the tube in this tick, or not before a job of it is awaited again.
  void look_now(Tube& tube) { wheel_.reschedule(tube.due_time, Moment{clock_.tick()}); }
  void look_no_more(Tube& tube) { wheel_.cancel(tube.due_time); }
  // The tube goes.
  void forget(Tube& tube) noexcept;

  // Makes up to `budget` due jobs ready, tube by tube. Adds the tubes that are done to `ripe`.
  void go_on(std::vector<Tube*>& ripe, std::size_t budget);

  // Returns the next tick with something to do; one that has passed while tubes are ripening.
  std::optional<Tick> next() const {
    return line_.empty() ? wheel_.next_wakeup() : std::optional<Tick>(0);
  }
  const EngineWheel& wheel() const { return wheel_; }

 private:
  // Does so for a tube and its lanes. Returns true if it is done.
  bool ripen(Tube& tube, std::size_t budget);
  // Does so for one lane, or the tube itself. Returns how many jobs became ready.
  std::size_t ripen_lane(Tube& lane, UtcMs until, std::size_t budget);

  const EngineClock& clock_;
  EngineCounts& counts_;
  LoadedJobs& jobs_;
  EngineWheel wheel_;  // TubeTimers
  using Line = boost::intrusive::list<
      Tube, boost::intrusive::member_hook<Tube, boost::intrusive::list_member_hook<>,
                                          &Tube::ripening_hook>>;
  Line line_;  // the tubes take turns
};

}  // namespace carillon::queue
