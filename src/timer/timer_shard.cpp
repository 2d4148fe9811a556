#include "timer/timer_shard.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "carillon/wheel/slack.h"
#include "timer/timer_core.h"

namespace carillon::detail {
namespace {

// A deadline before all others: the timer thread wakes for it, whatever it sleeps until.
constexpr std::int64_t kAtOnce = -kForever;

}  // namespace

TimerShard::TimerShard(TimerCore& core) noexcept : core_(core) {}

// --- any thread

bool TimerShard::submit(TimerBlock& block) {
  switch (door_.enter_or_post(block)) {
    case Admission::kShut:
      return false;
    case Admission::kPosted:
      return true;
    case Admission::kEntered:
      break;
  }
  block.word.enter_by_oneself();
  try {
    place(block);
  } catch (...) {
    leave();
    throw;
  }
  count_in(block);
  // The timer thread is woken after leave(), so that it finds the door open when it comes. As soon
  // as this thread has left, the timer may run, and its task may destroy the service: so the core
  // is held.
  std::shared_ptr<TimerCore> sleeping;
  if (core_.must_wake_timer_thread(std::exchange(call_for_, kForever)))
    sleeping = core_.shared_from_this();
  leave();
  if (sleeping != nullptr) sleeping->wake_timer_thread();
  return true;
}

bool TimerShard::remove(TimerBlock& block) noexcept {
  if (door_.enter_or_post(block) == Admission::kPosted) return false;
  // Not kShut: a shard is shut only when the notes of all timers that were cancelled in its wheel
  // have come, this timer's note too.
  note_has_come(block);
  forget(block);
  leave();
  return true;
}

bool TimerShard::submit_again(TimerBlock& block) noexcept {
  switch (door_.enter_or_post(block)) {
    case Admission::kShut:
      return false;
    case Admission::kPosted:
      return true;
    case Admission::kEntered:
      break;
  }
  read_note(block);
  call_timer_thread();
  leave();
  return true;
}

// --- inside the door

void TimerShard::leave() noexcept {
  unsigned notes = 0;
  while (TimerBlock* oldest = door_.leave()) {
    if (read_notes(oldest)) return hand_over();
    // If other threads leave notes as fast as this one reads them, the timer thread takes over:
    // this thread has other things to do.
    if (++notes == kManyNotes) {
      crowded_.store(true, std::memory_order_seq_cst);
      core_.call_timer_thread(kAtOnce);
    }
  }
}

// The door stays closed: the timer thread is inside from here on. It may close the service at once,
// so nothing of the shard is touched after that, and the core is held until the thread is called.
void TimerShard::hand_over() noexcept {
  const std::shared_ptr<TimerCore> core = core_.shared_from_this();
  handed_over_.store(true, std::memory_order_seq_cst);
  core->call_timer_thread(kAtOnce);
}

// Returns true if the timer thread's note is among these.
bool TimerShard::read_notes(TimerBlock* oldest) noexcept {
  bool timer_thread_waits = false;
  while (oldest != nullptr) {
    TimerBlock& block = *oldest;
    oldest = block.next;
    if (oldest != nullptr) __builtin_prefetch(oldest, 1);
    if (&block == &timer_thread_note_) {
      timer_thread_waits = true;
    } else {
      read_note(block);
    }
  }
  if (!timer_thread_waits) call_timer_thread();
  return timer_thread_waits;
}

void TimerShard::read_note(TimerBlock& block) noexcept {
  note_has_come(block);
  if (!block.counted) count_in(block);
  if (block.word.take_note() == Phase::kCancelled) {
    end_cancelled(block);
  } else {
    place_or_park(block);
  }
}

// For a timer that has left its wheel while another thread is about to leave a note about it. Until
// that note has come, the shard must not go away: close() waits for it.
void TimerShard::expect_note(TimerBlock& block) noexcept {
  block.note_expected = true;
  ++expected_notes_;
}

void TimerShard::note_has_come(TimerBlock& block) noexcept {
  if (!block.note_expected) return;
  block.note_expected = false;
  if (--expected_notes_ > 0 || !closing_) return;
  crowded_.store(true, std::memory_order_seq_cst);
  core_.call_timer_thread(kAtOnce);
}

void TimerShard::count_in(TimerBlock& block) noexcept {
  block.counted = true;
  add_one(scheduled_);
  core_.timer_begun(block);
}

void TimerShard::end_cancelled(TimerBlock& block) noexcept {
  forget(block);
  if (block.word.let_go_as_holder()) finish_block(block);
}

void TimerShard::forget(TimerBlock& block) noexcept {
  if (block.armed()) wheels_[index(block.kind)]->cancel(block);
  core_.timer_ended(block);
  add_one(cancelled_);
  core_.timer_counted();
}

void TimerShard::call_timer_thread() noexcept {
  const std::int64_t call_for = std::exchange(call_for_, kForever);
  if (call_for != kForever) core_.call_timer_thread(call_for);
}

TimerShard::Wheel& TimerShard::wheel(TimerKind kind) {
  std::unique_ptr<Wheel>& wheel = wheels_[index(kind)];
  if (wheel == nullptr) [[unlikely]]
    wheel = std::make_unique<Wheel>(core_.scale().at(core_.read_clocks().of(kind)));
  return *wheel;
}

void TimerShard::place(TimerBlock& block) {
  const TickScale& scale = core_.scale();
  Tick tick = scale.not_before(block.deadline.load(std::memory_order_acquire));
  if (block.slack > 0) tick = relaxed_expiry(tick, static_cast<Tick>(block.slack / scale.tick()));
  place_at(block, tick);
}

void TimerShard::place_at(TimerBlock& block, Tick tick) {
  wheel(block.kind).reschedule(block, Moment{tick});
  const std::int64_t begin = core_.scale().begin(tick);
  auto& earliest = earliest_[index(block.kind)];
  if (begin >= earliest.load(std::memory_order_relaxed)) return;
  // SleepGate: the deadline is published before the gate is asked whether the timer thread sleeps.
  earliest.store(begin, std::memory_order_seq_cst);
  // The gate compares deadlines on the steady clock only. For a deadline on the wall clock the
  // timer thread wakes and looks.
  call_for_ = block.kind == TimerKind::kSteady ? std::min(call_for_, begin) : kAtOnce;
}

// If there is no memory, the timer is tried again tick by tick. Its scheduling has succeeded, so
// there is nobody to tell, and it must not be lost.
void TimerShard::place_or_park(TimerBlock& block) noexcept {
  try {
    // By the deadline of this moment: a thread that moves the timer to earlier after this submits
    // it again.
    place(block);
  } catch (...) {
    if (!block.word.keep_as_note()) return expect_note(block);
    parked_.push(block);
    auto& earliest = earliest_[index(TimerKind::kSteady)];
    const std::int64_t soon = add_ns(core_.read_clocks().steady, core_.scale().tick());
    if (soon >= earliest.load(std::memory_order_relaxed)) return;
    earliest.store(soon, std::memory_order_seq_cst);
    call_for_ = std::min(call_for_, soon);
  }
}

void TimerShard::retry_parked() noexcept {
  BlockList parked = std::exchange(parked_, BlockList{});
  while (!parked.empty()) read_note(parked.pop());
}

// --- the timer thread

// Returns true if the timer thread is inside, and false if it awaits the shard.
bool TimerShard::enter() noexcept {
  if (!note_left_ && door_.enter_or_post(timer_thread_note_) == Admission::kEntered) return true;
  note_left_ = true;
  // The thread inside leaves within a fraction of a microsecond, unless it is preempted.
  for (unsigned tries = 0; !handed_over_.load(std::memory_order_acquire); ++tries) {
    if (tries == kTriesToEnter) return false;
    std::this_thread::yield();
  }
  handed_over_.store(false, std::memory_order_relaxed);
  note_left_ = false;
  return true;
}

bool TimerShard::visit() noexcept {
  if (!enter()) return false;
  crowded_.store(false, std::memory_order_relaxed);
  leave();
  return true;
}

struct TimerShard::Collecting {
  TimerShard& shard;
  Tick to;
  std::int64_t now;
  BlockList& due;

  void operator()(TimerNode& node) const {
    auto& block = static_cast<TimerBlock&>(node);
    const auto is_due = [&] { return block.deadline.load(std::memory_order_acquire) <= now; };
    switch (block.word.claim(is_due)) {
      case TimerWord::Claim::kDue:
        return due.push(block);
      case TimerWord::Claim::kLater:
        return shard.place_or_park(block);
      case TimerWord::Claim::kMoving:
        return shard.look_again(block, to + 1);
      case TimerWord::Claim::kPosted:
        return shard.expect_note(block);
    }
  }
};

void TimerShard::look_again(TimerBlock& block, Tick tick) noexcept {
  try {
    place_at(block, tick);
  } catch (...) {
    block.word.keep_as_note() ? parked_.push(block) : expect_note(block);
  }
}

bool TimerShard::collect(const ClockTimes& now, BlockList& due) {
  if (!enter()) return false;
  crowded_.store(false, std::memory_order_relaxed);
  retry_parked();
  bool more = collect_kind(TimerKind::kSteady, now, due);
  more |= collect_kind(TimerKind::kWall, now, due);
  call_for_ = kForever;  // the timer thread reads earliest() anyway
  leave();
  return more;
}

bool TimerShard::collect_kind(TimerKind kind, const ClockTimes& now, BlockList& due) {
  const TickScale& scale = core_.scale();
  std::optional<Tick> next;
  bool retry = kind == TimerKind::kSteady && !parked_.empty();
  bool more = false;
  if (wheels_[index(kind)] != nullptr) {
    Tick to = scale.at(now.of(kind));
    try {
      if (to < wheels_[index(kind)]->now()) {
        if (kind == TimerKind::kWall) {
          const auto move = [this](TimerNode& node) {
            place_or_park(static_cast<TimerBlock&>(node));
          };
          move_to_new_wall_wheel(to, move);
        } else {
          // The wheel was made a moment ago, after the clocks had been read.
          to = wheels_[index(kind)]->now();
        }
      }
      wheels_[index(kind)]->advance(to, Collecting{*this, to, now.of(kind), due}, kFiredPerCollect);
    } catch (...) {  // no memory to move timers down a level: they are where they were
      retry = true;
    }
    next = wheels_[index(kind)]->next_wakeup();
    more = next.has_value() && *next <= to;
  }
  std::int64_t earliest = next.has_value() ? scale.begin(*next) : kForever;
  if (retry) {
    const std::int64_t soon = add_ns(now.of(kind), scale.tick());
    earliest = more ? soon : std::min(earliest, soon);
  }
  // Relaxed: the SleepGate is about deadlines that become earlier, and those are stored inside the
  // door as well.
  earliest_[index(kind)].store(earliest, std::memory_order_relaxed);
  return more && !retry;
}

// A wheel's time does not go back, so when the wall clock was set back, its timers go to a new
// wheel: calls sink(TimerNode&) for each of them. Throws std::bad_alloc, with nothing changed.
template <class Sink>
void TimerShard::move_to_new_wall_wheel(Tick now, Sink&& sink) {
  auto old_wheel = std::make_unique<Wheel>(now);
  std::swap(old_wheel, wheels_[index(TimerKind::kWall)]);
  old_wheel->clear(sink);
}

bool TimerShard::recall_calendar_timers(const ClockTimes& now, BlockList& due) noexcept {
  if (!enter()) return false;
  bool done = true;
  if (wheels_[index(TimerKind::kWall)] != nullptr) {
    const Tick tick = core_.scale().at(now.wall);
    const auto look = [&](TimerNode& node) { recall(static_cast<TimerBlock&>(node), tick, due); };
    try {
      move_to_new_wall_wheel(tick, look);
    } catch (...) {
      done = false;
    }
  }
  call_for_ = kForever;  // the timer thread reads earliest() anyway
  leave();
  return done;
}

void TimerShard::recall(TimerBlock& block, Tick now, BlockList& due) noexcept {
  if (!goes_by_calendar(block.repeat)) return place_or_park(block);
  switch (block.word.claim([] { return true; })) {
    case TimerWord::Claim::kDue:
      return due.push(block);
    case TimerWord::Claim::kLater:
    case TimerWord::Claim::kMoving:
      return look_again(block, now + 1);
    case TimerWord::Claim::kPosted:
      return expect_note(block);
  }
}

void TimerShard::take_back(TimerBlock& block, BlockList& rest) noexcept {
  switch (block.word.take_back()) {
    case TimerWord::TakeBack::kTaken:
      return core_.take_back(block, rest);
    case TimerWord::TakeBack::kPosted:
      return expect_note(block);
    case TimerWord::TakeBack::kLost:
      return;
  }
}

bool TimerShard::close(BlockList& rest) noexcept {
  if (!enter()) return false;
  crowded_.store(false, std::memory_order_relaxed);
  closing_ = true;
  for (;;) {
    read_notes(door_.take_notes());
    take_back_parked(rest);
    take_back_wheels(rest);
    if (expected_notes_ > 0) {  // a thread is between winning a timer and leaving its note
      leave();
      return false;
    }
    TimerBlock* oldest = door_.shut();
    if (oldest == nullptr) return true;
    read_notes(oldest);
  }
}

void TimerShard::take_back_wheels(BlockList& rest) noexcept {
  for (auto& wheel : wheels_) {
    if (wheel == nullptr) continue;
    wheel->clear([&](TimerNode& node) { take_back(static_cast<TimerBlock&>(node), rest); });
  }
}

void TimerShard::take_back_parked(BlockList& rest) noexcept {
  while (!parked_.empty()) {
    TimerBlock& block = parked_.pop();
    if (block.word.take_note() == Phase::kCancelled) {
      end_cancelled(block);
    } else {
      take_back(block, rest);
    }
  }
}

}  // namespace carillon::detail
