// The measured designs behind one interface: connections 0 .. n-1, each kept alive by packets.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "carillon/idle/idle_ring.h"
#include "carillon/idle/idle_tracker.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "models/idle_scan.h"
#include "models/timer_per_packet.h"
#include "wheel/list_wheel.h"

namespace carillon::bench {

inline constexpr Tick kTimeout = 30'000;  // ticks, of a millisecond
inline constexpr Tick kPeriod = 10'000;   // ticks; each connection sends one packet per period

// Called if a connection is found idle. None may be: packets are less than a time-out apart.
[[noreturn]] inline void cut_off() {
  throw std::logic_error("a connection with packets was found idle");
}

class Tracker {
 public:
  explicit Tracker(std::size_t connections)
      : tracker_(Ticks{kTimeout}, 0, MostConnections{connections}) {
    tracker_.reserve(connections);
  }
  void add(std::uint32_t connection) {
    if (tracker_.add(connection) != id_of(connection))
      throw std::logic_error("the ids are not those expected");
  }
  void touch(std::uint32_t connection) { tracker_.touch(id_of(connection)); }
  void advance(Tick to) {
    tracker_.advance(to, [](IdleId, std::uint32_t) { cut_off(); });
  }
  std::size_t allocated_bytes() const { return tracker_.allocated_bytes(); }

 private:
  static IdleId id_of(std::uint32_t connection) { return {connection, 1}; }
  IdleTracker<std::uint32_t> tracker_;
};

// A timer per connection, pushed back by each packet.
class DefaultWheel {
 public:
  explicit DefaultWheel(std::size_t connections) : connections_(connections) {
    wheel_.reserve(connections);
  }
  void add(std::uint32_t connection) {
    connections_[connection].key = connection;
    wheel_.schedule(connections_[connection], wheel_.now() + 1 + kTimeout);
  }
  void touch(std::uint32_t connection) {
    wheel_.reschedule(connections_[connection], wheel_.now() + 1 + kTimeout);
  }
  void advance(Tick to) {
    wheel_.advance(to, [](TimerNode&) { cut_off(); });
  }

 private:
  struct Connection : TimerNode {
    std::uint32_t key = 0;
  };
  std::vector<Connection> connections_;
  HierarchicalWheel<> wheel_;
};

class ClassicWheel {
 public:
  explicit ClassicWheel(std::size_t connections) : connections_(connections) {}
  void add(std::uint32_t connection) {
    connections_[connection].key = connection;
    wheel_.schedule(connections_[connection], now_ + 1 + kTimeout);
  }
  void touch(std::uint32_t connection) {
    wheel_.reschedule(connections_[connection], now_ + 1 + kTimeout);
  }
  void advance(Tick to) {
    wheel_.advance(now_ = to, [](ListNode&) { cut_off(); });
  }

 private:
  struct Connection : ListNode {
    std::uint32_t key = 0;
  };
  Tick now_ = 0;
  ListWheel wheel_;
  std::vector<Connection> connections_;
};

class Multimap {
 public:
  explicit Multimap(std::size_t connections) : entries_(connections) {}
  void add(std::uint32_t connection) {
    entries_[connection] = timers_.emplace(now_ + 1 + kTimeout, connection);
  }
  void touch(std::uint32_t connection) {
    timers_.erase(entries_[connection]);
    add(connection);
  }
  void advance(Tick to) {
    now_ = to;
    if (!timers_.empty() && timers_.begin()->first <= to) cut_off();
  }

 private:
  using Timers = std::multimap<Tick, std::uint32_t>;
  Tick now_ = 0;
  Timers timers_;
  std::vector<Timers::iterator> entries_;
};

// One Asio timer per connection. Each packet cancels its wait and starts a new one. The handlers
// run at each tick.
class AsioTimers {
 public:
  explicit AsioTimers(std::size_t connections) { timers_.reserve(connections); }
  void add(std::uint32_t connection) {
    while (timers_.size() <= connection) timers_.emplace_back(context_);
    touch(connection);
  }
  void touch(std::uint32_t connection) {
    timers_[connection].expires_at(start_ + std::chrono::milliseconds(now_ + 1 + kTimeout));
    timers_[connection].async_wait([](const boost::system::error_code& error) {
      if (!error) cut_off();
    });
  }
  void advance(Tick to) {
    now_ = to;
    context_.poll();
  }

 private:
  Tick now_ = 0;
  // An hour ahead, so that no timer fires even if virtual time runs slower than real time.
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now() + std::chrono::hours(1);
  boost::asio::io_context context_{1};
  std::vector<boost::asio::steady_timer> timers_;
};

// For the designs that count time in seconds.
template <class Detector>
class BySecond {
 public:
  explicit BySecond(std::size_t) : detector_(Ticks{kTimeout / 1000}) {}
  void add(std::uint32_t connection) { detector_.add(connection); }
  void touch(std::uint32_t connection) { detector_.touch(connection); }
  void advance(Tick to) {
    if (to % 1000 != 0) return;
    detector_.advance(to / 1000, [](std::uint32_t, std::uint32_t) { cut_off(); });
  }

 private:
  Detector detector_;
};

using Ring = BySecond<IdleRing<std::uint32_t>>;
using Scan = BySecond<IdleScan<std::uint32_t>>;

class PacketTimers {
 public:
  explicit PacketTimers(std::size_t) : detector_(Ticks{kTimeout}) {}
  void add(std::uint32_t connection) { detector_.add(connection); }
  void touch(std::uint32_t connection) { detector_.touch(connection); }
  void advance(Tick to) {
    detector_.advance(to, [](std::uint32_t, std::uint32_t) { cut_off(); });
  }

 private:
  TimerPerPacket<std::uint32_t> detector_;
};

// The floor: one random read-modify-write of 8 bytes, and no time-out at all.
class Floor {
 public:
  explicit Floor(std::size_t connections) : words_(connections) {}
  void add(std::uint32_t connection) { words_[connection] = 1; }
  void touch(std::uint32_t connection) { words_[connection] += now_; }
  void advance(Tick to) { now_ = to; }

 private:
  Tick now_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace carillon::bench
