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

// A history of 20 timers, drawn from `seed`: the same for every kind of timer. Every expiry is
// rounded up to a multiple of `tick` µs.
template <class Timer>
class History {
 public:
  History(std::uint64_t seed, std::int64_t tick) : random_(seed), tick_(tick) {
    VirtualClock::time = below(1'000'000'000'000);
    for (int i = 0; i < 20; ++i) timers_.push_back(std::make_unique<Timer>(io_));
  }

  // Plays the whole history, and returns its events.
  std::vector<Event> play() {
    for (int i = 0; i < 400; ++i) step(*any_of(timers_));
    // Let the remaining timers expire, in ever longer steps, so that no wait is left to be
    // cancelled.
    for (int i = 0; i < 40; ++i) {
      VirtualClock::time += std::int64_t{1} << i;
      turn();
    }
    for (auto& timer : timers_) timer.reset();
    turn();
    EXPECT_EQ(events_.size(), static_cast<std::size_t>(waits_));
    // Asio's heap and the wheel order the timers of one turn by different rules.
    std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::pair(a.time, a.wait) < std::pair(b.time, b.wait);
    });
    return events_;
  }

 private:
  std::int64_t below(std::uint64_t n) { return static_cast<std::int64_t>(random_() % n); }
  template <class T>
  T& any_of(std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(all.size()))];
  }

  void step(Timer& timer) {
    switch (below(8)) {
      case 0:
      case 1:
        set_expiry(timer);
        [[fallthrough]];
      case 2:
        timer.async_wait(next_wait());
        break;
      case 3:
        signals_.push_back(std::make_unique<net::cancellation_signal>());
        timer.async_wait(net::bind_cancellation_slot(signals_.back()->slot(), next_wait()));
        break;
      case 4:
        below(2) == 0 ? timer.cancel() : timer.cancel_one();
        break;
      case 5:
        if (!signals_.empty()) any_of(signals_)->emit(net::cancellation_type::total);
        break;
      case 6:
        move(timer);
        break;
      default:
        VirtualClock::time += below(std::uint64_t{1} << (below(36) + 1));
        turn();
    }
  }

  void set_expiry(Timer& timer) {
    const std::int64_t range = std::int64_t{1} << (below(36) + 1);
    std::int64_t expiry = VirtualClock::time + below(static_cast<std::uint64_t>(range)) - 10;
    expiry = (expiry + tick_ - 1) / tick_ * tick_;
    timer.expires_at(VirtualClock::time_point(VirtualClock::duration(expiry)));
  }

  // Returns the handler of one more wait.
  auto next_wait() {
    return [this, wait = waits_++](error_code error) {
      events_.push_back({wait, error.failed(), VirtualClock::time});
    };
  }

  void move(Timer& timer) {
    // A slot refers to the timer by its address, also with asio's own timer. So a signal no longer
    // works after its timer has moved.
    std::move(signals_.begin(), signals_.end(), std::back_inserter(stale_signals_));
    signals_.clear();
    auto moved = std::make_unique<Timer>(std::move(timer));
    if (below(2) == 0) {
      timer = std::move(*moved);
    } else {
      any_of(timers_) = std::move(moved);
    }
  }

  void turn() {
    io_.restart();
    io_.poll();
  }

  std::mt19937_64 random_;
  std::int64_t tick_;  // µs
  std::vector<Event> events_;
  int waits_ = 0;
  net::io_context io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  std::vector<std::unique_ptr<Timer>> timers_;
  std::vector<std::unique_ptr<net::cancellation_signal>> signals_;
  std::vector<std::unique_ptr<net::cancellation_signal>> stale_signals_;
};

template <class Timer>
std::vector<Event> play(std::uint64_t seed, std::int64_t tick) {
  return History<Timer>(seed, tick).play();
}

using AsioTimer = net::basic_waitable_timer<VirtualClock>;

TEST(WheelTimerHistories, EveryWaitEndsAsItDoesWithAsiosOwnTimer) {
  for (const std::uint64_t seed : seeds(300)) {
    SCOPED_TRACE(replay_with(seed));
    const auto expected = play<AsioTimer>(seed, 1);
    ASSERT_EQ((play<basic_wheel_timer<VirtualClock, std::micro>>(seed, 1)), expected);
  }
}

TEST(WheelTimerHistories, WaitsEndAsIfEachExpiryWereRoundedUpToATick) {
  for (const std::uint64_t seed : seeds(300)) {
    SCOPED_TRACE(replay_with(seed));
    const auto expected = play<AsioTimer>(seed, 1000);
    ASSERT_EQ((play<basic_wheel_timer<VirtualClock>>(seed, 1)), (play<AsioTimer>(seed, 1000)));
    ASSERT_EQ((play<basic_wheel_timer<VirtualClock>>(seed, 1000)), expected);
  }
}

// --- the order in which timers of one turn complete

class WheelTimerOrder : public ::testing::Test {
 protected:
  using Timer = basic_wheel_timer<VirtualClock>;

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
