// A std::multimap from expiry to timer as a contestant: the usual code if no timer library is at
// hand.
#include <map>
#include <optional>
#include <span>

#include "contestant.h"

namespace carillon::bench {
namespace {

class MultimapSystem {
 public:
  static constexpr Tick kRange = kEveryRange;
  static constexpr bool kHandles = false;
  static constexpr bool kSleeps = false;

  struct Timer {
    Payload payload{};
    std::multimap<Tick, Timer*>::iterator position{};
    bool pending = false;
  };

  explicit MultimapSystem(std::span<Timer> /*timers*/) {}

  void schedule(Timer& timer, Tick expiry) {
    timer.position = pending_.emplace(expiry, &timer);
    timer.pending = true;
  }
  void cancel(Timer& timer) {
    pending_.erase(timer.position);
    timer.pending = false;
  }
  void reschedule(Timer& timer, Tick expiry) {
    if (timer.pending) cancel(timer);
    schedule(timer, expiry);
  }
  template <class Fire>
  void advance(Tick to, Fire&& fire) {
    while (!pending_.empty() && pending_.begin()->first <= to) {
      Timer& timer = *pending_.begin()->second;
      cancel(timer);
      fire(timer, timer.payload);
    }
  }
  std::optional<Tick> next_wakeup() const {
    return pending_.empty() ? std::nullopt : std::optional<Tick>(pending_.begin()->first);
  }

 private:
  std::multimap<Tick, Timer*> pending_;
};

const Registration<MultimapSystem> kRegistration({.name = "std::multimap", .rank = 302});

}  // namespace
}  // namespace carillon::bench
