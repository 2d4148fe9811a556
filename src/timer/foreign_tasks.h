// ForeignTasks: the due timers that are with the user's executor. It is why no task begins after
// TimerService::stop(), though the executor may keep DueTasks for as long as it likes.
//
//   const auto place = tasks.add(block);             // the timer thread hands a timer over
//   ...
//   TimerBlock* const block = tasks.begin(place);    // any thread
//   if (block == nullptr) return;                    // stop() has taken the timer back
//   ... run it, or let go of it ...
//   tasks.end();
//   ...
//   BlockList rest = tasks.close();                  // stop(): from here on nothing begins
//   tasks.await(0);                                  // and nothing is running
//
// Thread safety: all methods may be called by any thread.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>

#include "timer/block_list.h"

namespace carillon::detail {

class ForeignTasks {
 public:
  using Place = std::list<TimerBlock*>::iterator;

  // A timer is handed over. Returns nothing if tasks are closed: the block is the caller's. Throws
  // std::bad_alloc.
  std::optional<Place> add(TimerBlock& block) {
    const std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    return waiting_.insert(waiting_.end(), &block);
  }

  // Takes the timer that was handed over. The caller runs it or drops it, and then calls end().
  // Returns null if close() has come first: the caller must not call end() then.
  TimerBlock* begin(Place place) noexcept {
    const std::lock_guard lock(mutex_);
    if (closed_) return nullptr;
    TimerBlock* const block = *place;
    waiting_.erase(place);
    ++running_;
    return block;
  }
  void end() noexcept {
    const std::lock_guard lock(mutex_);
    --running_;
    if (closed_) ended_.notify_all();
  }

  // Returns the timers that were handed over and have not begun.
  BlockList close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    BlockList rest;
    for (TimerBlock* block : waiting_) rest.push(*block);
    waiting_.clear();
    return rest;
  }

  // Waits until no more than `own` of them are running: those that the calling thread is inside of.
  void await(unsigned own) noexcept {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this, own] { return running_ <= own; });
  }

 private:
  std::mutex mutex_;  // protects the following
  std::condition_variable ended_;
  std::list<TimerBlock*> waiting_;
  unsigned running_ = 0;
  bool closed_ = false;
};

}  // namespace carillon::detail
