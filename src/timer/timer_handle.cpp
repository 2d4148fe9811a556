#include "carillon/timer/timer_handle.h"

#include <memory>

#include "carillon/timer/detail/timer_block.h"
#include "timer/forks.h"
#include "timer/timer_core.h"
#include "timer/timer_shard.h"

namespace carillon {

using detail::Phase;
using detail::TimerKind;
using detail::TimerWord;

TimerHandle::TimerHandle(detail::TimerBlock& block, std::uint32_t generation) noexcept
    : block_(&block), generation_(generation), forks_(detail::fork_count()) {}

bool TimerHandle::is_of_parent() const noexcept {
  return forks_ != detail::fork_count();
}

bool TimerHandle::cancel() const noexcept {
  if (block_ == nullptr) return false;
  // The thread that was moving the timer does not go on here.
  if (is_of_parent() && block_->word.phase(generation_) == Phase::kMoving) return false;
  const TimerWord::Cancel won = block_->word.cancel(generation_);
  if (won == TimerWord::Cancel::kLost) return false;
  if (won == TimerWord::Cancel::kWonRunning) return true;
  // The shard first: the task's destructor may take long, or stop the service, which waits for the
  // note. The block last: another thread may wait for the end of the destructor.
  const bool held = won == TimerWord::Cancel::kWonElsewhere || !block_->shard->remove(*block_);
  detail::destroy_cancelled_task(*block_);
  if (!held || block_->word.let_go_of_task()) finish_block(*block_);
  return true;
}

bool TimerHandle::cancel_and_wait() const noexcept {
  const bool won = cancel();
  if (block_ != nullptr && !is_of_parent() && !detail::running_here(*block_))
    block_->word.wait_for_end_of_task(generation_);
  return won;
}

bool TimerHandle::move_by(std::int64_t delay) const {
  if (block_ == nullptr || is_of_parent()) return false;
  switch (block_->word.begin_move(generation_)) {
    case TimerWord::Move::kLost:
      if (detail::RunFrame* run = detail::periodic_run_here(*block_, generation_)) {
        run->next = detail::add_ns(run->core.now_on(block_->kind), delay);
        return true;
      }
      return false;
    case TimerWord::Move::kAnother:
      return true;
    case TimerWord::Move::kMoving:
      break;
  }
  detail::TimerCore& core = block_->shard->core();
  const TimerKind kind = block_->kind;
  if (core.is_on_machine_clock()) {
    end_move(detail::add_ns(core.now_on(kind), delay));
    return true;
  }
  // Other threads wait for the end of a move, so a clock of the user's, which may take long, is
  // asked between two moves. The service may be destroyed meanwhile.
  const std::shared_ptr<detail::TimerCore> held = core.shared_from_this();
  static_cast<void>(block_->word.end_move(false));
  const std::int64_t now = core.now_on(kind);
  const TimerWord::Move move = block_->word.begin_move(generation_);
  if (move == TimerWord::Move::kMoving) end_move(detail::add_ns(now, delay));
  return move != TimerWord::Move::kLost;
}

bool TimerHandle::move_to(std::int64_t time, bool on_wall_clock) const {
  if (block_ == nullptr || is_of_parent()) return false;
  const TimerWord::Move move = block_->word.begin_move(
      generation_, on_wall_clock ? TimerWord::Clock::kWall : TimerWord::Clock::kSteady);
  if (move == TimerWord::Move::kMoving) end_move(time);
  if (move != TimerWord::Move::kLost) return true;
  detail::RunFrame* run = detail::periodic_run_here(*block_, generation_);
  if (run == nullptr || on_wall_clock != (block_->kind == TimerKind::kWall)) return false;
  run->next = time;
  return true;
}

void TimerHandle::end_move(std::int64_t deadline) const noexcept {
  const bool earlier = deadline < block_->deadline.load(std::memory_order_relaxed);
  block_->deadline.store(deadline, std::memory_order_release);
  detail::TimerShard& shard = *block_->shard;
  if (block_->word.end_move(earlier)) shard.submit_again(*block_);
}

bool TimerHandle::get_due(Due& due) const noexcept {
  if (block_ == nullptr) return false;
  const TimerWord::Look seen = block_->word.look(generation_);
  if (seen.phase != Phase::kArmed && seen.phase != Phase::kMoving && seen.phase != Phase::kQueued)
    return false;
  due = {block_->deadline.load(std::memory_order_acquire), seen.on_wall};
  // If the generation is over by now, the deadline may be that of another timer.
  return block_->word.look(generation_).phase != Phase::kFree;
}

TimerState TimerHandle::state() const noexcept {
  if (block_ == nullptr) return TimerState::kOver;
  switch (block_->word.phase(generation_)) {
    case Phase::kArmed:
    case Phase::kMoving:
      return TimerState::kPending;
    case Phase::kQueued:
      return TimerState::kDue;
    case Phase::kRunning:
      return TimerState::kRunning;
    default:
      return TimerState::kOver;
  }
}

}  // namespace carillon
