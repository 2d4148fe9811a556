// Finds the connections whose client keeps the server waiting for too long: for the rest of a
// command, for reading its replies, for its token, or, if that is asked for, for the next command.
// The event loop owns one and closes what it finds.
//
//   StallWatch watch({.stall = 60s, .idle = 0s}, 10'000, mono_ns);
//   watch.active(connection);    // the client sent something, or took replies
//   watch.look([](Watched& connection, Awaits what) { ... });   // at next_wakeup(), or at any time
//   watch.forget(connection);    // it is closed
//
// How. A connection is tracked (IdleTracker) from the moment it keeps the server waiting, and each
// later event of it is a touch, which is one store. It stays tracked when it stops keeping the
// server waiting. The connection is asked again only when the tracker finds it. If it then awaits
// nothing, it is no longer tracked; if it awaits something with a longer time-out, it is tracked
// for the rest of that. So a client that sends each command in two pieces costs two stores, a
// client that sends whole commands costs nothing, and a client that may wait causes no wake-up.
//
// Contracts
//  - Never early: a connection that look() finds had no active() for its time-out, and no other
//    sign of life (Watched::shows_life).
//  - On time: look() at next_wakeup() finds it, at most 1 ms after its time-out. If a look() saw
//    another sign of life, the time-out begins anew at that moment.
//  - Once: a connection is no longer tracked when it is handed over.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "carillon/idle/idle_tracker.h"

namespace carillon::server {

// What a connection waits for its client to do.
enum class Awaits : std::uint8_t {
  kNothing,  // it is the server's turn, or a reserve waits
  kHead,     // to send the rest of a command line, or of a request's header
  kRest,     // to send the rest of a body
  kReading,  // to read its replies: the socket takes no more of them
  kCommand,  // to send the next command
  kToken,    // to show its token
};

// What the client has not done, for the log: "sent no command".
std::string_view describe(Awaits what);

// A connection, as far as the watch knows it.
class Watched {
 public:
  virtual ~Watched() = default;

  virtual Awaits awaits() const = 0;

  // Asked before a connection is handed over as stalled. Returns true if its client is alive in a
  // way that no active() reported: for example, bytes that it sent lie unread in the kernel. Its
  // time-out then begins anew.
  virtual bool shows_life() = 0;

 private:
  friend class StallWatch;
  IdleId id_;
  Tick timeout_ = 0;  // ms, the time-out it is tracked with; 0: it is not tracked
};

class StallWatch {
 public:
  // 0: never. At most 2^38 - 1 ms, else std::invalid_argument.
  struct Timeouts {
    std::chrono::milliseconds stall{0};  // for kHead, kRest and kReading
    std::chrono::milliseconds idle{0};   // for kCommand

    // The time-out for what is awaited. kToken has the shorter one of both.
    std::chrono::milliseconds of(Awaits what) const;
  };

  // `connections`: the most that there will be at the same time. `mono_ns` reads the monotonic
  // clock.
  StallWatch(const Timeouts& timeouts, std::size_t connections,
             std::function<std::uint64_t()> mono_ns);

  // The connection has just done something that shows its client alive. REQUIRES: forget() is
  // called before the connection is destroyed.
  void active(Watched& connection);
  void forget(Watched& connection) noexcept;

  // Calls on_stalled(connection, what it awaits) for connections whose time-out is over, at most
  // 16 of them; if there are more, next_wakeup() is in the past. on_stalled may forget any
  // connection.
  void look(const std::function<void(Watched&, Awaits)>& on_stalled);

  // Before this moment (ns of the monotonic clock) no time-out is over. None: nothing is tracked.
  std::optional<std::uint64_t> next_wakeup() const;

 private:
  Tick limit_of(Awaits what) const;  // 0: no time-out
  void track(Watched& connection, Tick timeout, Tick since);
  void judge(Watched& connection, Tick now,
             const std::function<void(Watched&, Awaits)>& on_stalled);

  Timeouts timeouts_;
  std::function<std::uint64_t()> mono_ns_;
  IdleTracker<Watched*> tracker_;  // a tick is 1 ms
};

}  // namespace carillon::server
