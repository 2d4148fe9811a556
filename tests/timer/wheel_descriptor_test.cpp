// WheelDescriptor, a wheel behind a file descriptor: which timers fire, when the descriptor is
// readable, and when the kernel gets a new deadline.
//
// Most tests pass a made-up time to dispatch_at(), and ask readable_at() instead of waiting.
#include "carillon/timer/wheel_descriptor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "carillon/wheel/hashed_wheel.h"
#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/linux_wheel.h"
#include "models/binary_heap.h"
#include "wheel/seeds.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

struct Timer : TimerNode {
  explicit Timer(int identity = 0) : id(identity) {}
  int id;
};

constexpr steady_clock::time_point at(nanoseconds time) {
  return steady_clock::time_point(time);
}

bool readable(int descriptor, std::chrono::milliseconds patience = 0ms) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(patience.count())) == 1;
}

// The time left until the kernel makes the descriptor readable; 0: no time is set.
nanoseconds left(int descriptor) {
  itimerspec when{};
  ::timerfd_gettime(descriptor, &when);
  return std::chrono::seconds(when.it_value.tv_sec) + nanoseconds(when.it_value.tv_nsec);
}

template <class Model>
class WheelDescriptors : public ::testing::Test {
 protected:
  using Log = std::vector<int>;

  auto logging() {
    return [this](TimerNode& node) { log_.push_back(static_cast<Timer&>(node).id); };
  }

  WheelDescriptor<Model> timers_{1ms, at(0s)};
  Log log_;
};

// Bug: the time in nanoseconds wrapped, and the timer was due at once.
TEST(AWheelDescriptor, ADurationOrTimeBeyondTheRangeIsTheEndOfTime) {
  using std::chrono::hours;
  using Hours = std::chrono::time_point<steady_clock, hours>;
  WheelDescriptor<> timers(1ms, at(0s));
  Timer timer;
  const auto ignore = [](TimerNode&) {};
  timers.schedule_after(timer, hours::max());
  EXPECT_EQ(timers.dispatch_at(at(1000h), ignore), 0U);
  timers.reschedule_at(timer, Hours::max());
  EXPECT_EQ(timers.dispatch_at(at(2000h), ignore), 0U);
  timers.schedule_at(timer, at(2001h), hours::max());
  EXPECT_EQ(timers.dispatch_at(at(3000h), ignore), 0U) << "any time from then on";
  EXPECT_EQ(timers.dispatch_at(Hours::max(), ignore), 1U);
  EXPECT_EQ(WheelDescriptor<>(hours::max()).size(), 0U);
}

// Bug: a nested dispatch(), which throws, made later calls tell the kernel of each timer.
TEST(AWheelDescriptor, ANestedDispatchIsRefusedAndChangesNothing) {
  WheelDescriptor<> timers(1ms, at(0s));
  Timer first, second;
  timers.schedule_at(first, at(10ms));
  timers.dispatch_at(at(10ms), [&](TimerNode&) {
    EXPECT_THROW(timers.dispatch_at(at(1h), [](TimerNode&) {}), std::logic_error);
    timers.schedule_at(second, at(5ms));
    EXPECT_EQ(timers.readable_at(), at(10ms)) << "the kernel is told at the end";
  });
  EXPECT_EQ(timers.readable_at(), at(10ms));
}

struct Named {
  template <class T>
  static std::string GetName(int) {
    if (std::is_same_v<T, HierarchicalWheel<>>) return "HierarchicalWheel";
    if (std::is_same_v<T, LinuxWheel>) return "LinuxWheel";
    return std::is_same_v<T, HashedWheel<512>> ? "HashedWheel" : "BinaryHeap";
  }
};
using Models = ::testing::Types<HierarchicalWheel<>, LinuxWheel, HashedWheel<512>, BinaryHeap>;
TYPED_TEST_SUITE(WheelDescriptors, Models, Named);

TYPED_TEST(WheelDescriptors, FiresWhatIsDueAndNothingBefore) {
  Timer a(1);
  Timer b(2);
  this->timers_.schedule_at(a, at(1500us));
  this->timers_.schedule_at(b, at(3ms));
  EXPECT_EQ(this->timers_.dispatch_at(at(1999us), this->logging()), 0U) << "the tick ends at 2 ms";
  EXPECT_EQ(this->timers_.dispatch_at(at(2ms), this->logging()), 1U);
  EXPECT_EQ(this->timers_.dispatch_at(at(10ms), this->logging()), 1U);
  EXPECT_EQ(this->log_, (std::vector<int>{1, 2}));
  EXPECT_TRUE(this->timers_.empty());
}

TYPED_TEST(WheelDescriptors, ATimeInThePastIsDueAtOnceAndAFarOneIsNot) {
  Timer past(1);
  Timer far(2);
  this->timers_.schedule_at(past, at(-5s));
  EXPECT_TRUE(readable(this->timers_.descriptor(), 10s));
  if constexpr (std::is_same_v<TypeParam, HierarchicalWheel<>>) {
    this->timers_.schedule_after(far, std::chrono::hours::max());
  } else {
    this->timers_.schedule_at(far, at(1h));
  }
  EXPECT_EQ(this->timers_.dispatch_at(at(1s), this->logging()), 1U);
  EXPECT_TRUE(far.armed());
  EXPECT_TRUE(this->timers_.cancel(far));
}

TYPED_TEST(WheelDescriptors, TimeMayBeginBeforeZero) {
  WheelDescriptor<TypeParam> timers(1ms, at(-1s));
  Timer before(1);
  Timer after(2);
  timers.schedule_at(before, at(-500ms));
  timers.schedule_at(after, at(500ms));
  EXPECT_EQ(timers.dispatch_at(at(-500ms - 1ns), this->logging()), 0U);
  EXPECT_EQ(timers.dispatch_at(at(-500ms), this->logging()), 1U);
  EXPECT_EQ(timers.dispatch_at(at(500ms - 1ns), this->logging()), 0U);
  EXPECT_EQ(timers.dispatch_at(at(500ms), this->logging()), 1U);
}

TYPED_TEST(WheelDescriptors, TheDescriptorIsReadableExactlyWhileSomethingIsDue) {
  WheelDescriptor<TypeParam> timers;
  Timer a(1);
  EXPECT_FALSE(readable(timers.descriptor())) << "empty";
  const auto start = steady_clock::now();
  timers.schedule_after(a, 5ms);
  EXPECT_TRUE(readable(timers.descriptor(), 10s));
  EXPECT_GE(steady_clock::now(), start + 5ms);
  EXPECT_EQ(timers.dispatch(this->logging()), 1U);
  EXPECT_FALSE(readable(timers.descriptor())) << "although nothing was read from it";
  EXPECT_EQ(timers.readable_at(), std::nullopt);
}

TYPED_TEST(WheelDescriptors, TheKernelIsToldOnlyOfAnEarlierTime) {
  Timer first(1);
  Timer later(2);
  Timer earlier(3);
  this->timers_.schedule_at(first, at(100ms));
  EXPECT_EQ(this->timers_.readable_at(), at(100ms));
  this->timers_.schedule_at(later, at(200ms));
  EXPECT_EQ(this->timers_.readable_at(), at(100ms));
  this->timers_.schedule_at(earlier, at(50ms));
  EXPECT_EQ(this->timers_.readable_at(), at(50ms));
  this->timers_.reschedule_at(earlier, at(300ms));
  this->timers_.cancel(first);
  EXPECT_EQ(this->timers_.readable_at(), at(50ms)) << "one wake-up for nothing";
  EXPECT_EQ(this->timers_.dispatch_at(at(50ms), this->logging()), 0U);
  EXPECT_GT(this->timers_.readable_at(), at(50ms));
  EXPECT_LE(this->timers_.readable_at(), at(200ms));
  this->timers_.cancel(later);
  this->timers_.cancel(earlier);
  EXPECT_EQ(this->timers_.dispatch_at(at(200ms), this->logging()), 0U);
  EXPECT_EQ(this->timers_.readable_at(), std::nullopt) << "an empty wheel wakes nobody";
  EXPECT_EQ(left(this->timers_.descriptor()), 0ns);
}

TYPED_TEST(WheelDescriptors, TheDescriptorFollowsATimerThatIsMovedToEarlier) {
  Timer a(1);
  this->timers_.schedule_at(a, at(100ms));
  this->timers_.reschedule_at(a, at(40ms));
  EXPECT_EQ(this->timers_.readable_at(), at(40ms));
  EXPECT_EQ(this->timers_.dispatch_at(at(40ms), this->logging()), 1U);
  this->timers_.reschedule_at(a, at(60ms));  // not armed: the same as schedule_at()
  EXPECT_EQ(this->timers_.readable_at(), at(60ms));
  this->timers_.cancel(a);
}

TYPED_TEST(WheelDescriptors, ScheduleMovesATimerThatIsArmed) {
  Timer a(1);
  this->timers_.schedule_at(a, at(100ms));
  this->timers_.schedule_at(a, at(40ms));
  EXPECT_EQ(this->timers_.size(), 1U);
  EXPECT_EQ(this->timers_.readable_at(), at(40ms));
  this->timers_.schedule_at(a, at(60ms));
  EXPECT_EQ(this->timers_.dispatch_at(at(40ms), this->logging()), 0U);
  EXPECT_EQ(this->timers_.dispatch_at(at(60ms), this->logging()), 1U);
  EXPECT_EQ(this->timers_.dispatch_at(at(200ms), this->logging()), 0U);
  EXPECT_EQ(this->timers_.readable_at(), std::nullopt);
}

TYPED_TEST(WheelDescriptors, ATimerThatIsDestroyedIsCancelled) {
  {
    Timer gone(1);
    this->timers_.schedule_at(gone, at(100ms));
  }
  EXPECT_TRUE(this->timers_.empty());
  EXPECT_EQ(this->timers_.dispatch_at(at(100ms), this->logging()), 0U);
  EXPECT_EQ(this->timers_.readable_at(), std::nullopt) << "it does not wake the loop for ever";
  EXPECT_EQ(left(this->timers_.descriptor()), 0ns);
}

TYPED_TEST(WheelDescriptors, DuringADispatchTheKernelIsToldOnceAtItsEnd) {
  Timer a(1);
  Timer b(2);
  this->timers_.schedule_at(a, at(10ms));
  this->timers_.dispatch_at(at(10ms), [&](TimerNode&) {
    const auto before = this->timers_.readable_at();
    this->timers_.schedule_at(b, at(11ms));
    this->timers_.reschedule_at(b, at(12ms));
    EXPECT_EQ(this->timers_.readable_at(), before);
  });
  EXPECT_GT(this->timers_.readable_at(), at(10ms));
  EXPECT_LE(this->timers_.readable_at(), at(12ms));
  this->timers_.cancel(b);
}

TYPED_TEST(WheelDescriptors, TimersThatTheLimitLeavesKeepTheDescriptorReadable) {
  std::array<Timer, 5> several;
  for (Timer& timer : several) this->timers_.schedule_at(timer, at(1ms));
  EXPECT_EQ(this->timers_.dispatch_at(at(5ms), this->logging(), 3), 3U);
  EXPECT_TRUE(readable(this->timers_.descriptor(), 10s)) << "the steady clock is far beyond 5 ms";
  EXPECT_EQ(this->timers_.dispatch_at(at(5ms), this->logging(), 3), 2U);
  EXPECT_FALSE(readable(this->timers_.descriptor()));
}

TYPED_TEST(WheelDescriptors, ACallbackThatThrowsLosesNothing) {
  std::array<Timer, 3> several;
  for (Timer& timer : several) this->timers_.schedule_at(timer, at(1ms));
  EXPECT_THROW(
      this->timers_.dispatch_at(at(5ms), [](TimerNode&) { throw std::runtime_error("callback"); }),
      std::runtime_error);
  EXPECT_TRUE(readable(this->timers_.descriptor(), 10s));
  EXPECT_EQ(this->timers_.dispatch_at(at(5ms), this->logging()), 2U);
}

TYPED_TEST(WheelDescriptors, TimeDoesNotGoBack) {
  Timer a(1);
  this->timers_.dispatch_at(at(100ms), this->logging());
  EXPECT_EQ(this->timers_.dispatch_at(at(50ms), this->logging()), 0U);
  this->timers_.schedule_at(a, at(120ms));
  EXPECT_EQ(this->timers_.dispatch_at(at(120ms), this->logging()), 1U);
}

// Compares the wheel with a map of deadlines: no timer fires early, none is forgotten, and a loop
// that sleeps until readable_at() is never late.
TYPED_TEST(WheelDescriptors, RandomHistories) {
  for (const std::uint64_t seed : seeds(30)) {
    SCOPED_TRACE(replay_with(seed));
    std::mt19937_64 random(seed);
    const nanoseconds tick(1 + random() % 3'000'000);
    const auto in_ticks = [&](nanoseconds time) {
      return (time.count() + tick.count() - 1) / tick.count();
    };
    nanoseconds now(random() % 1'000'000'000'000);
    WheelDescriptor<TypeParam> timers(tick, at(now));
    std::vector<Timer> nodes(40);
    std::map<Timer*, nanoseconds> pending;
    for (int step = 0; step < 600; ++step) {
      Timer& timer = nodes[random() % nodes.size()];
      const nanoseconds time = now + nanoseconds(random() % (std::uint64_t{1} << (random() % 34)));
      switch (random() % 4) {
        case 0:
          timers.reschedule_at(timer, at(time));
          pending[&timer] = time;
          break;
        case 1:
          ASSERT_EQ(timers.cancel(timer), pending.erase(&timer) == 1);
          break;
        default: {
          // Time passes as in a loop: until readable_at(), or by a random step.
          const auto wake = timers.readable_at();
          if (wake && *wake > at(now) && random() % 2 == 0) {
            now = wake->time_since_epoch();
          } else {
            now += nanoseconds(random() % (std::uint64_t{1} << (random() % 32)));
          }
          timers.dispatch_at(at(now), [&](TimerNode& node) {
            const auto it = pending.find(&static_cast<Timer&>(node));
            ASSERT_NE(it, pending.end());
            EXPECT_LE(it->second, now) << "early";
            pending.erase(it);
          });
          for (const auto& [late, due] : pending) {
            EXPECT_GT(in_ticks(due), now / tick) << "was due";
            EXPECT_LE(timers.readable_at(), at(in_ticks(due) * tick)) << "would be slept past";
          }
        }
      }
      ASSERT_FALSE(this->HasFailure()) << "in step " << step;
    }
    timers.clear([](TimerNode&) {});
  }
}

TEST(WheelDescriptor, SlackSharesWakeUps) {
  WheelDescriptor<> timers(1ms, at(0s));
  std::array<Timer, 3> several;
  timers.schedule_at(several[0], at(1001ms), 100ms);
  timers.schedule_at(several[1], at(1010ms), 100ms);
  timers.schedule_at(several[2], at(1020ms), 100ms);
  EXPECT_EQ(timers.readable_at(), at(1024ms));
  int fired = 0;
  timers.dispatch_at(at(1024ms), [&](TimerNode&) { ++fired; });
  EXPECT_EQ(fired, 3);
}

TEST(WheelDescriptor, ATickOfZeroIsRefused) {
  EXPECT_THROW(WheelDescriptor<>(0ns), std::invalid_argument);
}

TEST(WheelDescriptor, WorksInAUsersEpollLoopAlsoEdgeTriggered) {
  for (const std::uint32_t mode : {0U, static_cast<std::uint32_t>(EPOLLET)}) {
    WheelDescriptor<> timers(100us);
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN | mode, .data = {.fd = timers.descriptor()}};
    ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, timers.descriptor(), &event), 0);
    std::vector<Timer> nodes(200);
    std::vector<steady_clock::time_point> due(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].id = static_cast<int>(i);
      due[i] = steady_clock::now() + std::chrono::microseconds(i * 7919 % 20'000);
      timers.schedule_at(nodes[i], due[i]);
    }
    std::size_t fired = 0;
    int turns = 0;
    while (fired < nodes.size()) {
      epoll_event ready{};
      ASSERT_EQ(::epoll_wait(epoll, &ready, 1, 10'000), 1) << "slept past a timer";
      ++turns;
      fired += timers.dispatch(
          [&](TimerNode& node) {
            EXPECT_GE(steady_clock::now(),
                      due[static_cast<std::size_t>(static_cast<Timer&>(node).id)])
                << "early";
          },
          50);
    }
    EXPECT_LE(turns, 400);
    ::close(epoll);
  }
}

}  // namespace
}  // namespace carillon::testing
