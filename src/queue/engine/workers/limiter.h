// Decides when a job may start: how many run at once, and a rate, kept by a bucket of tokens.
//
//   Limiter limiter({.max_running = 10, .rate = 100, .period = 60'000, .burst = 5}, now);
//   if (limiter.may_start(running, now)) limiter.start(now);
//   else wait until limiter.next_start(now), or until fewer run
//
// The caller counts what runs; the limiter keeps the bucket (carillon/queue/limits.h). The
// arithmetic is in whole numbers, and nothing is rounded: a token has `period` parts, and `rate`
// parts come in a millisecond. A bucket begins empty, so that the rate holds over restarts too.
// All is O(1).
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "carillon/queue/limits.h"
#include "carillon/require.h"

namespace carillon::queue {

// Throws std::invalid_argument if they are not as carillon/queue/limits.h says (throttle.cpp).
void check(const Limits& limits);
// The same for TubeSettings::put_rate.
void check_put_rate(const Limits& rate);

class Limiter {
 public:
  // Here and below, `now` is in ms of a clock that does not run back.
  Limiter(const Limits& limits, std::uint64_t now) : limits_(limits), at_(now) {}

  // The limits have changed. The bucket keeps its tokens, as far as they fit; if it had no rate
  // before, it is full.
  void set(const Limits& limits, std::uint64_t now) {
    const Limits before = limits_;
    const std::uint64_t had = before.rate == 0 ? 0 : parts(now);
    limits_ = limits;
    at_ = now;
    parts_ = 0;
    if (limits.rate == 0) return;
    if (before.rate == 0) {
      parts_ = full();
    } else if (before.period == limits.period) {
      parts_ = std::min(had, full());
    } else {
      parts_ = std::min(had / before.period, limits.burst) * limits.period;
    }
  }

  // Returns how many tokens there are, and how many there may be. REQUIRES, of these two and
  // take(): there is a rate.
  std::uint64_t tokens(std::uint64_t now) const { return parts(now) / limits_.period; }
  std::uint64_t most_tokens() const { return full() / limits_.period; }
  // Takes this many tokens. REQUIRES: there are as many.
  void take(std::uint64_t tokens, std::uint64_t now) {
    const std::uint64_t left = parts(now);
    CARILLON_REQUIRE(tokens * limits_.period <= left, tokens, left, limits_.period);
    parts_ = left - tokens * limits_.period;
    at_ = now;
  }

  // Returns true if one more job may start beside the `running` ones.
  bool may_start(std::uint64_t running, std::uint64_t now) const {
    if (limits_.max_running > 0 && running >= limits_.max_running) return false;
    return limits_.rate == 0 || parts(now) >= limits_.period;
  }
  // A job starts. Returns true if it takes a token; false if there is no rate, or no token.
  bool start(std::uint64_t now) {
    if (limits_.rate == 0) return false;
    if (tokens(now) == 0) return false;
    take(1, now);
    return true;
  }
  // A job that has taken a token did not start after all, and puts it back.
  void undo_start(std::uint64_t now) {
    if (limits_.rate == 0) return;
    parts_ = std::min(parts(now) + limits_.period, full());
    at_ = now;
  }
  // Returns the first moment from `now` on at which there are this many tokens. REQUIRES: they are
  // at most most_tokens().
  std::uint64_t next_start(std::uint64_t now, std::uint64_t tokens = 1) const {
    if (limits_.rate == 0) return now;
    const std::uint64_t have = parts(now);
    const std::uint64_t wanted = tokens * limits_.period;
    if (have >= wanted) return now;
    return now + (wanted - have + limits_.rate - 1) / limits_.rate;
  }

 private:
  // `burst` tokens, and one millisecond's parts less one: so no part is lost while a token waits.
  std::uint64_t full() const {
    CARILLON_REQUIRE(limits_.rate > 0);
    return limits_.burst * limits_.period + limits_.rate - 1;
  }
  // REQUIRES: there is a rate.
  std::uint64_t parts(std::uint64_t now) const {
    const std::uint64_t most = full();
    const std::uint64_t passed = now - at_;
    if (passed > most / limits_.rate) return most;  // else the product does not overflow
    return std::min(most, parts_ + passed * limits_.rate);
  }

  Limits limits_;
  std::uint64_t at_;         // when parts_ was right
  std::uint64_t parts_ = 0;  // the parts of tokens at that moment
};

}  // namespace carillon::queue
