// libevent's timers as a contestant: events without a file, in the base's binary heap.
#include <event2/event.h>
#include <event2/event_struct.h>

#include <span>
#include <stdexcept>

#include "contestant.h"
#include "fire_call.h"
#include "virtual_time.h"

namespace carillon::bench {
namespace {

class LibeventSystem {
 public:
  static constexpr Tick kRange = kEveryRange;
  static constexpr bool kHandles = false;
  static constexpr bool kSleeps = true;

  struct Timer {
    event timer{};
    Payload payload{};
    LibeventSystem* system = nullptr;  // an event has one argument only
  };

  explicit LibeventSystem(std::span<Timer> timers) : timers_(timers) {
    VirtualTime::reset();
    base_ = event_base_new();
    if (base_ == nullptr) throw std::runtime_error("libevent: no event base");
    for (auto& each : timers_) {
      evtimer_assign(&each.timer, base_, on_timer, &each);
      each.system = this;
    }
  }
  LibeventSystem(const LibeventSystem&) = delete;
  LibeventSystem& operator=(const LibeventSystem&) = delete;
  ~LibeventSystem() {
    for (auto& each : timers_) event_del(&each.timer);
    event_base_free(base_);
  }

  void schedule(Timer& timer, Tick expiry) {
    const Tick delay = expiry - VirtualTime::tick();
    const timeval time{.tv_sec = static_cast<time_t>(delay / 1000),
                       .tv_usec = static_cast<suseconds_t>(delay % 1000 * 1000)};
    event_add(&timer.timer, &time);
  }
  void cancel(Timer& timer) { event_del(&timer.timer); }
  // event_add() moves a pending timer.
  void reschedule(Timer& timer, Tick expiry) { schedule(timer, expiry); }

  template <class Fire>
  void advance(Tick to, Fire&& fire) {
    VirtualTime::set_tick(to);
    fire_.set(fire);
    event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  }
  template <class Fire>
  void run_to_end(Fire&& fire) {
    fire_.set(fire);
    event_base_dispatch(base_);
  }

 private:
  static void on_timer(evutil_socket_t /*none*/, short /*what*/, void* argument) {
    auto& timer = *static_cast<Timer*>(argument);
    timer.system->fire_(timer);
  }

  std::span<Timer> timers_;
  event_base* base_ = nullptr;
  FireCall<Timer> fire_;
};

const Registration<LibeventSystem> kRegistration({.name = "libevent timers", .rank = 330});

}  // namespace
}  // namespace carillon::bench
