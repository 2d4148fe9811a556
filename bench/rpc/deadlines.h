// Deadlines: tells a caller when the deadline of a pending call has passed. There are two designs,
// each with one thread:
//
//   TimerDeadlines   a carillon::TimerService: a timer per call, cancelled when the reply comes
//   ScanDeadlines    the design that it replaces, which Dubbo had before it took Netty's timer: a
//                    thread reads all pending calls, sleeps 30 ms, and begins again; the beginning
//                    and the end of a call cost nothing
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "carillon/timer/timer_clock.h"
#include "carillon/timer/timer_service.h"
#include "pending_calls.h"

namespace rpc {

class Deadlines {
 public:
  // Called on the one thread of these Deadlines, with the id of a call whose deadline has passed.
  // The call may have been taken meanwhile.
  using OnDue = std::function<void(std::uint64_t id)>;

  virtual ~Deadlines() = default;

  virtual void start(OnDue on_due) = 0;
  // When it returns, no on_due is running, and none will run.
  virtual void stop() = 0;

  // on_due will be called at call.due, not earlier. REQUIRES: no other thread can take the call
  // yet.
  virtual void set(Call& call) = 0;
  // Call it when the call has been taken.
  virtual void cancel(Call& call) noexcept = 0;

  virtual carillon::SteadyTime now() noexcept = 0;
  virtual double thread_cpu_seconds() const = 0;  // REQUIRES: started, not stopped
};

class TimerDeadlines final : public Deadlines {
 public:
  explicit TimerDeadlines(std::shared_ptr<carillon::TimerClock> clock = carillon::machine_clock());

  void start(OnDue on_due) override;
  void stop() override;
  void set(Call& call) override;
  void cancel(Call& call) noexcept override;
  carillon::SteadyTime now() noexcept override { return clock_->now(); }
  double thread_cpu_seconds() const override;

  carillon::TimerStats stats() const { return timers_.stats(); }

 private:
  const std::shared_ptr<carillon::TimerClock> clock_;
  OnDue on_due_;
  std::atomic<clockid_t> thread_clock_{};
  carillon::TimerService timers_;
};

class ScanDeadlines final : public Deadlines {
 public:
  static constexpr std::chrono::milliseconds kEvery{30};

  // If `every` is 0 there is no thread; the owner calls scan().
  explicit ScanDeadlines(PendingCalls& calls, std::chrono::milliseconds every = kEvery,
                         std::shared_ptr<carillon::TimerClock> clock = carillon::machine_clock());
  ~ScanDeadlines() override { stop(); }

  void start(OnDue on_due) override;
  void stop() override;
  void set(Call&) override {}
  void cancel(Call&) noexcept override {}
  carillon::SteadyTime now() noexcept override { return clock_->now(); }
  double thread_cpu_seconds() const override;

  void scan();

 private:
  void run();

  PendingCalls& calls_;
  const std::chrono::milliseconds every_;
  const std::shared_ptr<carillon::TimerClock> clock_;
  OnDue on_due_;
  std::vector<std::uint64_t> due_;  // used by the thread only
  mutable std::thread thread_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stopped_ = false;  // protected by mutex_
};

}  // namespace rpc
