// Holds back the jobs of a tube: pauses, how many jobs run at once, and how fast they go out and
// come in.
//
//   if (throttle.may_start(tube)) ...               // the limits let one more job go out
//   throttle.pause(tube, 60'000);
//
// A group has limits of its own beside those of its tube. They are not checked when a job goes out:
// while they let no job go out, the group *rests*, outside the line of the groups that take turns
// (groups.h). So each change that concerns its limits checks them at once.
//
// A tube may also bound how fast clients put jobs. A put takes its token when it is appended: so a
// put that fails, or adds nothing, takes no token.
//
// Nothing is counted anew: the engine keeps the number of running jobs (Tube::running), and the
// tokens of the bucket (limiter.h). A tube that may not hand out a job costs nothing: it is served
// when a reservation ends, or by the timer of its next token, which is armed when a client asks in
// vain.
//
// Owns the wheel of the ends of pauses and of the next tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "carillon/queue/commands.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

class Throttle {
 public:
  Throttle(const EngineClock& clock, EngineCounts& counts)
      : clock_(clock), counts_(counts), wheel_(clock.mono()) {}

  // At a start: the limits of the tube hold. Its bucket begins empty (limiter.h).
  void take_over(Tube& tube);
  // The limits of the tube have changed: follows them.
  void follow_limits(Tube& tube) noexcept;
  // Returns true if the tube's limits let one more job go out. If the tube has no token for that,
  // it is served when there is one.
  bool may_start(Tube& tube) { return tube.limits == nullptr || limits_let_start(tube); }
  // The job is reserved from now on: takes the tokens that it needs, as far as there are any.
  void start(LoadedJob& job);
  void undo_start(LoadedJob& job);  // as if it had not been
  // Counts a refused put of `wanted` jobs into the tube, and returns a refusal that says when they
  // may be put.
  PutOutcome too_fast(Tube& tube, std::uint64_t wanted);
  // For `duration` ms no job of the tube goes out. 0 ends a pause.
  void pause(Tube& tube, Millis duration);
  // The tube will be destroyed.
  void forget(Tube& tube) noexcept;

  // Adds the tubes that may hand out a job again to `served`.
  void advance(std::vector<Tube*>& served, std::size_t budget);
  const EngineWheel& wheel() const { return wheel_; }

 private:
  bool limits_let_start(Tube& tube);

  const EngineClock& clock_;
  EngineCounts& counts_;
  EngineWheel wheel_;  // TubeTimers
};

}  // namespace carillon::queue
