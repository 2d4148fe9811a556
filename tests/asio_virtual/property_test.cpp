// Random histories of timers on a virtual clock: wheel_timer completes the same waits as asio's own
// timer, except for the differences that its contract names.
//
// Built without epoll. Then asio asks its queues for due timers at each turn of the loop, and does
// not wait for the kernel's clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "carillon/asio/wheel_timer.h"
#include "wheel/seeds.h"

#if defined(BOOST_ASIO_HAS_EPOLL)
#error "this test needs BOOST_ASIO_DISABLE_EPOLL"
#endif

namespace carillon::testing {
namespace {

namespace net = boost::asio;
using boost::system::error_code;

struct VirtualClock {
  // NOLINTBEGIN(readability-identifier-naming): names that the standard gives
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<VirtualClock>;
  static constexpr bool is_steady = true;
  // NOLINTEND(readability-identifier-naming)

  static time_point now() { return time_point(duration(time)); }
  inline static std::int64_t time = 0;  // µs
};

// The end of a wait.
struct Event {
  int wait;  // its number
  bool aborted;
  std::int64_t time;  // µs
  friend bool operator==(const Event&, const Event&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Event& event) {
    return out << event.wait << (event.aborted ? " aborted at " : " done at ") << event.time;
  }
};

// Plays the history of `seed`, which is the same for every kind of timer, and returns its events.
// Every expiry is rounded up to a multiple of `tick` µs.
template <class Timer>
std::vector<Event> play(std::uint64_t seed, std::int64_t tick) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  VirtualClock::time = below(1'000'000'000'000);
  std::vector<Event> events;
  net::io_context io(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);
  std::vector<std::unique_ptr<Timer>> timers;
  std::vector<std::unique_ptr<net::cancellation_signal>> signals;
  std::vector<std::unique_ptr<net::cancellation_signal>> stale_signals;
  for (int i = 0; i < 20; ++i) timers.push_back(std::make_unique<Timer>(io));
  int waits = 0;
  const auto turn = [&] {
    io.restart();
    io.poll();
  };
  for (int step = 0; step < 400; ++step) {
    Timer& timer = *timers[static_cast<std::size_t>(below(timers.size()))];
    switch (below(8)) {
      case 0:
      case 1: {
        const std::int64_t range = std::int64_t{1} << (below(36) + 1);
        std::int64_t expiry = VirtualClock::time + below(static_cast<std::uint64_t>(range)) - 10;
        expiry = (expiry + tick - 1) / tick * tick;
        timer.expires_at(VirtualClock::time_point(VirtualClock::duration(expiry)));
        [[fallthrough]];
      }
      case 2:
        timer.async_wait([&events, wait = waits++](error_code error) {
          events.push_back({wait, error.failed(), VirtualClock::time});
        });
        break;
      case 3:
        signals.push_back(std::make_unique<net::cancellation_signal>());
        timer.async_wait(net::bind_cancellation_slot(
            signals.back()->slot(), [&events, wait = waits++](error_code error) {
              events.push_back({wait, error.failed(), VirtualClock::time});
            }));
        break;
      case 4:
        below(2) == 0 ? timer.cancel() : timer.cancel_one();
        break;
      case 5:
        if (!signals.empty()) {
          signals[static_cast<std::size_t>(below(signals.size()))]->emit(
              net::cancellation_type::total);
        }
        break;
      case 6: {
        // A slot refers to the timer by its address, also with asio's own timer. So a signal no
        // longer works after its timer has moved.
        std::move(signals.begin(), signals.end(), std::back_inserter(stale_signals));
        signals.clear();
        auto moved = std::make_unique<Timer>(std::move(timer));
        if (below(2) == 0) {
          timer = std::move(*moved);
        } else {
          timers[static_cast<std::size_t>(below(timers.size()))] = std::move(moved);
        }
        break;
      }
      default:
        VirtualClock::time += below(std::uint64_t{1} << (below(36) + 1));
        turn();
    }
  }
  // Let the remaining timers expire, in ever longer steps, so that no wait is left to be cancelled.
  for (int i = 0; i < 40; ++i) {
    VirtualClock::time += std::int64_t{1} << i;
    turn();
  }
  for (auto& timer : timers) timer.reset();
  turn();
  EXPECT_EQ(events.size(), static_cast<std::size_t>(waits));
  // Asio's heap and the wheel order the timers of one turn by different rules.
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.time, a.wait) < std::pair(b.time, b.wait);
  });
  return events;
}

using AsioTimer = net::basic_waitable_timer<VirtualClock>;

TEST(WheelTimerHistories, EveryWaitEndsAsItDoesWithAsiosOwnTimer) {
  for (const std::uint64_t seed : seeds(300)) {
    SCOPED_TRACE(replay_with(seed));
    const auto expected = play<AsioTimer>(seed, 1);
    ASSERT_EQ((play<asio::basic_wheel_timer<VirtualClock, std::micro>>(seed, 1)), expected);
  }
}

TEST(WheelTimerHistories, WaitsEndAsIfEachExpiryWereRoundedUpToATick) {
  for (const std::uint64_t seed : seeds(300)) {
    SCOPED_TRACE(replay_with(seed));
    const auto expected = play<AsioTimer>(seed, 1000);
    ASSERT_EQ((play<asio::basic_wheel_timer<VirtualClock>>(seed, 1)),
              (play<AsioTimer>(seed, 1000)));
    ASSERT_EQ((play<asio::basic_wheel_timer<VirtualClock>>(seed, 1000)), expected);
  }
}

// --- the order in which timers of one turn complete

class WheelTimerOrder : public ::testing::Test {
 protected:
  using Timer = asio::basic_wheel_timer<VirtualClock>;

  void start(std::int64_t expiry, const std::string& name) {
    timers_.emplace_back(io_, VirtualClock::time_point(VirtualClock::duration(expiry)))
        .async_wait([this, name](error_code) { log_.push_back(name); });
  }
  void turn_at(std::int64_t time) {
    VirtualClock::time = time;
    io_.restart();
    io_.poll();
  }

  void SetUp() override { VirtualClock::time = 0; }

  net::io_context io_;
  std::list<Timer> timers_;
  std::vector<std::string> log_;
};

TEST_F(WheelTimerOrder, ByTickAndWithinATickInTheOrderStarted) {
  start(9'500, "9.5 ms");
  start(2'900, "2.9 ms");
  start(2'100, "2.1 ms");
  start(3'000, "3 ms");
  start(3'001, "3.001 ms");
  turn_at(20'000);
  EXPECT_EQ(log_, (std::vector<std::string>{"2.9 ms", "2.1 ms", "3 ms", "3.001 ms", "9.5 ms"}));
}

TEST_F(WheelTimerOrder, AWaitCompletesAtTheEndOfItsTickAndNotBefore) {
  start(2'001, "2.001 ms");
  turn_at(2'999);
  EXPECT_TRUE(log_.empty());
  turn_at(3'000);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(WheelTimerOrder, AHundredThousandTimersInTwoTurns) {
  constexpr std::size_t kTimers = 100'000;
  std::size_t fired = 0;
  for (std::size_t i = 0; i < kTimers; ++i) {
    timers_.emplace_back(io_, VirtualClock::time_point(VirtualClock::duration(i * 37 % 500'000)))
        .async_wait([&](error_code error) { fired += error ? 0U : 1U; });
  }
  turn_at(250'000);
  EXPECT_GT(fired, kTimers / 3);
  turn_at(600'000);
  EXPECT_EQ(fired, kTimers);
}

}  // namespace
}  // namespace carillon::testing
