// Every interleaving on one TimerWord: exactly one of firing, cancelling and returning wins; a
// timer never fires at a time that it was moved from; an old handle does nothing; and the task and
// the block of a timer are released once.
#include <gtest/gtest.h>

#include <cstdint>

#include "carillon/timer/detail/timer_word.h"
#include "timer/interleaving/finding.h"

namespace carillon::interleaving {
namespace {

using carillon::detail::Phase;

template <class Twist>
using Word = carillon::detail::BasicTimerWord<Model<Twist>>;

// The word does not count moves: a deadline that is moved away and back leaves no trace.
struct WithoutMoves : Faithful {
  static constexpr std::uint64_t stored(std::uint64_t value) {
    return value & ~std::uint64_t{0xffff'fc00};
  }
};
// All timers of a block have the same generation.
struct WithoutGenerations : Faithful {
  static constexpr std::uint64_t stored(std::uint64_t value) {
    return (value & 0xffff'ffff) | (std::uint64_t{1} << 32);
  }
};

// A timer that is in its wheel, and what its block holds.
template <class Twist>
struct Timer {
  Word<Twist> word;
  ModelAtomic<std::int64_t, Twist> deadline{10};
  Plain<int> task{1};  // 1: exists; 0: destroyed; 2: of another timer
  std::uint32_t generation = 0;
  int fired = 0;
  int cancelled = 0;
  int returned = 0;
  int freed = 0;
  bool noted = false;  // a note asks the thread inside the door to take it out of the wheel

  explicit Timer(bool periodic = false) : generation(word.arm(periodic)) {
    word.enter_by_oneself();
  }

  void destroy_task() {
    require(task == 1, "a task was destroyed twice");
    task = 0;
  }
  // Ends the timer. The block belongs to another timer from here on, which writes to it.
  void free() {
    static_cast<void>(word.finish());
    require(task == 0, "a timer was freed before its task");
    task = 2;
    ++freed;
  }

  void cancel() {
    switch (word.cancel(generation)) {
      case Word<Twist>::Cancel::kLost:
        return;
      case Word<Twist>::Cancel::kWonInWheel:
        noted = true;
        [[fallthrough]];
      case Word<Twist>::Cancel::kWonElsewhere:
        ++cancelled;
        destroy_task();
        if (word.let_go_of_task()) free();
        return;
      case Word<Twist>::Cancel::kWonRunning:
        ++cancelled;
        return;
    }
  }

  void move_to(std::int64_t time) {
    if (word.begin_move(generation) != Word<Twist>::Move::kMoving) return;
    deadline.store(time, std::memory_order_release);
    static_cast<void>(word.end_move(false));
  }

  // The wheel reaches the timer at time 10. Returns true if the timer is due; it is queued then.
  bool come_due() {
    for (;;) {
      switch (word.claim([&] { return deadline.load(std::memory_order_acquire) <= 10; })) {
        case Word<Twist>::Claim::kDue:
          require(deadline.load(std::memory_order_relaxed) <= 10,
                  "it fires at a time that it was moved from");
          return true;
        case Word<Twist>::Claim::kMoving:
          Model<Twist>::yield();  // the wheel visits it again a tick later
          continue;
        default:
          return false;
      }
    }
  }
  void run() {
    if (!word.start()) {
      if (word.let_go_as_holder()) free();
      return;
    }
    ++fired;
    require(task == 1, "a task runs that was destroyed");
    destroy_task();
    free();
  }
  void fire() {
    if (come_due()) run();
  }
  void read_note() {
    if (noted && word.let_go_as_holder()) free();
  }
  void take_back() {
    if (word.take_back() != Word<Twist>::TakeBack::kTaken) return;
    ++returned;
    destroy_task();
    free();
  }
};

template <class Twist>
struct TwoCancelsAndFire {
  static constexpr int kThreads = 3;
  Timer<Twist> timer;

  void run(int thread) { thread < 2 ? timer.cancel() : timer.fire(); }
  void at_end() {
    timer.read_note();
    require(timer.fired + timer.cancelled == 1, "it has not exactly one winner");
    require(timer.freed == 1, "it was not freed once");
  }
};

TEST(InterleavingTimerWord, TwoCancelsVersusFire_ExactlyOneWins) {
  expect_no_fault<TwoCancelsAndFire<Faithful>>();
}

template <class Twist>
struct CancelFireAndMove {
  static constexpr int kThreads = 3;
  Timer<Twist> timer;

  void run(int thread) {
    if (thread == 0) timer.cancel();
    if (thread == 1) timer.move_to(100);
    if (thread == 2) timer.fire();
  }
  void at_end() {
    timer.read_note();
    const bool pending = timer.word.phase(timer.generation) == Phase::kArmed;
    require(timer.fired + timer.cancelled + static_cast<int>(pending) == 1,
            "it has not exactly one end");
    require(!pending || timer.deadline.load(std::memory_order_relaxed) == 100, "a move was lost");
    require(timer.freed == (pending ? 0 : 1), "it was not freed once");
  }
};

TEST(InterleavingTimerWord,
     CancelVersusFireVersusMove_OneWinsAndNothingFiresAtATimeItWasMovedFrom) {
  expect_no_fault<CancelFireAndMove<Faithful>>();
}

template <class Twist>
struct TwoMovesAndFire {
  static constexpr int kThreads = 3;
  Timer<Twist> timer;

  void run(int thread) {
    if (thread == 0) timer.move_to(100);
    if (thread == 1) {
      timer.move_to(7);
      timer.move_to(200);
    }
    if (thread == 2) timer.fire();
  }
  void at_end() {
    const bool pending = timer.word.phase(timer.generation) == Phase::kArmed;
    require(timer.fired + static_cast<int>(pending) == 1, "it has not exactly one end");
  }
};

TEST(InterleavingTimerWord, MovesOfTwoThreadsVersusFire) {
  expect_no_fault<TwoMovesAndFire<Faithful>>();
}

// Two threads use old handles, while the block is used again for another timer.
template <class Twist>
struct Reuse {
  static constexpr int kThreads = 3;
  Timer<Twist> timer;
  std::uint32_t next = 0;

  void run(int thread) {
    if (thread < 2) {
      thread == 0 ? timer.cancel() : timer.move_to(7);
      return;
    }
    if (!timer.come_due() || !timer.word.start()) return;
    timer.task = 0;
    static_cast<void>(timer.word.finish());
    timer.deadline.store(50, std::memory_order_relaxed);
    next = timer.word.arm(false);
    timer.word.enter_by_oneself();
  }
  void at_end() {
    if (next == 0) return;
    require(timer.word.phase(next) == Phase::kArmed, "an old handle has cancelled another timer");
    require(timer.deadline.load(std::memory_order_relaxed) == 50,
            "an old handle has moved another timer");
  }
};

TEST(InterleavingTimerWord, AnOldHandleVersusTheNextGeneration) {
  expect_no_fault<Reuse<Faithful>>();
}

// stop() takes the timer back from its wheel.
template <class Twist>
struct TakeBackCancelAndMove {
  static constexpr int kThreads = 3;
  Timer<Twist> timer;

  void run(int thread) {
    if (thread == 0) timer.cancel();
    if (thread == 1) timer.move_to(100);
    if (thread == 2) timer.take_back();
  }
  void at_end() {
    timer.read_note();
    require(timer.returned + timer.cancelled == 1, "it has not exactly one winner");
    require(timer.freed == 1, "it was not freed once");
  }
};

TEST(InterleavingTimerWord, TakeBackVersusCancelVersusMove_ExactlyOneWins) {
  expect_no_fault<TakeBackCancelAndMove<Faithful>>();
}

// A periodic timer is running; two threads cancel it and wait for the end of the run.
template <class Twist>
struct PeriodicCancelAndWait {
  static constexpr int kThreads = 3;
  Timer<Twist> timer{true};
  Plain<int> running{1};

  PeriodicCancelAndWait() { require(timer.come_due() && timer.word.start(), "it runs"); }

  void run(int thread) {
    if (thread < 2) {
      timer.cancel();
      timer.word.wait_for_end_of_task(timer.generation);
      require(running == 0, "a wait for the end of a run returned before the end");
      return;
    }
    running = 0;
    timer.deadline.store(20, std::memory_order_release);
    switch (timer.word.rearm()) {
      case Word<Twist>::Rearm::kEnded:
        timer.destroy_task();
        return timer.free();
      case Word<Twist>::Rearm::kArmedWaited:
        timer.word.notify();
        break;
      case Word<Twist>::Rearm::kArmed:
        break;
    }
    // The note that carries the timer back to its shard is read.
    if (timer.word.take_note() == Phase::kCancelled && timer.word.let_go_as_holder()) timer.free();
  }
  void at_end() {
    timer.read_note();
    require(timer.cancelled == 1, "it was not cancelled once");
    require(timer.freed == 1, "it was not freed once");
  }
};

TEST(InterleavingTimerWord, CancelAndWaitVersusTheEndOfAPeriodicRun_NobodyWaitsForEver) {
  expect_no_fault<PeriodicCancelAndWait<Faithful>>();
}

// A periodic timer ends after its last run, while two threads cancel it. One of the two ends wins,
// and cancel() tells which.
template <class Twist>
struct CancelVersusTheLastPeriod {
  static constexpr int kThreads = 3;
  Timer<Twist> timer{true};
  bool ended_cancelled = false;

  CancelVersusTheLastPeriod() { require(timer.come_due() && timer.word.start(), "it runs"); }

  void run(int thread) {
    if (thread < 2) return timer.cancel();
    ended_cancelled = timer.word.end_periods();
    timer.destroy_task();
    timer.free();
  }
  void at_end() {
    require(timer.cancelled == (ended_cancelled ? 1 : 0),
            "cancel() and end_periods() disagree on the end");
    require(timer.freed == 1, "it was not freed once");
  }
};

TEST(InterleavingTimerWord, CancelVersusTheLastPeriod_OneWins) {
  expect_no_fault<CancelVersusTheLastPeriod<Faithful>>();
  EXPECT_NE(explore<CancelVersusTheLastPeriod<WithSplitSwaps>>().fault, "") << "broken on purpose";
}

// Two threads cancel a timer, in its wheel or queued, and wait for the end of its task.
template <class Twist>
struct CancelsThatWait {
  static constexpr int kThreads = 3;
  Timer<Twist> timer;

  void run(int thread) {
    if (thread == 2) {
      if (timer.come_due()) timer.noted = true;  // a queue holds it from here on
      return;
    }
    timer.cancel();
    timer.word.wait_for_end_of_task(timer.generation);
    require(timer.task == 0, "cancel_and_wait() returned before the task's destructor");
  }
  void at_end() {
    timer.read_note();
    require(timer.cancelled == 1, "it was not cancelled once");
    require(timer.freed == 1, "it was not freed once");
  }
};

TEST(InterleavingTimerWord, CancelAndWaitVersusCancel_TheTaskIsGoneWhenEitherReturns) {
  expect_no_fault<CancelsThatWait<Faithful>>();
  expect_fault<CancelsThatWait<WithoutNotifying>>("the threads that have not ended wait for ever");
}

// --- the search finds what is broken on purpose

TEST(InterleavingTimerWord, Broken_TransitionsInTwoStepsHaveTwoWinners) {
  EXPECT_NE(explore<TwoCancelsAndFire<WithSplitSwaps>>().fault, "");
  EXPECT_NE(explore<TakeBackCancelAndMove<WithSplitSwaps>>().fault, "");
}

TEST(InterleavingTimerWord, Broken_WithoutCountingMovesItFiresEarly) {
  expect_fault<CancelFireAndMove<WithoutMoves>>("it fires at a time that it was moved from");
}

TEST(InterleavingTimerWord, Broken_WithoutGenerationsAnOldHandleRefersToAnotherTimer) {
  EXPECT_NE(explore<Reuse<WithoutGenerations>>().fault, "");
}

TEST(InterleavingTimerWord, Broken_WithoutNotifyingSomebodyWaitsForEver) {
  expect_fault<PeriodicCancelAndWait<WithoutNotifying>>(
      "the threads that have not ended wait for ever");
}

TEST(InterleavingTimerWord, Broken_WithoutReleaseOrAcquireTheTaskIsARace) {
  expect_fault<TwoCancelsAndFire<WithoutRelease>>("data race");
  expect_fault<TwoCancelsAndFire<WithoutAcquire>>("data race");
}

}  // namespace
}  // namespace carillon::interleaving
