// The classic linked-list wheel (list_wheel.h) as a contestant, in ordinary pages and in huge ones.
// The ratios of the tables refer to it.
#include <span>

#include "contestant.h"
#include "list_wheel.h"

namespace carillon::bench {
namespace {

class ListSystem {
 public:
  static constexpr Tick kRange = Tick{1} << 32;
  static constexpr bool kHandles = false;
  static constexpr bool kSleeps = false;

  struct Timer : ListNode {
    Payload payload{};
  };

  explicit ListSystem(std::span<Timer> /*timers*/) {}

  void schedule(Timer& timer, Tick expiry) { wheel_.schedule(timer, expiry); }
  void cancel(Timer& timer) { wheel_.cancel(timer); }
  void reschedule(Timer& timer, Tick expiry) { wheel_.reschedule(timer, expiry); }
  template <class Fire>
  void advance(Tick to, Fire&& fire) {
    wheel_.advance(to, [&](ListNode& node) {
      auto& timer = static_cast<Timer&>(node);
      fire(timer, timer.payload);
    });
  }

 private:
  ListWheel wheel_;
};

const Registration<ListSystem> kRegistration({.name = "list wheel 256/64x4", .rank = 300});
const Registration<ListSystem> kHuge({.name = "list wheel, huge", .rank = 301, .huge_pages = true});

}  // namespace
}  // namespace carillon::bench
