// TimerBlock: everything that the service keeps about one timer, in two cache lines. It is also the
// note that a thread leaves about this timer at its shard's door (door.h).
//
// Blocks come from a pool of the whole process and go back to it. Their memory is never unmapped,
// so a handle may outlive its timer and its service.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "carillon/timer/detail/timer_word.h"
#include "carillon/timer/timer_executor.h"
#include "carillon/timer/timer_task.h"
#include "carillon/wheel/timer_node.h"

namespace carillon::detail {

class TimerShard;

// The clock that a timer's deadline is on, and so the wheel that it is in.
enum class TimerKind : std::uint8_t { kSteady, kWall };

enum class Repeat : std::uint8_t {
  kOnce,
  kSkip,
  kBurst,
  kDelay,
  kAfterRun,
  kCalendarSkip,
  kCalendarBurst
};

// Returns true if the next time comes from the task (TaskOps::next_time), and not from a period.
constexpr bool goes_by_calendar(Repeat repeat) noexcept {
  return repeat >= Repeat::kCalendarSkip;
}

// Until the timer is armed, all fields belong to the thread that schedules it. From then on
//   the node, counted, note_expected  belong to the thread inside the shard's door;
//   deadline    belongs to the thread that has begun to move the timer; any thread may read it;
//   next        belongs to the list of the block: a door's notes, due timers, or free blocks;
//   task, ops   belong to the thread that has won the timer;
//   and the others do not change.
struct alignas(64) TimerBlock : TimerNode {
  TimerWord word;
  std::atomic<std::int64_t> deadline{0};  // ns of its clock
  TimerBlock* next = nullptr;
  TimerShard* shard = nullptr;
  const TaskOps* ops = nullptr;
  TimerKind kind = TimerKind::kSteady;
  Repeat repeat = Repeat::kOnce;
  bool counted = false;        // among the shard's scheduled timers
  bool note_expected = false;  // it is in no wheel, and a note about it is on its way
  std::uint32_t executor = 0;  // ExecutorId; 0: the service's own

  TaskStorage task;
  std::int64_t period = 0;  // ns
  std::int64_t slack = 0;   // ns

  void destroy_task() noexcept {
    if (ops->destroy != nullptr) ops->destroy(task);
  }
};
static_assert(sizeof(TimerBlock) == 128);

// The pool. O(1); at most every 64th call takes a lock. acquire_block() throws std::bad_alloc.
// REQUIRES of release_block(): the timer has been finished, or was never armed.
TimerBlock& acquire_block();
void release_block(TimerBlock& block) noexcept;

// Ends a timer whose task is destroyed or taken.
inline void finish_block(TimerBlock& block) noexcept {
  if (block.word.finish() == TimerWord::End::kReuse) release_block(block);
}

// A block with a task, which goes back to the pool unless it is scheduled.
class NewTimer {
 public:
  template <class F>
  NewTimer(std::in_place_t, F&& callable) : block_(&acquire_block()) {
    try {
      if constexpr (kHasExecutor<std::decay_t<F>>) {
        block_->executor = callable.executor.number;
        block_->ops = &emplace_task(block_->task, std::forward<F>(callable).task);
      } else {
        block_->executor = 0;
        block_->ops = &emplace_task(block_->task, std::forward<F>(callable));
      }
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
    if (!retired_) release_block(*block_);
  }

  TimerBlock& block() noexcept { return *block_; }
  void scheduled() noexcept { block_ = nullptr; }
  // It was armed, and then refused.
  void refused() noexcept { retired_ = block_->word.finish() == TimerWord::End::kRetire; }

 private:
  TimerBlock* block_;
  bool retired_ = false;
};

}  // namespace carillon::detail
