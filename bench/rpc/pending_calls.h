// PendingCalls: the calls that have not ended yet, by request id; and Deadlines, which tells when
// the deadline of one has passed.
//
// A reply or the deadline takes a call out. The thread that takes it out has won it, and alone
// decides how the call goes on.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "carillon/timer/timer_service.h"

namespace rpc {

struct Line;

struct Call {
  Line* line = nullptr;
  std::chrono::nanoseconds timeout{0};
  std::uint64_t id = 0;         // names this attempt, or this pause between two; never used twice
  bool is_sent = false;         // else it is in a pause
  int attempt = 0;              // the first is 1
  carillon::SteadyTime due;     // the time-out, or the end of the pause
  carillon::TimerHandle timer;  // if there are timers
};
using CallPtr = std::unique_ptr<Call>;

// Thread-safe. Ids are divided among parts, each with a lock. There are enough parts that two
// threads seldom wait for each other, even if one of them visits all calls, a part at a time.
class PendingCalls {
 public:
  // Adds the call, and calls on_added(Call&) before another thread can take the call.
  template <class F>
  void add(CallPtr call, F&& on_added) {
    Part& part = part_of(call->id);
    const std::scoped_lock lock(part.mutex);
    Call& added = *call;
    part.calls.emplace(added.id, std::move(call));
    on_added(added);
  }

  // Takes the call out. Returns null if it is not there, or not `is_sent` although it must be.
  CallPtr take(std::uint64_t id, bool must_be_sent) {
    Part& part = part_of(id);
    const std::scoped_lock lock(part.mutex);
    const auto found = part.calls.find(id);
    if (found == part.calls.end() || (must_be_sent && !found->second->is_sent)) return nullptr;
    CallPtr call = std::move(found->second);
    part.calls.erase(found);
    return call;
  }

  // Calls visit(const Call&) for each call. `visit` must not call functions of this object.
  template <class F>
  void for_each(F&& visit) {
    for (Part& part : parts_) {
      const std::scoped_lock lock(part.mutex);
      for (const auto& [id, call] : part.calls) visit(std::as_const(*call));
    }
  }

 private:
  struct alignas(64) Part {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, CallPtr> calls;
  };
  Part& part_of(std::uint64_t id) { return parts_[id % parts_.size()]; }

  std::array<Part, 1024> parts_;
};

// There are two designs, each with one thread:
//   timers  a carillon::TimerService: a timer per call, cancelled when the reply comes
//   scan    the design that Dubbo had before it took Netty's timer: a thread reads all pending
//           calls, sleeps 30 ms, and begins again; the beginning and the end of a call cost nothing
class Deadlines {
 public:
  static constexpr std::chrono::milliseconds kScanEvery{30};

  // `on_due` is called on the one thread of these Deadlines, with the id of a call whose deadline
  // has passed, not earlier. The call may have been taken meanwhile.
  Deadlines(PendingCalls& calls, bool scan, std::function<void(std::uint64_t)> on_due)
      : calls_(calls), on_due_(std::move(on_due)) {
    if (scan) {
      scanner_ = std::thread([this] { run(); });
    } else {
      timers_.emplace(carillon::TimerOptions{.name = "rpc-timers"});
      timers_->schedule_after(std::chrono::seconds(0), [this] { note_thread(); });
    }
  }
  ~Deadlines() { stop(); }
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;

  // When it returns, no on_due is running, and none will run. REQUIRES: no call is pending.
  void stop() {
    stopped_ = true;
    if (timers_) static_cast<void>(timers_->stop());
    if (scanner_.joinable()) scanner_.join();
  }

  // REQUIRES: no other thread can take the call yet.
  void set(Call& call) {
    if (timers_) call.timer = timers_->schedule_at(call.due, [this, id = call.id] { on_due_(id); });
  }

  double thread_cpu_seconds() const {
    timespec time{};
    ::clock_gettime(thread_clock_, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }

 private:
  void note_thread() {
    clockid_t clock{};
    if (::pthread_getcpuclockid(::pthread_self(), &clock) == 0) thread_clock_ = clock;
  }

  void run() {
    note_thread();
    for (std::vector<std::uint64_t> due; !stopped_; due.clear()) {
      const carillon::SteadyTime now = carillon::machine_clock()->now();
      calls_.for_each([&](const Call& call) {
        if (call.due <= now) due.push_back(call.id);
      });
      for (const std::uint64_t id : due) on_due_(id);
      std::this_thread::sleep_for(kScanEvery);
    }
  }

  PendingCalls& calls_;
  const std::function<void(std::uint64_t)> on_due_;
  std::atomic<clockid_t> thread_clock_{};
  std::atomic<bool> stopped_{false};
  std::optional<carillon::TimerService> timers_;
  std::thread scanner_;
};

}  // namespace rpc
