// What holds the jobs of a tube back: pauses, how many jobs run at once, and how fast they go out
// and come in.
//
//   if (throttle.may_start(tube)) ...               // the limits let one more job go out
//   throttle.pause(tube, 60'000);
//
// A group has limits of its own beside those of its tube. It is not asked when a job is to go out:
// while its limits let none go out it *rests*, out of the line of those that take turns (groups.h).
// So whatever changes what its limits say looks at them at once.
//
// A tube may bound how fast clients put jobs, too. A put takes its token when it is appended: so
// one that fails, or adds nothing, takes none.
//
// All is kept, not counted: the jobs of a tube that run (Tube::running), and the tokens of its
// bucket (limiter.h). Nobody looks at a tube that may not hand out a job: what ends a reservation
// serves it, or the timer of its next token, which is armed when somebody asks in vain.
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
  // The limits of the tube were set: it follows them.
  void follow_limits(Tube& tube) noexcept;
  // Returns true if the tube's limits let one more job go out. If it has no token for that, it is
  // served when there is one.
  bool may_start(Tube& tube) { return tube.limits == nullptr || limits_let_start(tube); }
  // The job is reserved from now on: takes the tokens that it needs, as far as there are any.
  void start(LoadedJob& job);
  void undo_start(LoadedJob& job);  // as if it had not been
  // Counts, and returns, that so many jobs may not be put into the tube now, and when they may.
  PutOutcome too_fast(Tube& tube, std::uint64_t wanted);
  // For `duration` ms no job of the tube goes out. 0 ends a pause.
  void pause(Tube& tube, Millis duration);
  // The tube goes.
  void forget(Tube& tube) noexcept;

  // Adds the tubes that may hand out a job again to `served`.
  void advance(std::vector<Tube*>& served, std::size_t budget);
  const EngineWheel& wheel() const { return wheel_; }

 private:
  bool limits_let_start(Tube& tube);

  const EngineClock& clock_;
  EngineCounts& counts_;
  EngineWheel wheel_;  // of TubeTimer
};

}  // namespace carillon::queue
