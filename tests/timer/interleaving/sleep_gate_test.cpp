// Every interleaving of the timer thread that falls asleep and of threads that schedule: no
// deadline is slept past.
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

// An alarm that keeps a ring for the next sleep, as timer_clock.h asks for.
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

// Threads 0 and 1, if there are two, each publish a deadline in a shard of their own, as TimerShard
// does; the last one is the timer thread. It ends when it would sleep until the earliest deadline,
// and else sleeps for ever unless it is woken.
template <class Twist, Order kOrder, std::int64_t... kDeadlines>
struct Falling {
  static constexpr std::size_t kSchedulers = sizeof...(kDeadlines);
  static constexpr int kThreads = static_cast<int>(kSchedulers) + 1;
  static constexpr std::int64_t kDeadline[] = {kDeadlines...};
  static constexpr std::int64_t kEarliest = std::min({kDeadlines...});

  carillon::detail::SleepGate<Model<Twist>> gate;
  ModelAtomic<std::int64_t, Twist> earliest[kSchedulers];
  ModelAlarm alarm;
  int announced = 0;  // sleeps that somebody has to end
  int rung = 0;

  Falling() {
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

TEST(InterleavingSleepGate, ADeadlineAgainstFallingAsleep) {
  expect_no_fault<Falling<Faithful, Order::kAnnouncesThenLooks, 50>>();
}

TEST(InterleavingSleepGate, TwoDeadlinesAgainstFallingAsleep) {
  expect_no_fault<Falling<Faithful, Order::kAnnouncesThenLooks, 50, 50>>();
  expect_no_fault<Falling<Faithful, Order::kAnnouncesThenLooks, 100, 50>>();
}

// --- that the search would find it

TEST(InterleavingSleepGate, Broken_WithoutSeqCstAWakeupIsLost) {
  expect_fault<Falling<WithoutSeqCst, Order::kAnnouncesThenLooks, 50>>(
      "those that have not ended wait for ever");
}

TEST(InterleavingSleepGate, Broken_WhoLooksBeforeItAnnouncesLosesAWakeup) {
  expect_fault<Falling<Faithful, Order::kLooksThenAnnounces, 50>>(
      "those that have not ended wait for ever");
}

TEST(InterleavingSleepGate, Broken_ClaimingTheWakeupInTwoStepsWakesTwice) {
  expect_fault<Falling<WithSplitSwaps, Order::kAnnouncesThenLooks, 50, 50>>(
      "an awake timer thread was woken, or a sleeping one twice");
}

}  // namespace
}  // namespace carillon::interleaving
