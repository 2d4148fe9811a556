// The bugs of others: defects that users of well-known timers have reported. Each is a test that
// fails if a model here has the defect.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/kafka_wheel.h"
#include "carillon/wheel/linux_wheel.h"
#include "carillon/wheel/timer_pool.h"
#include "wheel/any_set.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

constexpr Tick kDay = Tick{24} * 60 * 60 * 1000;  // in ticks of a millisecond

// A new set at tick `start` of every model that takes delays as long as `delay`.
std::vector<std::unique_ptr<AnySet>> every_set(Tick start, Tick delay) {
  std::vector<std::unique_ptr<AnySet>> sets;
  for (const AnySetMaker& maker : all_sets()) {
    sets.push_back(maker.make(start));
    if (sets.back()->longest_delay() < delay) sets.pop_back();
  }
  return sets;
}

// Advances, and returns the timers that fired.
std::vector<int> fire(AnySet& set, Tick to, std::size_t limit = kNoLimit) {
  std::vector<int> fired;
  set.advance(
      to, [&](int timer) { fired.push_back(timer); }, limit);
  set.check_invariants();
  return fired;
}

using Fired = std::vector<int>;
const Fired kNone;

void ignore(TimerNode&) {}

// tokio#8334, tikv#12043: a wheel whose top level wraps after 2^30 ms, 12.4 days, and then spins or
// hangs.
TEST(BugsOfOthers, TheTopLevelDoesNotWrapAfterTwelveDays) {
  for (const Tick period : {Tick{1} << 30, Tick{1} << 32, Tick{1} << 36, Tick{1} << 62}) {
    for (const auto& set : every_set(period - 7, 13 * kDay)) {
      set->schedule(1, period - 1);
      set->schedule(2, period);
      set->schedule(3, period + 1);
      set->schedule(4, period + 13 * kDay);
      EXPECT_EQ(fire(*set, period - 2), kNone);
      EXPECT_EQ(fire(*set, period - 1), Fired{1});
      EXPECT_EQ(fire(*set, period), Fired{2});
      EXPECT_EQ(fire(*set, period + 1), Fired{3});
      EXPECT_EQ(fire(*set, period + 13 * kDay - 1), kNone);
      EXPECT_EQ(fire(*set, period + 13 * kDay), Fired{4});
      EXPECT_EQ(set->next_wakeup(), std::nullopt);
    }
  }
}

// The same, with a timer of 10 s re-armed all the way, as a heartbeat does.
TEST(BugsOfOthers, AHeartbeatGoesOnForThirteenDays) {
  HierarchicalWheel<> wheel;
  LinuxWheel linux_wheel;
  KafkaWheel kafka;
  const auto beats = [](auto& set) {
    TimerNode heartbeat;
    set.schedule(heartbeat, Moment{10'000});
    std::size_t fired = 0;
    set.advance(13 * kDay, [&](TimerNode& node) {
      ++fired;
      set.schedule(node, set.now() + 10'000);
    });
    set.cancel(heartbeat);
    return fired;
  };
  EXPECT_EQ(beats(wheel), 112'320U);
  EXPECT_EQ(beats(linux_wheel), 112'320U);
  EXPECT_EQ(beats(kafka), 112'320U);
}

// tokio#2473: panics when the deadline is the current tick.
TEST(BugsOfOthers, ADeadlineThatIsNowFires) {
  for (const Tick now :
       {Tick{0}, Tick{63}, Tick{64}, Tick{4096}, std::numeric_limits<Tick>::max()}) {
    for (const auto& set : every_set(now, 0)) {
      set->schedule(1, now);
      EXPECT_EQ(set->next_wakeup(), now);
      EXPECT_EQ(fire(*set, now), Fired{1});
      set->reschedule(1, now);
      EXPECT_EQ(fire(*set, now), Fired{1});
    }
  }
}

// theine-go#64: off by one on advance, when the wheel is moved exactly onto the boundary of a slot,
// or to a tick beside it.
TEST(BugsOfOthers, AnAdvanceOntoABoundaryFiresWhatExpiresThereAndNotItsNeighbours) {
  for (const Tick boundary : {Tick{8}, Tick{64}, Tick{100}, Tick{256}, Tick{400}, Tick{4096},
                              Tick{16'384}, Tick{65'536}}) {
    for (const Tick onto : {boundary - 1, boundary, boundary + 1}) {
      for (const auto& set : every_set(0, boundary + 1)) {
        set->schedule(1, boundary - 1);
        set->schedule(2, boundary);
        set->schedule(3, boundary + 1);
        const Fired due = onto < boundary    ? Fired{1}
                          : onto == boundary ? Fired{1, 2}
                                             : Fired{1, 2, 3};
        EXPECT_EQ(fire(*set, onto), due) << boundary << ", " << onto;
        EXPECT_EQ(fire(*set, boundary + 1).size(), 3 - due.size());
      }
    }
  }
}

// glommio#44: the next wake-up was searched on the lowest level that holds timers, though a level
// above held an earlier timer.
TEST(BugsOfOthers, ALaterFineTimerDoesNotHideAnEarlierCoarseOne) {
  for (const Tick coarse : {Tick{10}, Tick{70}, Tick{300}, Tick{5000}, Tick{70'000}}) {
    for (const auto& set : every_set(0, coarse)) {
      set->schedule(1, coarse);                  // on a high level
      EXPECT_EQ(fire(*set, coarse - 2), kNone);  // now it is near, on whatever level it stands
      set->schedule(2, coarse + 1);              // on a low one
      EXPECT_LE(set->next_wakeup().value(), coarse);
      EXPECT_EQ(fire(*set, coarse), Fired{1}) << coarse;
      EXPECT_EQ(fire(*set, coarse + 1), Fired{2}) << coarse;
    }
  }
}

// libuv#4773, Kafka with a tick above 1 ms, sozu#1369: timers that fire up to a tick, or a bucket,
// before their time.
TEST(BugsOfOthers, NoTimerFiresEvenOneTickEarly) {
  for (const std::uint64_t seed : seeds(20)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    const Tick start = random() >> (1 + random() % 63);
    for (const auto& set : every_set(start, 1)) {
      const Tick range = std::min<Tick>(set->longest_delay(), 100'000);
      for (int timer = 0; timer < 40; ++timer) {
        const Tick expiry = set->now() + 1 + random() % range;
        set->schedule(timer, expiry);
        if (timer % 2 == 0) continue;  // half of them stay, to fire between the others
        while (set->armed(timer) && set->next_wakeup().value() < expiry) {
          for (const int fired : fire(*set, set->next_wakeup().value()))
            ASSERT_NE(fired, timer) << "early";
        }
        fire(*set, expiry - 1);
        ASSERT_TRUE(set->armed(timer)) << "early";
        fire(*set, expiry);
        ASSERT_FALSE(set->armed(timer)) << "late";
      }
    }
  }
}

// netty#1959, nats#7070: a delay of exactly one revolution of the wheel, or one tick more or less,
// fires a turn late or at once.
TEST(BugsOfOthers, ADelayAtOrBeyondOneRevolutionFiresInItsOwnTurn) {
  for (const Tick revolution : {Tick{8}, Tick{12}, Tick{64}, Tick{256}, Tick{512}, Tick{16'384}}) {
    for (const Tick turns : {Tick{1}, Tick{2}, Tick{3}}) {
      for (const Tick beside : {Tick{0}, Tick{1}, Tick{2}}) {
        const Tick delay = revolution * turns + beside - 1;
        for (const Tick start : {Tick{0}, Tick{5}, revolution - 1}) {
          for (const auto& set : every_set(start, delay)) {
            set->schedule(1, start + delay);
            EXPECT_EQ(fire(*set, start + delay - 1), kNone) << start << " + " << delay;
            EXPECT_EQ(fire(*set, start + delay), Fired{1}) << start << " + " << delay;
          }
        }
      }
    }
  }
}

// The same, of Netty's own shape, with the ticks taken one by one.
TEST(BugsOfOthers, AHashedWheelCountsItsRoundsDownRight) {
  HashedWheel<8> wheel;
  std::vector<TimerNode> timers(40);
  for (std::size_t i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], Moment{i + 1});
  for (Tick now = 1; now <= 40; ++now) {
    std::size_t fired = 0;
    wheel.advance(now, [&](TimerNode& node) {
      ++fired;
      EXPECT_EQ(&node, &timers[now - 1]);
    });
    EXPECT_EQ(fired, 1U) << now;
  }
}

// ratas: a callback that throws leaves the rest of its tick, and the ticks that should follow,
// behind for ever.
TEST(BugsOfOthers, AThrowLosesNoTick) {
  for (const auto& set : every_set(0, 5000)) {
    for (int timer = 0; timer < 30; ++timer)
      set->schedule(timer, timer < 10 ? 100 : timer < 20 ? 101 : 5000);
    std::vector<int> fired;
    int thrown = 0;
    while (!set->empty()) {
      try {
        set->advance(6000, [&](int timer) {
          fired.push_back(timer);
          EXPECT_EQ(set->now(), timer < 10 ? 100U : timer < 20 ? 101U : 5000U);
          if (timer % 2 == 0) throw Bang();
        });
      } catch (const Bang&) {
        ++thrown;
      }
      set->check_invariants();
    }
    Fired all(30);
    for (int timer = 0; timer < 30; ++timer) all[static_cast<std::size_t>(timer)] = timer;
    EXPECT_EQ(fired, all);
    EXPECT_GE(thrown, 15);
  }
}

// ratas: max_execute bounds what one tick of one level fires, not what one call does.
TEST(BugsOfOthers, TheLimitIsOnTheCallAndExact) {
  for (const auto& set : every_set(0, 7000)) {
    if (set->may_stop_short()) continue;
    for (int timer = 0; timer < 100; ++timer)
      set->schedule(timer, timer < 50 ? 10 : 10 + 70 * static_cast<Tick>(timer));
    std::size_t fired = 0;
    for (int call = 0; call < 14; ++call) {
      EXPECT_EQ(fire(*set, 8000, 7).size(), 7U) << "call " << call;
      fired += 7;
      EXPECT_EQ(set->size(), 100 - fired);
    }
    EXPECT_EQ(fire(*set, 8000, 7).size(), 2U);
    EXPECT_EQ(set->now(), 8000U);
  }
}

// An advance without bounds: callbacks that schedule for now, or for the past, keep it at one tick
// for ever.
TEST(BugsOfOthers, AnAdvanceIsBoundedWhateverItsCallbacksDo) {
  for (const auto& set : every_set(0, 1)) {
    set->schedule(0, 1);
    int next = 1;
    const auto breed = [&](int timer) {
      set->schedule(timer, 0);
      if (next < 50) set->schedule(next++, set->now());
    };
    EXPECT_LE(set->advance(1, breed, 10), 10U);
    EXPECT_LE(set->advance(1000, breed, 10), 10U);
    EXPECT_LE(set->now(), 1000U);
    std::size_t fired = 0;
    set->advance(set->now(), [&](int timer) {
      ++fired;
      set->schedule(timer, 0);
    });
    EXPECT_LE(fired, 50U) << "an overdue timer fires once in an advance that stands still";
    set->clear([](int) {});
  }
}

// A jump over centuries of empty time visits slots, not ticks. With a loop over ticks, this test
// would not end.
TEST(BugsOfOthers, AnAdvanceOverEmptyTimeIsBounded) {
  for (const auto& set : every_set(0, 1)) {
    for (Tick now = 0; now < std::numeric_limits<Tick>::max() / 2; now = 2 * now + 1) {
      set->schedule(1, now + 1);
      EXPECT_EQ(fire(*set, 2 * now + 1), Fired{1});
    }
  }
}

// upg-vpp#286, arduino-timer#76: a handle that outlived its timer stops the timer that uses the
// same memory now.
TEST(BugsOfOthers, AStaleHandleNeverStopsAStrangersTimer) {
  TimerPool<int> pool;
  std::vector<TimerId> stale;
  for (int user = 0; user < 1000; ++user) {
    const TimerId mine = pool.schedule(Moment{10}, user);
    for (const TimerId old : stale) {
      ASSERT_EQ(old.index, mine.index) << "the cell was not reused: the test shows nothing";
      ASSERT_FALSE(pool.cancel(old));
      ASSERT_FALSE(pool.reschedule(old, Moment{999}));
    }
    ASSERT_EQ(pool.expiry(mine), 10U);
    pool.cancel(mine);
    stale.push_back(mine);
  }
}

// The same when the generations of a cell run out: the cell is retired (timer_pool.h), and no id
// ever comes back.
TEST(BugsOfOthers, AHandleDoesNotComeBackWhenGenerationsRunOut) {
  TimerPool<int, HierarchicalWheel<>, 3> pool;
  std::vector<TimerId> given;
  for (int user = 0; user < 300; ++user) {
    const TimerId mine = pool.schedule(1 + pool.now(), user);
    for (const TimerId old : given) ASSERT_FALSE(old == mine);
    given.push_back(mine);
    if (user % 2 == 0) {
      pool.cancel(mine);
    } else {
      pool.advance(pool.now() + 1, [](TimerId, int&&) {});
    }
    for (const TimerId old : given) ASSERT_FALSE(pool.contains(old));
  }
  EXPECT_EQ(given.back().index, 99U) << "300 timers, three to a cell";
}

// brpc#3384, netty#2541: 100 000 timers of 300 s started per second, each cancelled at once, kept
// 1.9 GB.
TEST(BugsOfOthers, CancelledTimersKeepNoMemory) {
  HierarchicalWheel<> wheel;
  TimerNode timer;
  std::size_t most = 0;
  for (Tick now = 0; now < 10'000; ++now) {
    wheel.advance(now, ignore);
    for (int call = 0; call < 100; ++call) {
      wheel.schedule(timer, Moment{now + 300'000});
      wheel.cancel(timer);
    }
    most = std::max(most, wheel.allocated_bytes());
  }
  EXPECT_LE(most, 256U * 1024) << "a million calls";
}

// hertzbeat#4201: a timer that was re-armed without a cancel left an orphan behind each time.
TEST(BugsOfOthers, ARearmedTimerLeavesNoOrphan) {
  for (const auto& set : every_set(0, 5000)) {
    for (Tick later = 1; later < 2000; ++later) set->reschedule(1, 3000 + later);
    for (Tick earlier = 1; earlier < 2000; ++earlier) set->reschedule(1, 4999 - earlier);
    EXPECT_EQ(set->size(), 1U);
    EXPECT_EQ(fire(*set, 3000 - 1), kNone);
    EXPECT_EQ(fire(*set, 5000), Fired{1});
    EXPECT_TRUE(set->empty());
  }
}

// ratas: the next event took 740 µs with 100 000 timers in one outer slot, because it read each of
// them.
TEST(BugsOfOthers, TheNextWakeupDoesNotReadTheTimers) {
  HierarchicalWheel<> wheel;
  std::vector<TimerNode> timers(100'000);
  for (std::size_t i = 0; i < timers.size(); ++i)
    wheel.schedule(timers[i], Moment{1'000'000 + i % 1000});
  // At 740 µs each, these calls would take two hours, and the test would time out.
  for (std::size_t question = 0; question < 10'000'000; ++question) {
    wheel.reschedule(timers[question % 100], Moment{2'000'000 + question});
    const Tick wakeup = *wheel.next_wakeup();
    if (wakeup == 0 || wakeup > 1'000'000) FAIL() << wakeup;
  }
  wheel.clear(ignore);
}

}  // namespace
}  // namespace carillon::testing
