// Every interleaving of a timer thread that falls asleep and of threads that schedule: the timer
// thread never sleeps past a deadline.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "carillon/timer/detail/sleep_gate.h"
#include "timer/interleaving/finding.h"

namespace carillon::interleaving {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// An alarm that keeps a ring for the next sleep, as timer_clock.h requires.
class ModelAlarm {
 public:
  void ring() {
    rung_.store(1, std::memory_order_seq_cst);
    rung_.notify_all();
  }
  void sleep() {
    while (rung_.exchange(0, std::memory_order_seq_cst) == 0)
      rung_.wait(0, std::memory_order_relaxed);
  }

 private:
  ModelAtomic<int> rung_{0};
};

enum class Order { kAnnouncesThenLooks, kLooksThenAnnounces };

// Each thread but the last publishes a deadline in a shard of its own, as TimerShard does. The last
// thread is the timer thread. It ends when it would sleep until the earliest deadline. Otherwise it
// sleeps until it is woken.
template <class Twist, Order kOrder, std::int64_t... kDeadlines>
struct FallingAsleep {
  static constexpr std::size_t kSchedulers = sizeof...(kDeadlines);
  static constexpr int kThreads = static_cast<int>(kSchedulers) + 1;
  static constexpr std::int64_t kDeadline[] = {kDeadlines...};
  static constexpr std::int64_t kEarliest = std::min({kDeadlines...});

  carillon::detail::SleepGate<Model<Twist>> gate;
  ModelAtomic<std::int64_t, Twist> earliest[kSchedulers];
  ModelAlarm alarm;
  int announced = 0;  // number of sleeps that a thread has to end
  int rung = 0;

  FallingAsleep() {
    for (auto& deadline : earliest) deadline.store(kNever, std::memory_order_relaxed);
  }

  void run(int thread) {
    if (thread + 1 < kThreads) {
      earliest[thread].store(kDeadline[thread], std::memory_order_seq_cst);
      if (!gate.must_wake(kDeadline[thread])) return;
      ++rung;
      alarm.ring();
      return;
    }
    for (;;) {
      const std::int64_t until = look();
      if (kOrder == Order::kLooksThenAnnounces && until == kEarliest) return;
      if (until > kEarliest) ++announced;
      gate.announce(until);
      const bool unchanged = kOrder == Order::kLooksThenAnnounces || look() >= until;
      if (unchanged && until == kEarliest) return;
      if (unchanged) alarm.sleep();
      gate.stay_awake();
    }
  }
  std::int64_t look() {
    std::int64_t until = kNever;
    for (auto& deadline : earliest)
      until = std::min(until, deadline.load(std::memory_order_seq_cst));
    return until;
  }
  void at_end() {
    require(rung <= announced, "an awake timer thread was woken, or a sleeping one twice");
  }
};

TEST(InterleavingSleepGate, ADeadlineVersusFallingAsleep) {
  expect_no_fault<FallingAsleep<Faithful, Order::kAnnouncesThenLooks, 50>>();
}

TEST(InterleavingSleepGate, TwoDeadlinesVersusFallingAsleep) {
  expect_no_fault<FallingAsleep<Faithful, Order::kAnnouncesThenLooks, 50, 50>>();
  expect_no_fault<FallingAsleep<Faithful, Order::kAnnouncesThenLooks, 100, 50>>();
}

// --- the search finds what is broken on purpose

TEST(InterleavingSleepGate, Broken_WithoutSeqCstAWakeupIsLost) {
  expect_fault<FallingAsleep<WithoutSeqCst, Order::kAnnouncesThenLooks, 50>>(
      "the threads that have not ended wait for ever");
}

TEST(InterleavingSleepGate, Broken_LookingBeforeAnnouncingLosesAWakeup) {
  expect_fault<FallingAsleep<Faithful, Order::kLooksThenAnnounces, 50>>(
      "the threads that have not ended wait for ever");
}

TEST(InterleavingSleepGate, Broken_ClaimingTheWakeupInTwoStepsWakesTwice) {
  expect_fault<FallingAsleep<WithSplitSwaps, Order::kAnnouncesThenLooks, 50, 50>>(
      "an awake timer thread was woken, or a sleeping one twice");
}

}  // namespace
}  // namespace carillon::interleaving
