#include "carillon/timer/manual_clock.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "timer/timer_core.h"

namespace carillon {

using std::chrono::nanoseconds;

// The alarms share it, and may outlive the clock.
struct ManualClock::State {
  explicit State(SteadyTime start, WallTime wall_start)
      : steady(start.time_since_epoch().count()), wall(wall_start.time_since_epoch().count()) {}

  std::atomic<std::int64_t> steady;  // read without the mutex; changed under it
  std::atomic<std::int64_t> wall;

  std::mutex mutex;  // protects the following
  std::vector<ManualAlarm*> alarms;
  // For timer threads that sleep: the time has changed, or an alarm was woken.
  std::condition_variable moved;
  // For threads that move the time: a timer thread has fallen asleep, or has ended.
  std::condition_variable asleep;

  bool all_sleep() const noexcept;
  std::int64_t next_alarm() const noexcept;
  void move_to(std::unique_lock<std::mutex>& lock, std::int64_t target);
  void wait_until_all_sleep(std::unique_lock<std::mutex>& lock);
};

class ManualClock::ManualAlarm final : public TimerAlarm {
 public:
  explicit ManualAlarm(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~ManualAlarm() override { close(); }

  void open() override {
    const std::lock_guard lock(state_->mutex);
    state_->alarms.push_back(this);
  }

  void sleep_until(SteadyTime steady, WallTime wall) override {
    std::unique_lock lock(state_->mutex);
    steady_ = steady.time_since_epoch().count();
    wall_ = wall.time_since_epoch().count();
    asleep_ = true;
    wall_was_set_ = false;
    state_->asleep.notify_all();
    state_->moved.wait(lock, [this] { return must_wake(); });
    asleep_ = false;
    woken_ = false;
  }

  void await_wake(SteadyTime /*steady*/, WallTime /*wall*/) override {
    std::unique_lock lock(state_->mutex);
    state_->moved.wait(lock, [this] { return woken_; });
    woken_ = false;
  }

  void wake() noexcept override {
    {
      const std::lock_guard lock(state_->mutex);
      woken_ = true;
    }
    state_->moved.notify_all();
  }

  void close() noexcept override {
    {
      const std::lock_guard lock(state_->mutex);
      std::erase(state_->alarms, this);
    }
    state_->asleep.notify_all();
  }

  // REQUIRES of the following: the state's mutex is held.
  bool sleeps() const noexcept { return asleep_ && !must_wake(); }
  bool must_wake() const noexcept {
    // An alarm for ever does not go off at the end of time either.
    return woken_ || (steady_ != detail::kForever && steady_ <= state_->steady) ||
           (wall_ != detail::kForever && (wall_ <= state_->wall || wall_was_set_));
  }
  void wall_clock_was_set() noexcept { wall_was_set_ = true; }
  // The time of the alarm on the steady clock, if the wall clock is not set until then.
  std::int64_t next() const noexcept {
    if (wall_ == detail::kForever) return steady_;
    return std::min(steady_, detail::add_ns(state_->steady, detail::sub_ns(wall_, state_->wall)));
  }

 private:
  const std::shared_ptr<State> state_;
  // Protected by the state's mutex.
  std::int64_t steady_ = detail::kForever;
  std::int64_t wall_ = detail::kForever;
  bool asleep_ = false;
  bool woken_ = false;
  bool wall_was_set_ = false;
};

bool ManualClock::State::all_sleep() const noexcept {
  return std::all_of(alarms.begin(), alarms.end(),
                     [](const ManualAlarm* alarm) { return alarm->sleeps(); });
}

std::int64_t ManualClock::State::next_alarm() const noexcept {
  std::int64_t next = detail::kForever;
  for (const ManualAlarm* alarm : alarms) next = std::min(next, alarm->next());
  return next;
}

void ManualClock::State::wait_until_all_sleep(std::unique_lock<std::mutex>& lock) {
  if (detail::is_timer_thread()) {
    throw std::logic_error(
        "carillon: a ManualClock was moved from a timer thread, for which it would have to wait");
  }
  asleep.wait(lock, [this] { return all_sleep(); });
}

void ManualClock::State::move_to(std::unique_lock<std::mutex>& lock, std::int64_t target) {
  wait_until_all_sleep(lock);
  while (steady < target) {
    const std::int64_t step = std::min(next_alarm(), target) - steady;
    steady += step;
    wall = detail::add_ns(wall, step);
    moved.notify_all();
    wait_until_all_sleep(lock);
  }
}

ManualClock::ManualClock(Saturating<SteadyTime> steady, Saturating<WallTime> wall)
    : state_(std::make_shared<State>(steady, wall)) {}
ManualClock::~ManualClock() = default;

SteadyTime ManualClock::now() noexcept {
  return SteadyTime(nanoseconds(state_->steady.load()));
}
WallTime ManualClock::wall_now() noexcept {
  return WallTime(nanoseconds(state_->wall.load()));
}

std::unique_ptr<TimerAlarm> ManualClock::make_alarm() {
  return std::make_unique<ManualAlarm>(state_);
}

namespace {

void refuse_going_back(nanoseconds step) {
  if (step.count() >= 0) return;
  throw std::invalid_argument("carillon: a ManualClock was to advance by " +
                              std::to_string(step.count()) + " ns; time does not go back");
}

}  // namespace

void ManualClock::pass(Nanoseconds step) {
  refuse_going_back(step);
  {
    const std::lock_guard lock(state_->mutex);
    state_->steady = detail::add_ns(state_->steady, step.count());
    state_->wall = detail::add_ns(state_->wall, step.count());
  }
  state_->moved.notify_all();
}

void ManualClock::advance(Nanoseconds step) {
  refuse_going_back(step);
  std::unique_lock lock(state_->mutex);
  state_->move_to(lock, detail::add_ns(state_->steady, step.count()));
}

void ManualClock::set_wall(Saturating<WallTime> wall) {
  std::unique_lock lock(state_->mutex);
  state_->wait_until_all_sleep(lock);
  state_->wall = wall.value().time_since_epoch().count();
  for (ManualAlarm* alarm : state_->alarms) alarm->wall_clock_was_set();
  state_->moved.notify_all();
  state_->wait_until_all_sleep(lock);
}

void ManualClock::settle() {
  std::unique_lock lock(state_->mutex);
  state_->wait_until_all_sleep(lock);
}

}  // namespace carillon
