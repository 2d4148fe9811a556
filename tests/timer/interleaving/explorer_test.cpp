// The Explorer itself, on the small programs that tell memory models apart ("litmus tests").
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <utility>

#include "timer/interleaving/finding.h"

namespace carillon::interleaving {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kSeqCst = std::memory_order_seq_cst;

std::set<std::pair<int, int>> outcomes;  // the current search's

template <class Program>
std::set<std::pair<int, int>> outcomes_of() {
  outcomes.clear();
  EXPECT_EQ(explore<Program>().fault, "");
  return outcomes;
}

// Each thread stores its flag, and then loads the flag of the other.
template <std::memory_order kStore, std::memory_order kLoad>
struct StoreThenLoad {
  static constexpr int kThreads = 2;
  ModelAtomic<int> flags[2];
  int saw[2] = {};

  void run(int thread) {
    flags[thread].store(1, kStore);
    saw[thread] = flags[1 - thread].load(kLoad);
  }
  void at_end() { outcomes.emplace(saw[0], saw[1]); }
};

TEST(Explorer, StoreBuffering_BothMayMissTheOthersStoreUnlessAllIsSeqCst) {
  const std::set<std::pair<int, int>> strict = {{0, 1}, {1, 0}, {1, 1}};
  std::set<std::pair<int, int>> lax = strict;
  lax.emplace(0, 0);
  EXPECT_EQ((outcomes_of<StoreThenLoad<kSeqCst, kSeqCst>>()), strict);
  EXPECT_EQ((outcomes_of<StoreThenLoad<kRelease, kAcquire>>()), lax);
  EXPECT_EQ((outcomes_of<StoreThenLoad<kRelease, kSeqCst>>()), lax);
  EXPECT_EQ((outcomes_of<StoreThenLoad<kSeqCst, kAcquire>>()), lax);
}

template <std::memory_order kStore, std::memory_order kLoad>
struct Message {
  static constexpr int kThreads = 2;
  ModelAtomic<int> ready{0};
  Plain<int> data{0};

  void run(int thread) {
    if (thread == 0) {
      data = 42;
      ready.store(1, kStore);
    } else if (ready.load(kLoad) == 1) {
      require(data == 42, "half a message");
    }
  }
  void at_end() {}
};

TEST(Explorer, MessagePassing_NeedsReleaseAndAcquire) {
  expect_no_fault<Message<kRelease, kAcquire>>();
  expect_fault<Message<kRelaxed, kAcquire>>(
      "data race: thread 1 reads plain #0, which thread 0 has written");
  expect_fault<Message<kRelease, kRelaxed>>(
      "data race: thread 1 reads plain #0, which thread 0 has written");
}

// Two threads each write one flag; two others read both, in opposite order. Do they agree on which
// came first?
template <std::memory_order kStore, std::memory_order kLoad>
struct TwoReaders {
  static constexpr int kThreads = 4;
  ModelAtomic<int> flags[2];
  int saw[2][2] = {};

  void run(int thread) {
    if (thread < 2) {
      flags[thread].store(1, kStore);
    } else {
      saw[thread - 2][0] = flags[thread - 2].load(kLoad);
      saw[thread - 2][1] = flags[3 - thread].load(kLoad);
    }
  }
  void at_end() {
    const bool disagree = saw[0][0] == 1 && saw[0][1] == 0 && saw[1][0] == 1 && saw[1][1] == 0;
    outcomes.emplace(disagree, 0);
  }
};

TEST(Explorer, IndependentReads_AgreeOnlyIfAllIsSeqCst) {
  EXPECT_EQ((outcomes_of<TwoReaders<kSeqCst, kSeqCst>>()), (std::set<std::pair<int, int>>{{0, 0}}));
  EXPECT_EQ((outcomes_of<TwoReaders<kRelease, kAcquire>>()),
            (std::set<std::pair<int, int>>{{0, 0}, {1, 0}}));
}

// A thread never sees an older value after a newer one.
struct ReadsTwice {
  static constexpr int kThreads = 2;
  ModelAtomic<int> number{0};

  void run(int thread) {
    if (thread == 0) {
      number.store(1, kRelaxed);
      number.store(2, kRelaxed);
    } else {
      const int first = number.load(kRelaxed);
      outcomes.emplace(first, number.load(kRelaxed));
    }
  }
  void at_end() {}
};

TEST(Explorer, Coherence_ReadsOfOneLocationDoNotGoBack) {
  EXPECT_EQ(outcomes_of<ReadsTwice>(),
            (std::set<std::pair<int, int>>{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}}));
}

template <class Twist>
struct Count {
  static constexpr int kThreads = 3;
  ModelAtomic<int, Twist> count{0};

  void run(int) {
    int seen = count.load(kRelaxed);
    while (!count.compare_exchange_weak(seen, seen + 1, kRelaxed)) {
    }
  }
  void at_end() { require(count.load(kRelaxed) == 3, "a count was lost"); }
};

TEST(Explorer, CompareAndSwap_LosesNothing) {
  expect_no_fault<Count<Faithful>>();
  expect_fault<Count<WithSplitSwaps>>("a count was lost");
}

template <class Twist>
struct WaitsForAStore {
  static constexpr int kThreads = 3;
  ModelAtomic<int, Twist> flag{0};

  void run(int thread) {
    if (thread == 0) {
      flag.store(1, kRelease);
      flag.notify_all();
    } else if (thread == 1) {
      flag.wait(0, kAcquire);
    } else {
      while (flag.load(kAcquire) == 0) Model<>::yield();
    }
  }
  void at_end() {}
};

TEST(Explorer, Waiting_EndsAfterAStoreAndANotificationAndAThreadThatWaitsForEverIsFound) {
  expect_no_fault<WaitsForAStore<Faithful>>();
  expect_fault<WaitsForAStore<WithoutNotifying>>("the threads that have not ended wait for ever");
}

// Counts all interleavings: three threads of two steps each have 6! / (2! 2! 2!) = 90 orders.
struct Orders {
  static constexpr int kThreads = 3;
  ModelAtomic<std::uint64_t> log{0};

  void run(int thread) {
    for (int i = 0; i < 2; ++i) {
      std::uint64_t seen = log.load(kRelaxed);
      while (!log.compare_exchange_weak(seen, seen * 4 + static_cast<std::uint64_t>(thread) + 1,
                                        kRelaxed)) {
      }
    }
  }
  void at_end() { outcomes.emplace(static_cast<int>(log.load(kRelaxed)), 0); }
};

TEST(Explorer, Interleavings_AreAllExplored) {
  EXPECT_EQ(outcomes_of<Orders>().size(), 90U);
}

}  // namespace
}  // namespace carillon::interleaving
