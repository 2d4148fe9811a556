#include "timer/timer_shard.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "carillon/wheel/slack.h"
#include "timer/timer_core.h"

namespace carillon::detail {
namespace {

// A deadline before all others: the timer thread must look whatever it sleeps until.
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
  // Outside, so that the timer thread finds the door open when it comes. (The service lives on: it
  // is being called.)
  const std::int64_t call_for = std::exchange(call_for_, kForever);
  leave();
  if (call_for != kForever) core_.call_timer_thread(call_for);
  return true;
}

void TimerShard::remove(TimerBlock& block) noexcept {
  if (door_.enter_or_post(block) == Admission::kPosted) return;
  // Never shut: a shard is not shut before the notes of all timers cancelled in its wheel have
  // come, this one's too.
  note_has_come(block);
  forget(block);
  finish_unrun_block(block);
  leave();
}

bool TimerShard::bring(TimerBlock& block) noexcept {
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
    if (read_notes(oldest)) {
      // The door stays closed: the timer thread, which waits outside, is inside now. Nothing of the
      // shard may be touched after this.
      handed_over_.store(true, std::memory_order_release);
      return;
    }
    // Others leave notes as fast as they are read, and who reads them has other things to do.
    if (++notes == kManyNotes) {
      crowded_.store(true, std::memory_order_seq_cst);
      core_.call_timer_thread(kAtOnce);
    }
  }
}

// True: the timer thread is among those who left notes.
bool TimerShard::read_notes(TimerBlock* oldest) noexcept {
  bool visited = false;
  while (oldest != nullptr) {
    TimerBlock& block = *oldest;
    oldest = block.next;
    if (oldest != nullptr) __builtin_prefetch(oldest, 1);
    if (&block == &visit_) {
      visited = true;
    } else {
      read_note(block);
    }
  }
  if (!visited) call_timer_thread();
  return visited;
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

// A timer that is in no wheel any more, and that somebody is about to bring or to take out: until
// then the shard must not go away.
void TimerShard::await_note(TimerBlock& block) noexcept {
  block.awaited = true;
  ++awaited_;
}

void TimerShard::note_has_come(TimerBlock& block) noexcept {
  if (!block.awaited) return;
  block.awaited = false;
  --awaited_;
}

void TimerShard::count_in(TimerBlock& block) noexcept {
  block.counted = true;
  add_one(scheduled_);
  core_.timer_begun(block);
}

void TimerShard::end_cancelled(TimerBlock& block) noexcept {
  forget(block);
  if (block.word.let_go_of_place()) finish_unrun_block(block);
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

TimerModel& TimerShard::wheel(TimerKind kind) {
  auto& wheel = wheels_[index(kind)];
  if (wheel == nullptr)
    wheel = core_.options().model(core_.scale().at(core_.read_clocks().of(kind)));
  return *wheel;
}

void TimerShard::place(TimerBlock& block) {
  const TickScale& scale = core_.scale();
  Tick tick = scale.not_before(block.deadline.load(std::memory_order_acquire));
  if (block.slack > 0) tick = relaxed_expiry(tick, static_cast<Tick>(block.slack / scale.tick()));
  place_at(block, tick);
}

void TimerShard::place_at(TimerBlock& block, Tick tick) {
  wheel(block.kind).place(block, tick);
  const std::int64_t begin = core_.scale().begin(tick);
  auto& earliest = earliest_[index(block.kind)];
  if (begin >= earliest.load(std::memory_order_relaxed)) return;
  earliest.store(
      begin,
      std::
          memory_order_seq_cst);  // SleepGate: published before the timer thread is asked whether it sleeps
  // What the timer thread sleeps until is told on the steady clock: with a deadline on the wall
  // clock it had better look itself.
  call_for_ = block.kind == TimerKind::kSteady ? std::min(call_for_, begin) : kAtOnce;
}

// Memory has run out: the timer is tried again tick by tick. That is better than losing it, and
// nobody is there to be told.
void TimerShard::place_or_park(TimerBlock& block) noexcept {
  try {
    place(
        block);  // by the deadline of this moment: who moves it to earlier from here on brings it again
  } catch (...) {
    if (!block.word.keep_as_note()) return await_note(block);
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

void TimerShard::enter() noexcept {
  if (door_.enter_or_post(visit_) == Admission::kEntered) return;
  // Who is inside reads the note when it leaves, within a fraction of a microsecond unless it is
  // preempted.
  while (!handed_over_.load(std::memory_order_acquire)) std::this_thread::yield();
  handed_over_.store(false, std::memory_order_relaxed);
}

void TimerShard::visit() noexcept {
  enter();
  crowded_.store(false, std::memory_order_relaxed);
  leave();
}

struct TimerShard::Collecting {
  TimerShard& shard;
  TimerModel& wheel;
  Tick to;
  std::int64_t now;
  BlockList& due;

  static void on_expire(void* context, TimerNode& node) {
    auto& self = *static_cast<Collecting*>(context);
    auto& block = static_cast<TimerBlock&>(node);
    const auto is_due = [&] { return block.deadline.load(std::memory_order_acquire) <= self.now; };
    switch (block.word.claim(is_due)) {
      case TimerWord::Claim::kDue:
        return self.due.push(block);
      case TimerWord::Claim::kLater:
        return self.shard.place_or_park(block);
      case TimerWord::Claim::kMoving:
        return self.shard.look_again(block, self.to + 1);
      case TimerWord::Claim::kPosted:
        return self.shard.await_note(block);
    }
  }
};

void TimerShard::look_again(TimerBlock& block, Tick tick) noexcept {
  try {
    place_at(block, tick);
  } catch (...) {
    block.word.keep_as_note() ? parked_.push(block) : await_note(block);
  }
}

bool TimerShard::collect(const ClockTimes& now, BlockList& due) {
  enter();
  crowded_.store(false, std::memory_order_relaxed);
  retry_parked();
  bool more = collect_kind(TimerKind::kSteady, now, due);
  more |= collect_kind(TimerKind::kWall, now, due);
  call_for_ = kForever;  // the timer thread looks at earliest() anyway
  leave();
  return more;
}

bool TimerShard::collect_kind(TimerKind kind, const ClockTimes& now, BlockList& due) {
  const TickScale& scale = core_.scale();
  Tick to = scale.at(now.of(kind));
  std::optional<Tick> next;
  bool retry = kind == TimerKind::kSteady && !parked_.empty();
  if (wheels_[index(kind)] != nullptr) {
    try {
      if (to < wheels_[index(kind)]->now()) {
        if (kind == TimerKind::kWall) {
          follow_wall_clock_back(to);
        } else {
          to = wheels_[index(kind)]
                   ->now();  // the wheel was made a moment ago, after the clocks had been read
        }
      }
      Collecting collecting{*this, *wheels_[index(kind)], to, now.of(kind), due};
      collecting.wheel.advance(to, Collecting::on_expire, &collecting, kFiredPerVisit);
    } catch (...) {  // no memory to move timers down a level: they are where they were
      retry = true;
    }
    next = wheels_[index(kind)]->next_wakeup();
  }
  const bool more = next.has_value() && *next <= to;
  std::int64_t earliest = next.has_value() ? scale.begin(*next) : kForever;
  if (retry)
    earliest = more ? add_ns(now.of(kind), scale.tick())
                    : std::min(earliest, add_ns(now.of(kind), scale.tick()));
  // Relaxed: the SleepGate is about deadlines that become earlier, and those are stored inside the
  // door as well.
  earliest_[index(kind)].store(earliest, std::memory_order_relaxed);
  return more && !retry;
}

// A wheel's time does not go back, so the timers move to a new wheel.
void TimerShard::follow_wall_clock_back(Tick to) {
  std::unique_ptr<TimerModel> ahead = core_.options().model(to);
  std::swap(ahead, wheels_[index(TimerKind::kWall)]);
  const auto move_over = [](void* shard, TimerNode& node) {
    static_cast<TimerShard*>(shard)->place_or_park(static_cast<TimerBlock&>(node));
  };
  ahead->clear(move_over, this);
}

bool TimerShard::recall_calendar_timers(const ClockTimes& now, BlockList& due) noexcept {
  enter();
  bool done = true;
  if (wheels_[index(TimerKind::kWall)] != nullptr) {
    struct Recalling {
      TimerShard& shard;
      Tick now;
      BlockList& due;
    } recalling{*this, core_.scale().at(now.wall), due};
    const auto look = [](void* context, TimerNode& node) {
      auto& [shard, tick, recalled] = *static_cast<Recalling*>(context);
      shard.recall(static_cast<TimerBlock&>(node), tick, recalled);
    };
    try {
      std::unique_ptr<TimerModel> ahead = core_.options().model(recalling.now);
      std::swap(ahead, wheels_[index(TimerKind::kWall)]);
      ahead->clear(look, &recalling);
    } catch (...) {
      done = false;
    }
  }
  call_for_ = kForever;  // the timer thread looks at earliest() anyway
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
      return await_note(block);
  }
}

void TimerShard::take_back(TimerBlock& block, BlockList& rest) noexcept {
  switch (block.word.take_back()) {
    case TimerWord::TakeBack::kTaken:
      return core_.take_back(block, rest);
    case TimerWord::TakeBack::kPosted:
      return await_note(block);
    case TimerWord::TakeBack::kLost:
      return;
  }
}

void TimerShard::close(BlockList& rest) noexcept {
  enter();
  for (;;) {
    do {
      read_notes(door_.take_notes());
      take_back_parked(rest);
      take_back_wheels(rest);
      if (awaited_ > 0)
        std::this_thread::
            yield();  // for a thread that is between winning a timer and leaving its note
    } while (awaited_ > 0);
    TimerBlock* oldest = door_.shut();
    if (oldest == nullptr) return;
    read_notes(oldest);
  }
}

void TimerShard::take_back_wheels(BlockList& rest) noexcept {
  struct Closing {
    TimerShard& shard;
    BlockList& rest;
  } closing{*this, rest};
  const auto sink = [](void* context, TimerNode& node) {
    auto& [shard, unprocessed] = *static_cast<Closing*>(context);
    shard.take_back(static_cast<TimerBlock&>(node), unprocessed);
  };
  for (auto& wheel : wheels_) {
    if (wheel != nullptr) wheel->clear(sink, &closing);
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
