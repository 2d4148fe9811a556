// Finds the connections whose client keeps the server waiting for too long: for the rest of a
// command, for taking its replies, or, if that is asked for, for the next command.
//
//   StallWatch watch({.stall = 60s, .idle = 0s}, mono_ns);
//   watch.active(connection);             // it was read from, or it took replies
//   watch.look([](Watched& connection, Awaits what) { ... });   // when next_wakeup() has come, or at any time
//   watch.forget(connection);             // it is closed
//
// A connection is tracked (IdleTracker) once it keeps the server waiting, and each later event of
// it is a touch, one store. It stays tracked when it does not any more: only when the tracker finds
// it is it asked again, and dropped, or given the rest of a longer time-out. So a client that sends
// each command in two pieces costs two stores, one that sends them whole costs nothing, and those
// who may wait wake nobody.
//
// Contracts
//  - Never early: what look() finds had no active() for its time-out, and has not moved otherwise
//    (Watched::moves).
//  - Found by the look() at next_wakeup(), at most a millisecond after its time-out. One that moved
//    otherwise has its time-out from the look that saw it.
//  - A connection is found once for each time: it is not tracked any more when it is handed over.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "carillon/idle/idle_tracker.h"

namespace carillon::server {

// What a connection waits for its client to do.
enum class Awaits : std::uint8_t {
  kNothing,  // it is the server's turn, or a reserve waits
  kRest,     // to send the rest of a command, or of a body
  kReading,  // to read its replies: the socket takes no more of them
  kCommand,  // to send the next command
};

// A connection, as far as the watch knows it.
class Watched {
 public:
  virtual ~Watched() = default;

  virtual Awaits awaits() const = 0;

  // Asked before it is found: whether it is alive in a way that no active() told of, as when what
  // it has sent lies unread in the kernel. If it is, its time-out begins anew.
  virtual bool moves() = 0;

 private:
  friend class StallWatch;
  IdleId id_;
  Tick timeout_ = 0;  // ms, by which it is tracked; 0: it is not
};

class StallWatch {
 public:
  // 0: never. Up to 2^38 - 1 ms, else std::invalid_argument.
  struct Timeouts {
    std::chrono::milliseconds stall{0};  // for kRest and kReading
    std::chrono::milliseconds idle{0};   // for kCommand
  };

  // `mono_ns` is the monotonic clock.
  StallWatch(const Timeouts& timeouts, std::function<std::uint64_t()> mono_ns);

  // It has just done something that shows its client alive. REQUIRES: forget() is called before it
  // is gone.
  void active(Watched& connection);
  void forget(Watched& connection) noexcept;

  // Calls on_stalled(connection, what it awaits) for those who had their time, a bounded number of
  // them: then next_wakeup() is in the past. on_stalled may forget any connection.
  void look(const std::function<void(Watched&, Awaits)>& on_stalled);

  // By the monotonic clock (ns): nobody's time is over before it. None: nobody is tracked.
  std::optional<std::uint64_t> next_wakeup() const;

 private:
  Tick limit_of(Awaits what) const;  // 0: none
  void track(Watched& connection, Tick timeout, Tick since);
  void judge(Watched& connection, Tick now,
             const std::function<void(Watched&, Awaits)>& on_stalled);

  Tick stall_;
  Tick idle_;
  std::function<std::uint64_t()> mono_ns_;
  IdleTracker<Watched*> tracker_;  // by ticks of a millisecond
};

}  // namespace carillon::server
