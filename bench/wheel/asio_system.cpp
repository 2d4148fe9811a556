// Two contestants: Asio's timers (basic_waitable_timer over a clock of our own), and Carillon's
// wheel_timer instead of them. One thread, no locks.
//
// An async_wait allocates its operation, as Asio does when it is called from outside of a handler.
// A cancelled wait completes with an error on the next turn of the loop. W2 counts that turn.
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>
#include <span>

#include "carillon/asio/wheel_timer.h"
#include "contestant.h"
#include "fire_call.h"
#include "virtual_time.h"

namespace carillon::bench {
namespace {

struct VirtualClock {
  // NOLINTBEGIN(readability-identifier-naming): the standard demands these names
  using duration = std::chrono::milliseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<VirtualClock>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  // NOLINTEND(readability-identifier-naming)

  static time_point at(Tick tick) { return time_point(duration(tick)); }
  static time_point now() { return at(VirtualTime::tick()); }
};

template <class WaitableTimer>
class AsioSystem {
 public:
  static constexpr Tick kRange = kEveryRange;
  static constexpr bool kHandles = false;
  static constexpr bool kSleeps = true;

  struct Timer {
    std::optional<WaitableTimer> timer;
    Payload payload{};
  };

  explicit AsioSystem(std::span<Timer> timers) : timers_(timers) {
    VirtualTime::reset();
    for (auto& each : timers_) each.timer.emplace(loop_);
  }
  AsioSystem(const AsioSystem&) = delete;
  AsioSystem& operator=(const AsioSystem&) = delete;
  ~AsioSystem() {
    for (auto& each : timers_) each.timer.reset();
  }

  void schedule(Timer& timer, Tick expiry) {
    timer.timer->expires_at(VirtualClock::at(expiry));
    timer.timer->async_wait([this, &timer](const boost::system::error_code& cancelled) {
      if (!cancelled) fire_(timer);
    });
  }
  void cancel(Timer& timer) { timer.timer->cancel(); }
  // expires_at() cancels the pending wait.
  void reschedule(Timer& timer, Tick expiry) { schedule(timer, expiry); }
  void finish_cancels() { turn(); }

  template <class Fire>
  void advance(Tick to, Fire&& fire) {
    VirtualTime::set_tick(to);
    fire_.set(fire);
    turn();
  }
  template <class Fire>
  void run_to_end(Fire&& fire) {
    fire_.set(fire);
    loop_.restart();
    loop_.run();
  }

 private:
  void turn() {
    loop_.restart();
    loop_.poll();
  }

  std::span<Timer> timers_;
  boost::asio::io_context loop_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  FireCall<Timer> fire_;
};

const Registration<AsioSystem<boost::asio::basic_waitable_timer<VirtualClock>>> kAsio(
    {.name = "Asio timers", .rank = 310});
const Registration<AsioSystem<basic_wheel_timer<VirtualClock>>> kWheel(
    {.name = "Asio with wheel_timer", .rank = 311});

}  // namespace
}  // namespace carillon::bench
