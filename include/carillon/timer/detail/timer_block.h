// TimerBlock: all that the service keeps of one timer, in two cache lines.
//
// Blocks are taken from a pool of the whole process and given back to it, and their memory is never
// unmapped: so a handle may outlive its timer and its service.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "carillon/timer/detail/timer_word.h"
#include "carillon/timer/task.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

class TimerShard;

enum class TimerKind : std::uint8_t {
  kSteady,
  kWall
};  // which clock its deadline is on, and so which wheel it is in

enum class Repeat : std::uint8_t {
  kOnce,
  kSkip,
  kBurst,
  kDelay,
  kAfterRun,
  kCalendarSkip,
  kCalendarBurst
};

// Its next time comes from its task (TaskOps::next_time), and not from a period.
constexpr bool goes_by_calendar(Repeat repeat) noexcept {
  return repeat >= Repeat::kCalendarSkip;
}

// The fields belong to whoever schedules the timer, until it is armed; then
//   the node      to who is inside the shard's door
//   deadline      to who has begun to move the timer; anybody may read it
//   next          to the list that holds the block: a door's notes, a queue of due timers, the free blocks
//   task, ops     to who has won the timer
// and the rest does not change.
struct alignas(64) TimerBlock : TimerNode {
  TimerWord word;
  std::atomic<std::int64_t> deadline{0};  // ns of its clock
  TimerBlock* next = nullptr;
  TimerShard* shard = nullptr;
  const TaskOps* ops = nullptr;
  TimerKind kind = TimerKind::kSteady;
  Repeat repeat = Repeat::kOnce;
  bool counted = false;  // used inside the door: among the scheduled ones
  bool note_expected =
      false;  // used inside the door: it is in no wheel, and its note is on its way

  TaskStorage task;
  std::int64_t period = 0;  // ns
  std::int64_t slack = 0;   // ns

  void destroy_task() noexcept {
    if (ops->destroy != nullptr) ops->destroy(task);
  }
};
static_assert(sizeof(TimerBlock) == 128);

// The pool. O(1); every 64th call at most takes a lock. acquire: std::bad_alloc. What is released
// has been finished, or never armed.
TimerBlock& acquire_block();
void release_block(TimerBlock& block) noexcept;

// The end of a timer whose task is gone already: of one that ran, and of one that did not.
inline void finish_block(TimerBlock& block) noexcept {
  if (block.word.finish() == TimerWord::End::kReuse) release_block(block);
}
inline void finish_unrun_block(TimerBlock& block) noexcept {
  if (block.word.finish_unrun() == TimerWord::End::kReuse) release_block(block);
}

// A block that goes back to the pool unless it is scheduled.
class NewTimer {
 public:
  template <class F>
  NewTimer(std::in_place_t, F&& callable) : block_(&acquire_block()) {
    try {
      block_->ops = &emplace_task(block_->task, std::forward<F>(callable));
    } catch (...) {
      release_block(*block_);
      throw;
    }
  }
  NewTimer(const NewTimer&) = delete;
  NewTimer& operator=(const NewTimer&) = delete;
  ~NewTimer() {
    if (block_ == nullptr) return;
    block_->destroy_task();
    release_block(*block_);
  }

  TimerBlock& block() noexcept { return *block_; }
  void scheduled() noexcept { block_ = nullptr; }

 private:
  TimerBlock* block_;
};

}  // namespace carillon::detail
