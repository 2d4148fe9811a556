#include "deadlines.h"

#include <pthread.h>
#include <time.h>

#include <utility>

namespace rpc {
namespace {

double read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

TimerDeadlines::TimerDeadlines(std::shared_ptr<carillon::TimerClock> clock)
    : clock_(std::move(clock)), timers_({.clock = clock_, .name = "rpc-timers"}) {}

void TimerDeadlines::start(OnDue on_due) {
  on_due_ = std::move(on_due);
  timers_.schedule_after(std::chrono::seconds(0), [this] {
    clockid_t clock{};
    if (::pthread_getcpuclockid(::pthread_self(), &clock) == 0) thread_clock_ = clock;
  });
}

void TimerDeadlines::stop() {
  static_cast<void>(timers_.stop());
}

void TimerDeadlines::set(Call& call) {
  try {
    call.timer = timers_.schedule_at(call.due, [this, id = call.id] { on_due_(id); });
  } catch (const carillon::TimersStopped&) {
    // After stop() there is no on_due, as in the other design.
  }
}

void TimerDeadlines::cancel(Call& call) noexcept {
  call.timer.cancel();
}

double TimerDeadlines::thread_cpu_seconds() const {
  return read_clock(thread_clock_);
}

ScanDeadlines::ScanDeadlines(PendingCalls& calls, std::chrono::milliseconds every,
                             std::shared_ptr<carillon::TimerClock> clock)
    : calls_(calls), every_(every), clock_(std::move(clock)) {}

void ScanDeadlines::start(OnDue on_due) {
  on_due_ = std::move(on_due);
  if (every_.count() > 0) thread_ = std::thread([this] { run(); });
}

void ScanDeadlines::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  stopping_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ScanDeadlines::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    lock.unlock();
    scan();
    lock.lock();
    stopping_.wait_for(lock, every_, [this] { return stopped_; });
  }
}

void ScanDeadlines::scan() {
  const carillon::SteadyTime now = clock_->now();
  due_.clear();
  calls_.for_each([&](const Call& call) {
    if (call.due <= now) due_.push_back(call.id);
  });
  for (const std::uint64_t id : due_) on_due_(id);
}

double ScanDeadlines::thread_cpu_seconds() const {
  clockid_t clock{};
  if (::pthread_getcpuclockid(thread_.native_handle(), &clock) != 0) return 0;
  return read_clock(clock);
}

}  // namespace rpc
