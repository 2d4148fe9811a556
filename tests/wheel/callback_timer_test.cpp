// CallbackTimer and MemberTimer: timers of several kinds on one wheel.
#include "carillon/wheel/callback_timer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "carillon/wheel/hierarchical_wheel.h"
#include "carillon/wheel/kafka_wheel.h"
#include "wheel/allocations.h"

namespace carillon::testing {
namespace {

struct Session {
  explicit Session(HierarchicalWheel<>& its_wheel) : wheel(its_wheel) {}

  void on_idle() { log += "idle "; }
  void send_ping() noexcept {
    log += "ping ";
    wheel.schedule_after(ping, 10);
  }

  HierarchicalWheel<>& wheel;
  std::string log;
  MemberTimer<&Session::on_idle> idle{*this};
  MemberTimer<&Session::send_ping> ping{*this};
};

TEST(CallbackTimers, TimersOfSeveralKindsShareOneWheel) {
  HierarchicalWheel<> wheel;
  Session session(wheel);
  CallbackTimer report([&] { session.log += "report "; });
  wheel.schedule(session.idle, Moment{30});
  wheel.schedule(session.ping, Moment{10});
  wheel.schedule(report, Moment{25});
  EXPECT_EQ(wheel.advance(30, call_timer), 5U);
  EXPECT_EQ(session.log, "ping ping report idle ping ");
  EXPECT_TRUE(session.ping.armed());
}

TEST(CallbackTimers, OtherModelsTakeThemToo) {
  KafkaWheel wheel;
  int calls = 0;
  CallbackTimer timer([&] { ++calls; });
  wheel.schedule(timer, Moment{1000});
  wheel.advance(999, call_timer);
  EXPECT_EQ(calls, 0);
  wheel.advance(1000, call_timer);
  EXPECT_EQ(calls, 1);
}

TEST(CallbackTimers, ACallbackMayScheduleItsOwnTimer) {
  HierarchicalWheel<> wheel;
  std::vector<Tick> seen;
  struct Every {
    HierarchicalWheel<>& wheel;
    std::vector<Tick>& seen;
    CallbackTimer timer{[this] {
      seen.push_back(wheel.now());
      wheel.schedule_after(timer, 5);
    }};
  } every{wheel, seen};
  wheel.schedule(every.timer, Moment{5});
  wheel.advance(20, call_timer);
  EXPECT_EQ(seen, (std::vector<Tick>{5, 10, 15, 20}));
}

TEST(CallbackTimers, ACallbackMayDestroyItsOwnTimerAndOthers) {
  HierarchicalWheel<> wheel;
  std::unique_ptr<CallbackTimer> own, other;
  own = std::make_unique<CallbackTimer>([&] {
    other.reset();
    own.reset();
  });
  other = std::make_unique<CallbackTimer>([] { FAIL() << "it was destroyed"; });
  wheel.schedule(*own, Moment{1});
  wheel.schedule(*other, Moment{1});
  EXPECT_EQ(wheel.advance(1, call_timer), 1U);
  EXPECT_TRUE(wheel.empty());
}

TEST(CallbackTimers, AnExceptionLeavesAdvanceAndTheRestFiresInTheNextCall) {
  HierarchicalWheel<> wheel;
  int calls = 0;
  CallbackTimer bad([] { throw std::runtime_error("bad"); });
  CallbackTimer good([&] { ++calls; });
  wheel.schedule(bad, Moment{1});
  wheel.schedule(good, Moment{1});
  EXPECT_THROW(wheel.advance(1, call_timer), std::runtime_error);
  EXPECT_EQ(calls, 0);
  wheel.advance(1, call_timer);
  EXPECT_EQ(calls, 1);
}

TEST(CallbackTimers, TheCallableDiesWithTheTimer) {
  const auto owned = std::make_shared<int>(7);
  {
    const CallbackTimer timer([owned] {});
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(CallbackTimers, NothingIsAllocated) {
  HierarchicalWheel<> wheel;
  wheel.reserve(2);
  int calls = 0;
  const std::size_t before = allocations();
  {
    CallbackTimer first([&, a = 1L, b = 2L, c = 3L] { calls += static_cast<int>(a + b + c); });
    CallbackTimer second([&] { ++calls; });
    wheel.schedule(first, Moment{1});
    wheel.schedule(second, Moment{2});
    wheel.advance(2, call_timer);
  }
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(calls, 7);
}

TEST(CallbackTimers, AStdFunctionFits) {
  HierarchicalWheel<> wheel;
  int calls = 0;
  const std::function<void()> count = [&] { ++calls; };
  CallbackTimer timer(count);
  wheel.schedule(timer, Moment{1});
  wheel.advance(1, call_timer);
  EXPECT_EQ(calls, 1);
}

static_assert(!std::is_copy_constructible_v<CallbackTimer>);
static_assert(!std::is_constructible_v<CallbackTimer, int>, "an int cannot be called");

template <std::size_t kBytes>
struct Large {
  std::array<char, kBytes> bytes;
  void operator()() const {}
};
static_assert(std::is_constructible_v<CallbackTimer, Large<32>>);
static_assert(!std::is_constructible_v<CallbackTimer, Large<33>>, "it does not fit");
struct alignas(32) Strict : Large<32> {};
static_assert(!std::is_constructible_v<CallbackTimer, Strict>, "it is aligned too strictly");
static_assert(sizeof(MemberTimer<&Session::on_idle>) == 32);

}  // namespace
}  // namespace carillon::testing
