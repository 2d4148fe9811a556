// The service over other models than the default, and over one that runs out of memory, or is
// disturbed, at chosen moments.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "carillon/timer/manual_clock.h"
#include "carillon/timer/timer_service.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

// What a model does before it places a timer, while the thread that schedules is inside its shard's
// door. Whoever uses the service from in here finds the door taken.
std::function<void()> before_placing;  // NOLINT: a model is made by a function without context

class Disturbed {
 public:
  explicit Disturbed(Tick start_tick = 0) : wheel_(start_tick) {}
  void schedule(TimerNode& node, Tick expiry, Tick slack = 0) {
    reschedule(node, relaxed_expiry(expiry, slack));
  }
  bool cancel(TimerNode& node) noexcept { return wheel_.cancel(node); }
  void reschedule(TimerNode& node, Tick expiry) {
    if (auto disturb = std::exchange(before_placing, nullptr)) disturb();
    wheel_.reschedule(node, expiry);
  }
  template <class OnExpire>
  std::size_t advance(Tick to, OnExpire&& on_expire, std::size_t limit = kNoLimit) {
    return wheel_.advance(to, on_expire, limit);
  }
  std::optional<Tick> next_wakeup() const noexcept { return wheel_.next_wakeup(); }
  Tick now() const noexcept { return wheel_.now(); }
  std::size_t size() const noexcept { return wheel_.size(); }
  bool empty() const noexcept { return wheel_.empty(); }
  template <class Sink>
  void clear(Sink&& sink) {
    wheel_.clear(sink);
  }
  void check_invariants() const { wheel_.check_invariants(); }

 private:
  HierarchicalWheel<> wheel_;
};

class Model : public ::testing::Test {
 protected:
  void TearDown() override { before_placing = nullptr; }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  TimerService timers_{{.clock = clock_, .shards = 1, .model = timer_model<Disturbed>}};
  std::vector<std::string> log_;
};

TEST(Models, AnyTimerSetWillDo) {
  const auto clock = std::make_shared<ManualClock>();
  TimerService timers(
      {.clock = clock, .model = timer_model<HierarchicalWheel<BinaryDigits<2>, 16>>});
  std::vector<int> fired;
  for (const int ms : {500, 20, 7, 3000}) {
    timers.schedule_after(std::chrono::milliseconds(ms), [&fired, ms] { fired.push_back(ms); });
  }
  timers.schedule_after(1s, [] { FAIL(); }).cancel();
  clock->advance(10s);
  EXPECT_EQ(fired, (std::vector<int>{7, 20, 500, 3000}));
}

TEST_F(Model, H2_ATimerScheduledByNoteFiresInItsTurn) {
  before_placing = [&] {
    timers_.schedule_after(1s, [&] { log_.emplace_back("by note"); });
    timers_.schedule_after(500ms, [&] { log_.emplace_back("earlier, by note"); });
  };
  timers_.schedule_after(1s, [&] { log_.emplace_back("inside"); });
  EXPECT_EQ(timers_.pending(), 3U);
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"earlier, by note", "inside", "by note"}));
}

TEST_F(Model, H2_ATimerCancelledWhileItsNoteIsUnreadDoesNotFireAndItsTaskIsGoneAtOnce) {
  const auto captured = std::make_shared<int>(0);
  before_placing = [&] {
    TimerHandle handle = timers_.schedule_after(1s, [captured] { FAIL(); });
    EXPECT_EQ(captured.use_count(), 2);
    EXPECT_TRUE(handle.cancel());
    EXPECT_EQ(captured.use_count(), 1);
    EXPECT_FALSE(handle.cancel());
  };
  timers_.schedule_after(1s, [&] { log_.emplace_back("inside"); });
  EXPECT_EQ(timers_.pending(), 1U);
  EXPECT_EQ(timers_.stats().cancelled, 1U);
  clock_->advance(2s);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(Model, H2_ATimerInTheWheelIsCancelledByNote) {
  const auto captured = std::make_shared<int>(0);
  TimerHandle handle = timers_.schedule_after(1s, [captured] { FAIL(); });
  before_placing = [&] {
    EXPECT_TRUE(handle.cancel());
    EXPECT_EQ(captured.use_count(), 1);
  };
  timers_.schedule_after(3s, [] {});
  EXPECT_EQ(timers_.pending(), 1U);
  clock_->advance(2s);
  EXPECT_EQ(timers_.stats().cancelled, 1U);
}

TEST_F(Model, H2_ATimerMovedByNoteFiresAtItsNewTimeEvenIfMovedAgainOrCancelledBeforeTheNoteIsRead) {
  TimerHandle earlier = timers_.schedule_after(10s, [&] { log_.emplace_back("earlier"); });
  TimerHandle twice = timers_.schedule_after(10s, [&] { log_.emplace_back("twice"); });
  TimerHandle cancelled = timers_.schedule_after(10s, [&] { log_.emplace_back("cancelled"); });
  before_placing = [&] {
    EXPECT_TRUE(earlier.reschedule_after(1s));
    EXPECT_TRUE(twice.reschedule_after(1s));
    EXPECT_TRUE(twice.reschedule_after(2s));
    EXPECT_TRUE(cancelled.reschedule_after(1s));
    EXPECT_TRUE(cancelled.cancel());
  };
  timers_.schedule_after(1h, [] {});
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"earlier"}));
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"earlier", "twice"}));
  EXPECT_EQ(timers_.pending(), 1U);
}

// The wheel comes upon a timer whose cancelling is under way: it leaves it alone, and stop() does
// not wait for it for ever.
TEST_F(Model, H1_ATimerCancelledWhileTheWheelIsAtItsTickDoesNotFire) {
  TimerHandle moved = timers_.schedule_after(1s, [&] { log_.emplace_back("moved"); });
  TimerHandle cancelled = timers_.schedule_after(1s, [&] { log_.emplace_back("cancelled"); });
  TimerHandle brought = timers_.schedule_after(1s, [&] { log_.emplace_back("brought"); });
  EXPECT_TRUE(moved.reschedule_after(2s));
  clock_->settle();
  // The first timer of the tick is placed anew, inside the door; by then the others are still to
  // come.
  before_placing = [&] {
    EXPECT_TRUE(cancelled.cancel());
    EXPECT_TRUE(brought.reschedule_after(-1s));
  };
  clock_->advance(1s);
  EXPECT_EQ(log_, (std::vector<std::string>{"brought"}));
  EXPECT_EQ(timers_.stats().cancelled, 1U);
  EXPECT_EQ(timers_.stop().size(), 1U);
}

TEST_F(Model, StopReturnsWhatCameByNote) {
  before_placing = [&] { timers_.schedule_after(1s, [] {}); };
  timers_.schedule_after(1s, [] {});
  EXPECT_EQ(timers_.stop().size(), 2U);
}

TEST_F(Model, WithoutMemoryATimerIsRefusedAndNothingIsLeftBehind) {
  const auto captured = std::make_shared<int>(0);
  before_placing = [] { throw std::bad_alloc(); };
  EXPECT_THROW(timers_.schedule_after(1s, [captured] {}), std::bad_alloc);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(timers_.pending(), 0U);
  timers_.schedule_after(1s, [&] { log_.emplace_back("the next"); });
  clock_->advance(1s);
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(Model, WithoutMemoryForATimerThatWasAcceptedItIsTriedAgainAndNotLost) {
  before_placing = [&] {
    timers_.schedule_after(50ms, [&] { log_.emplace_back("accepted"); });
    before_placing = [] { throw std::bad_alloc(); };  // when its note is read
  };
  timers_.schedule_after(20ms, [&] { log_.emplace_back("inside"); });
  clock_->advance(20ms);
  EXPECT_EQ(log_, (std::vector<std::string>{"inside"}));
  clock_->advance(30ms);
  EXPECT_EQ(log_, (std::vector<std::string>{"inside", "accepted"}));
}

TEST_F(Model, ATimerThatWaitsForMemoryCanBeCancelledAndReturned) {
  std::vector<TimerHandle> handles;
  const auto accept_without_memory = [&] {
    before_placing = [&] {
      handles.push_back(timers_.schedule_after(1s, [] {}));
      before_placing = [] { throw std::bad_alloc(); };
    };
    timers_.schedule_after(1h, [] {});
  };
  accept_without_memory();
  EXPECT_TRUE(handles[0].cancel());
  clock_->advance(10ms);
  EXPECT_EQ(timers_.pending(), 1U);
  accept_without_memory();
  EXPECT_EQ(timers_.stop().size(), 3U);
}

}  // namespace
}  // namespace carillon::testing
