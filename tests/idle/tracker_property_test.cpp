// Random histories of an IdleTracker, checked against a map of last packets and time-outs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "carillon/idle/idle_tracker.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

constexpr Tick kOne = Tick{1} << 24;  // a factor of 1

// What a history does with time-outs; and how late a connection may then be found.
enum class Kind {
  kUnscaled,    // many time-outs, changed at random; never late
  kFalling,     // the same, and a factor that only falls; late by a tick
  kOneTimeout,  // one time-out, and a factor that rises and falls; late by a tick
  kAnything     // all of these; late by a tick and the longest time-out of the history
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // 1 .. 2^bits - 1; every length in bits is equally likely.
  std::uint64_t magnitude(unsigned bits) {
    const std::uint64_t shift = 63 - below(bits);
    return 1 + (engine_() >> shift);
  }

 private:
  std::mt19937_64 engine_;
};

class History {
 public:
  History(Kind kind, std::uint64_t seed)
      : random_(seed),
        kind_(kind),
        timeout_bits_(static_cast<unsigned>(2 + random_.below(random_.one_in(4) ? 36 : 14))),
        timeout_(random_.magnitude(timeout_bits_)),
        longest_(timeout_),
        callbacks_act_(random_.one_in(2)),
        tracker_(Ticks{timeout_}, start_tick()) {}

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      this->step();
      if (step % 16 == 0) tracker_.check_invariants();  // it reads every slot of every class
      if (tracker_.size() != connections_.size())
        throw std::runtime_error("size() is not the number of connections");
      check_next_wakeup();
    }
    while (!connections_.empty()) {
      const Tick wakeup = tracker_.next_wakeup().value();
      if (wakeup < tracker_.now()) throw std::runtime_error("the next wake-up is in the past");
      callbacks_act_ = false;
      advance(std::max(wakeup, tracker_.now() + 1), kNoLimit);
    }
    if (tracker_.next_wakeup()) throw std::runtime_error("an empty tracker has a next wake-up");
  }

 private:
  struct Connection {
    IdleId id;
    Tick last;  // the tick at which the last packet counts
    Tick timeout;
  };
  using Connections = std::map<int, Connection>;

  Tick start_tick() {
    switch (random_.below(4)) {
      case 0:
        return 0;
      case 1:
        return (Tick{1 + random_.below(5)} << (38 + random_.below(3))) - random_.magnitude(16);
      default:
        return random_.magnitude(60);
    }
  }

  void step() {
    switch (random_.below(kind_ == Kind::kUnscaled ? 9 : 10)) {
      case 0:
      case 1:
        return add();
      case 2:
      case 3:
      case 4:
        return touch();
      case 5:
        return random_.one_in(2) ? remove() : set_timeout();
      case 9:
        return scale();
      default:
        return advance();
    }
  }

  Tick some_timeout() {
    if (kind_ == Kind::kOneTimeout || random_.one_in(2)) return timeout_;
    const Tick timeout = random_.magnitude(timeout_bits_);
    longest_ = std::max(longest_, timeout);
    return timeout;
  }

  void add() {
    for (std::uint64_t count = random_.magnitude(6); count > 0; --count) {
      const Tick timeout = some_timeout();
      const Tick at = !in_callback_ && random_.one_in(3) ? tracker_.now() : tracker_.now() + 1;
      const IdleId id = at == tracker_.now() ? tracker_.add(next_key_, Ticks{timeout}, at)
                                             : tracker_.add(next_key_, Ticks{timeout});
      if (!given_.emplace(id.index, id.generation).second)
        throw std::runtime_error("an id was given twice");
      connections_[next_key_++] = {id, at, timeout};
    }
  }

  Connections::iterator some_connection() {
    auto which = connections_.lower_bound(
        static_cast<int>(random_.below(static_cast<std::uint64_t>(next_key_) + 1)));
    return which == connections_.end() ? connections_.begin() : which;
  }

  void touch() {
    if (!gone_.empty() && random_.one_in(3))
      return tracker_.touch(gone_[random_.below(gone_.size())]);
    if (connections_.empty()) return;
    for (std::uint64_t count = random_.magnitude(6); count > 0; --count) {
      Connection& connection = some_connection()->second;
      if (random_.one_in(3)) {
        const Tick at = tracker_.now() + 1 - std::min(tracker_.now(), random_.below(4));
        tracker_.touch(connection.id, at);
        connection.last = std::max(connection.last, at);
      } else {
        tracker_.touch(connection.id);
        connection.last = std::max(connection.last, tracker_.now() + 1);
      }
      if (tracker_.last_packet(connection.id) != connection.last)
        throw std::runtime_error("a packet was not stored");
    }
  }

  void remove() {
    if (connections_.empty()) return;
    const auto which = some_connection();
    if (!tracker_.remove(which->second.id)) throw std::runtime_error("remove() returned false");
    forget(which);
  }

  void forget(Connections::iterator which) {
    if (tracker_.contains(which->second.id))
      throw std::runtime_error("contains() is true for a connection that is gone");
    gone_.push_back(which->second.id);
    connections_.erase(which);
  }

  void set_timeout() {
    if (connections_.empty() || kind_ == Kind::kOneTimeout) return;
    Connection& connection = some_connection()->second;
    connection.timeout = some_timeout();
    if (!tracker_.set_timeout(connection.id, Ticks{connection.timeout}))
      throw std::runtime_error("set_timeout() returned false");
  }

  void scale() {
    double factor = random_.one_in(5) ? static_cast<double>(random_.below(2))
                                      : static_cast<double>(random_.below(1000)) / 1000;
    if (kind_ == Kind::kFalling) factor = std::min(tracker_.factor(), factor);
    has_risen_ |= factor > tracker_.factor();
    tracker_.scale_timeouts(factor);
    parts_ = static_cast<Tick>(std::round(factor * static_cast<double>(kOne)));
  }

  static Tick scaled(Tick timeout, Tick parts) { return (timeout * parts + (kOne - 1)) / kOne; }
  Tick scaled(Tick timeout) const { return scaled(timeout, parts_); }
  bool is_idle(const Connection& connection, Tick parts) const {
    return tracker_.now() >= connection.last &&
           tracker_.now() - connection.last >= scaled(connection.timeout, parts);
  }
  Tick lateness() const {
    if (kind_ == Kind::kOneTimeout) return has_risen_ ? 1 : 0;
    if (has_risen_) return 1 + longest_;
    return parts_ == kOne ? 0 : 1;
  }

  void advance() {
    const Tick now = tracker_.now();
    Tick to = now + random_.magnitude(timeout_bits_ + 1) - 1;
    if (random_.one_in(4)) to = std::max(now, tracker_.next_wakeup().value_or(now));
    if (random_.one_in(60)) to = now + random_.magnitude(42);
    advance(to, random_.one_in(3) ? random_.below(20) : kNoLimit);
  }

  void advance(Tick to, std::size_t limit) {
    const std::optional<Tick> wakeup = tracker_.next_wakeup();
    std::size_t found = 0;
    const std::size_t answer = tracker_.advance(
        to,
        [&](IdleId id, int key) {
          ++found;
          const auto which = connections_.find(key);
          if (which == connections_.end())
            throw std::runtime_error("a connection was found that is not there");
          if (which->second.id != id)
            throw std::runtime_error("a connection was found with a wrong id");
          if (!is_idle(which->second, std::min(parts_, stopped_parts_)))
            throw std::runtime_error("key " + std::to_string(key) + " was found early");
          forget(which);
          if (!callbacks_act_ || !random_.one_in(4)) return;
          in_callback_ = true;
          act_in_callback();
          in_callback_ = false;
        },
        limit);
    if (answer != found)
      throw std::runtime_error("advance() returned another number than it found");
    if (found > limit) throw std::runtime_error("the limit was exceeded");
    if (found > 0 && *wakeup > to)
      throw std::runtime_error("a connection was found before the next wake-up");
    // Connections that were seen to be idle at this factor are handed over even if it rises.
    if (found == limit) {
      stopped_parts_ = std::min(stopped_parts_, parts_);
      return;
    }
    stopped_parts_ = kOne;
    if (tracker_.now() != to)
      throw std::runtime_error("advance() ended before its tick without reaching its limit");
    for (const auto& [key, connection] : connections_) {
      if (to >= connection.last && to - connection.last >= scaled(connection.timeout) + lateness())
        throw std::runtime_error("key " + std::to_string(key) + " was not found at " +
                                 std::to_string(to) + ", last " + std::to_string(connection.last) +
                                 ", time-out " + std::to_string(connection.timeout));
    }
  }

  // Does nothing that makes a connection idle at once: either this advance() or the next one would
  // find it.
  void act_in_callback() {
    switch (random_.below(4)) {
      case 0:
        return add();
      case 1:
        return remove();
      default:
        return touch();
    }
  }

  void check_next_wakeup() const {
    const std::optional<Tick> wakeup = tracker_.next_wakeup();
    if (connections_.empty() != !wakeup)
      throw std::runtime_error("next_wakeup() and the connections disagree");
    for (const auto& [key, connection] : connections_) {
      if (*wakeup >
          std::max(connection.last + scaled(connection.timeout) + lateness(), tracker_.now()))
        throw std::runtime_error("next_wakeup() is too late for key " + std::to_string(key));
    }
  }

  Random random_;
  Kind kind_;
  unsigned timeout_bits_;
  Tick timeout_;
  Tick longest_;
  bool callbacks_act_;
  bool in_callback_ = false;
  IdleTracker<int> tracker_;
  Tick parts_ = kOne;          // the factor, in units of 2^-24
  Tick stopped_parts_ = kOne;  // the smallest factor since an advance() last reached its tick
  bool has_risen_ = false;     // the factor
  int next_key_ = 0;
  Connections connections_;
  std::vector<IdleId> gone_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> given_;  // ids
};

void run_histories(Kind kind) {
  for (const std::uint64_t seed : seeds(40)) {
    SCOPED_TRACE(replay_with(seed));
    History history(kind, seed);
    ASSERT_NO_THROW(history.run(400));
  }
}

TEST(IdleTrackerProperty, FindsIdleConnectionsAndNoOthers) {
  run_histories(Kind::kUnscaled);
}
TEST(IdleTrackerProperty, WhenTheFactorFallsNoConnectionIsLateByMoreThanATick) {
  run_histories(Kind::kFalling);
}
TEST(IdleTrackerProperty, WithOneTimeOutAndAChangingFactorNoConnectionIsLateByMoreThanATick) {
  run_histories(Kind::kOneTimeout);
}
TEST(IdleTrackerProperty, WithARisingFactorNoConnectionIsLateByMoreThanTheLongestTimeOut) {
  run_histories(Kind::kAnything);
}

}  // namespace
}  // namespace carillon::testing
