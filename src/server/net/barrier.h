// The barrier: what every reply waits for if other servers read the log, too (Store::is_shared()).
//
//   held_until(barrier.next(), reply);                 // each command
//   if (barrier.is_wanted()) engine.append_barrier();  // at the end of the turn
//
// With a log of its own, a server may send a reply when the changes are durable that it reports;
// one that reports none, at once. With a shared log that is not enough: another server may own the
// log by now, and has perhaps deleted the job that this reply shows. So each reply waits for an
// append that was made after its command ran, if need be an empty one. If another server has
// claimed the log meanwhile, that append never becomes durable, and the reply never leaves
// (src/cluster/role.h).
//
// Thread safety: none.
#pragma once

#include "carillon/queue/engine.h"

namespace carillon::server {

class Barrier {
 public:
  // `engine` must outlive the barrier.
  explicit Barrier(const queue::Engine& engine) : engine_(engine) {}

  // Returns what a reply waits for whose command has just run. Any append from now on will do.
  queue::Sequence next() { return wanted_ = engine_.last_sequence() + 1; }

  // Returns true if a reply waits for an append that was not made yet.
  bool is_wanted() const { return wanted_ > engine_.last_sequence(); }

 private:
  const queue::Engine& engine_;
  queue::Sequence wanted_ = 0;
};

}  // namespace carillon::server
