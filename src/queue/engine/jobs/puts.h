// Puts jobs: what a put meets, what is stored of it, and what follows in memory.
//
//   PlannedPut put = puts.plan(tube, order, {.bytes = 5}, "hello");
//   if (!put.outcome.done()) return put.outcome;             // nothing is gathered
//   put.outcome.durable_at = appender.append();
//   puts.finish(put);
//
// Owns nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "carillon/queue/commands.h"
#include "carillon/queue/store.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/state/planned.h"
#include "queue/engine/tubes/tube.h"

namespace carillon::queue {

class Puts {
 public:
  Puts(const Store& store, const EngineClock& clock, Appender& appender, EngineCounts& counts,
       Tubes& tubes, LoadedJobs& jobs, FarJobs& far, Keys& keys, const Endings& endings,
       const Placing& placing, Throttle& throttle)
      : store_(store),
        clock_(clock),
        appender_(appender),
        counts_(counts),
        tubes_(tubes),
        jobs_(jobs),
        far_(far),
        keys_(keys),
        endings_(endings),
        placing_(placing),
        throttle_(throttle) {}

  // Throws std::invalid_argument if a body of one call has more than kBodyPiece bytes.
  static void refuse_large(std::string_view body);
  static void check_attributes(std::string_view attributes);

  // Checks what a put into the tube would do. The spread is drawn from `body_id`. Gathers nothing.
  PlannedPut check(Tube& tube, const PutOrder& order, JobId body_id);
  // Gathers a put into the tube if it can be carried out; a body in `bytes` has no id yet.
  PlannedPut plan(Tube& tube, const PutOrder& order, const LargeBody& body, std::string_view bytes);
  // The same for a client. A tube that refuses puts still answers a put that adds nothing.
  PlannedPut plan_of_client(Tube& tube, const PutOrder& order, const LargeBody& body,
                            std::string_view bytes);
  // Carries out a planned put in memory. REQUIRES: its change was appended, and the time has not
  // advanced.
  void finish(const PlannedPut& put) noexcept;

  // Returns when a job expires (0: never), by the fields of a PutOrder or a Patch; none if that is
  // after kLastDue.
  std::optional<UtcMs> expiry(Millis in, std::optional<UtcMs> at) const;
  std::int64_t lead_of_expiry(UtcMs expires, bool is_moment) const;
  // Throws NeverRuns if a job would expire before it is due, or when it is due, and that time has
  // not come yet. `expires` is what expiry() returns. REQUIRES: the due time fits.
  void require_time_to_run(Millis in, std::optional<UtcMs> at, Millis spread, UtcMs expires) const;

 private:
  // Decides the outcome of a put whose key has an owner.
  void plan_conflict(const PutOrder& order, PlannedPut& put);
  // Returns true if no worker gets the reserved job again.
  bool is_ending(const JobRecord& job) const;
  // Returns who has the key of a job that is there.
  KeyOwner owner_of_key(const JobRecord& job) const;

  const Store& store_;
  const EngineClock& clock_;
  Appender& appender_;
  EngineCounts& counts_;
  Tubes& tubes_;
  LoadedJobs& jobs_;
  FarJobs& far_;
  Keys& keys_;
  const Endings& endings_;
  const Placing& placing_;
  Throttle& throttle_;
};

}  // namespace carillon::queue
