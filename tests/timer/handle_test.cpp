// Handles: how cancel_and_wait() waits, what ScopedTimer owns, remaining(), and hashes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "carillon/timer/detail/timer_block.h"
#include "carillon/timer/manual_clock.h"
#include "carillon/timer/scoped_timer.h"
#include "carillon/timer/timer_service.h"
#include "timer/allocations.h"

namespace carillon::testing {
namespace {

using namespace std::chrono_literals;

class Handles : public ::testing::Test {
 protected:
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::vector<DueTask> handed_over_;
};

// A task whose destructor calls a function.
class AtItsEnd {
 public:
  explicit AtItsEnd(std::function<void()> end) : end_(std::move(end)) {}
  AtItsEnd(AtItsEnd&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  AtItsEnd& operator=(AtItsEnd&&) = delete;
  ~AtItsEnd() {
    if (end_) end_();
  }
  void operator()() const noexcept {}

 private:
  std::function<void()> end_;
};

// --- cancel_and_wait()

// One thread cancels the timer, and is inside the task's destructor; another one waits.
void expect_that_it_waits_for_the_destructor(TimerService& timers, auto&& before_cancelling) {
  std::latch begun(1);
  std::atomic<bool> ended{false};
  TimerHandle handle = timers.schedule_after(1s, AtItsEnd([&] {
                                               begun.count_down();
                                               std::this_thread::sleep_for(50ms);
                                               ended = true;
                                             }));
  before_cancelling();
  std::jthread cancels([&] { EXPECT_TRUE(handle.cancel()); });
  begun.wait();
  EXPECT_FALSE(handle.cancel_and_wait());
  EXPECT_TRUE(ended) << "the task's destructor is still at work";
}

TEST_F(Handles, CancelAndWaitWaitsForTheDestructorOfATaskThatAnotherThreadCancels) {
  TimerService timers({.clock = clock_});
  expect_that_it_waits_for_the_destructor(timers, [] {});
}

TEST_F(Handles, CancelAndWaitWaitsForTheDestructorOfADueTaskThatAnotherThreadCancels) {
  TimerService timers({.executor = TimerExecutor::by(
                           [this](DueTask task) { handed_over_.push_back(std::move(task)); }),
                       .clock = clock_});
  expect_that_it_waits_for_the_destructor(timers, [this] { clock_->advance(1s); });
  EXPECT_EQ(handed_over_.size(), 1U) << "which nobody has called or dropped";
}

TEST_F(Handles, CancelAndWaitInsideTheDestructorOfItsOwnTaskReturnsAtOnce) {
  TimerService timers({.clock = clock_});
  TimerHandle handle;
  bool destroyed = false;
  handle = timers.schedule_after(1s, AtItsEnd([&] {
                                   EXPECT_FALSE(handle.cancel_and_wait());
                                   destroyed = true;
                                 }));
  EXPECT_TRUE(handle.cancel());
  EXPECT_TRUE(destroyed);
}

TEST_F(Handles, TheDestructorOfACancelledTaskMayStopTheService) {
  TimerService timers({.clock = clock_});
  timers.schedule_after(2s, [] {});
  std::size_t returned = 0;
  TimerHandle handle =
      timers.schedule_after(1s, AtItsEnd([&] { returned = timers.stop().size(); }));
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(returned, 1U);
}

// --- the ends of generations, and clocks

TEST_F(Handles, ARefusedTimerOnTheLastGenerationOfItsBlockRetiresTheBlock) {
  TimerService timers({.clock = clock_});
  detail::TimerBlock& block = detail::acquire_block();
  std::construct_at(&block.word, 0xffff'ffffU);
  detail::release_block(block);
  at_next_slab = [] { throw std::bad_alloc(); };
  EXPECT_THROW(timers.schedule_after(1h, [] {}), std::bad_alloc);  // it had that block
  detail::TimerBlock& next = detail::acquire_block();
  EXPECT_NE(&next, &block) << "a handle with generation 0 would be empty";
  detail::release_block(next);
}

TEST_F(Handles, AMoveOnTheWrongClockIsRefusedAlsoWhileAnotherMoveIsUnderWay) {
  using Word = detail::TimerWord;
  Word word;
  const auto generation = word.arm(false, true);
  EXPECT_EQ(word.begin_move(generation, Word::Clock::kSteady), Word::Move::kLost);
  EXPECT_EQ(word.begin_move(generation, Word::Clock::kWall), Word::Move::kMoving);
  EXPECT_EQ(word.begin_move(generation, Word::Clock::kSteady), Word::Move::kLost);
  EXPECT_EQ(word.begin_move(generation, Word::Clock::kWall), Word::Move::kAnother);
  EXPECT_EQ(word.begin_move(generation), Word::Move::kAnother);
}

// --- ScopedTimer

TEST_F(Handles, AScopedTimerCancelsAtItsEndAndWhenItGetsAnother) {
  TimerService timers({.clock = clock_});
  int fired = 0;
  {
    ScopedTimer first(timers.schedule_after(1s, [&] { fired += 1; }));
    first = timers.schedule_after(2s, [&] { fired += 10; });
    EXPECT_EQ(timers.pending(), 1U);
    clock_->advance(3s);
    EXPECT_EQ(fired, 10);
    first = timers.schedule_after(1s, [&] { fired += 100; });
  }
  EXPECT_EQ(timers.pending(), 0U);
  clock_->advance(3s);
  EXPECT_EQ(fired, 10);
}

TEST_F(Handles, AScopedTimerCanBeMovedAndReleased) {
  TimerService timers({.clock = clock_});
  int fired = 0;
  {
    ScopedTimer timer(timers.schedule_after(1s, [&] { ++fired; }));
    ScopedTimer moved = std::move(timer);
    EXPECT_TRUE(moved->reschedule_after(2s));
    ScopedTimer last;
    last = std::move(moved);
    EXPECT_EQ(last->state(), TimerState::kPending);
    EXPECT_EQ(last.release().state(), TimerState::kPending);
    EXPECT_FALSE(last.reset()) << "it owns nothing";
  }
  clock_->advance(2s);
  EXPECT_EQ(fired, 1);
}

TEST_F(Handles, AScopedTimerWaitsForTheTaskThatRuns) {
  TimerService timers;
  std::latch running(1);
  std::atomic<bool> ended{false};
  {
    ScopedTimer timer(timers.schedule_after(0ns, [&] {
      running.count_down();
      std::this_thread::sleep_for(20ms);
      ended = true;
    }));
    running.wait();
  }
  EXPECT_TRUE(ended);
}

TEST_F(Handles, AScopedTimerMayOutliveItsServiceAndEndInsideItsOwnTask) {
  ScopedTimer survivor;
  TimerService timers({.clock = clock_});
  std::optional<ScopedTimer> own;
  bool ran = false;
  own.emplace(timers.schedule_after(1s, [&] {
    own.reset();
    ran = true;
  }));
  clock_->advance(1s);
  EXPECT_TRUE(ran);
  {
    TimerService other({.clock = clock_});
    survivor = other.schedule_after(1s, [] {});
  }
  EXPECT_FALSE(survivor.reset());
}

// --- remaining() and hashes

TEST_F(Handles, RemainingCountsDownOnTheDeadlinesClock) {
  TimerService timers({.executor = TimerExecutor::by(
                           [this](DueTask task) { handed_over_.push_back(std::move(task)); }),
                       .clock = clock_});
  TimerHandle steady = timers.schedule_after(10s, [] {});
  TimerHandle wall = timers.schedule_at(clock_->wall_now() + 10s, [] {});
  clock_->advance(4s);
  EXPECT_EQ(timers.remaining(steady), 6s);
  clock_->set_wall(clock_->wall_now() - 1h);
  EXPECT_EQ(timers.remaining(steady), 6s);
  EXPECT_EQ(timers.remaining(wall), 1h + 6s);
  EXPECT_TRUE(steady.reschedule_after(20s));
  EXPECT_EQ(timers.remaining(steady), 20s);
  clock_->advance(21s);
  EXPECT_EQ(timers.remaining(steady), 0s) << "due, and not yet run";
  handed_over_.front()();
  EXPECT_EQ(timers.remaining(steady), std::nullopt);
  EXPECT_TRUE(wall.cancel());
  EXPECT_EQ(timers.remaining(wall), std::nullopt);
  EXPECT_EQ(timers.remaining(TimerHandle()), std::nullopt);
}

TEST_F(Handles, HandlesAreKeysOfUnorderedContainers) {
  TimerService timers({.clock = clock_});
  std::unordered_set<TimerHandle> handles;
  std::unordered_set<std::size_t> hashes;
  for (int i = 0; i < 1000; ++i) {
    TimerHandle handle = timers.schedule_after(1h, [] {});
    EXPECT_TRUE(handles.insert(handle).second);
    hashes.insert(std::hash<TimerHandle>()(handle));
    if (i % 2 == 0) handle.cancel();  // the next timer gets the same block
  }
  EXPECT_EQ(handles.size(), 1000U);
  EXPECT_GT(hashes.size(), 990U);
}

}  // namespace
}  // namespace carillon::testing
