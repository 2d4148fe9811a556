// The keys of jobs, and the tokens of batches.
//
//   keys.end(job, work);                        // the job is about to be deleted
//   keys.sweep(budget);                         // forgets keys whose windows are over
//
// The store has a record of each key: which job has it, or had it and is done, and until when the
// key counts. That time is steady time (engine_clock.h), so setting the wall clock ends no window.
// A record whose time is over has no effect. It is forgotten within about a second, together with
// others that have ended meanwhile. The answer of a batch with a token is one of these records, so
// that a client that got no answer can send the batch again.
//
// Owns the time of the next search for keys that have ended. Invariant: no key whose job is gone
// ends before `from_`.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "carillon/queue/commands.h"
#include "carillon/queue/store.h"
#include "queue/engine/state/engine_clock.h"
#include "queue/engine/state/parts.h"
#include "queue/engine/state/planned.h"

namespace carillon::queue {

// The record of a batch's token; its time may be over.
using BatchToken = std::optional<KeyRecord>;

class Keys {
 public:
  Keys(Store& store, const EngineClock& clock, Appender& appender, Tubes& tubes)
      : store_(store), clock_(clock), appender_(appender), tubes_(tubes) {}

  // Gathers a change of a key.
  void add_change(std::optional<KeyRecord> before, std::optional<KeyRecord> after);
  // Gathers what happens to the key of a job that will be deleted.
  void end(const JobRecord& job, Work work);
  // Forgets keys that have ended, up to `budget` of them.
  void sweep(std::size_t budget);
  // Steady time was set: the next sweep() searches at once.
  void clock_was_set() { sweep_at_ = 0; }
  // Returns the steady time (ms) of the next search; none if no key will end.
  std::optional<Millis> next_sweep() const {
    return sweep_at_ == UINT64_MAX ? std::nullopt : std::optional(sweep_at_);
  }

  // --- Tokens of batches (batches.cpp)

  // Returns the record of the batch's token. Throws std::invalid_argument.
  BatchToken token_of(const BatchOrder& order) const;
  // Returns the answer that the token has, until its time is over.
  std::optional<BatchOutcome> answer_of(const BatchToken& token, const BatchOrder& order) const;
  // Gathers the record of a batch's token, in place of `before`.
  void add_token(BatchToken before, const BatchOrder& order, const BatchOutcome& outcome);

  // Aborts if keys are not counted, or will not be forgotten. For tests. O(keys).
  void check_invariants() const;

 private:
  // A key will end when steady time reaches `when`. Forgets it then, or about a second later.
  void sweep_not_after(Millis when);

  Store& store_;
  const EngineClock& clock_;
  Appender& appender_;
  Tubes& tubes_;
  // No key whose job is gone ends before `from_`. At `sweep_at_` the engine searches for keys that
  // have ended. Both are steady time, in ms.
  Millis from_ = 0;
  Millis sweep_at_ = 0;
};

}  // namespace carillon::queue
