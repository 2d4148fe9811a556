// Every interleaving of the whole protocol of a shard, timer words and door together: submit,
// cancel, move, collect and close. The steps are those of src/timer/timer_shard.cpp. The wheel is
// reduced to one flag per timer.
#include <gtest/gtest.h>

#include <cstdint>

#include "carillon/timer/detail/door.h"
#include "carillon/timer/detail/timer_word.h"
#include "timer/interleaving/finding.h"

namespace carillon::interleaving {
namespace {

using carillon::detail::Admission;
using carillon::detail::Phase;

constexpr std::int64_t kNow = 10;
constexpr std::int64_t kFar = 100;

template <class Twist>
struct Block {
  using Word = carillon::detail::BasicTimerWord<Model<Twist>>;

  Word word;
  ModelAtomic<std::int64_t, Twist> deadline{kFar};
  Plain<Block*> next;
  Plain<bool> in_wheel;
  Plain<bool> note_expected;
  Plain<int> task;  // 1: exists; 0: destroyed; 2: of another timer
  std::uint32_t generation = 0;
  bool accepted = false;
  int fired = 0;
  int cancelled = 0;
  int returned = 0;
  int refused = 0;
  int freed = 0;

  void destroy_task() {
    require(task == 1, "a task was destroyed twice");
    task = 0;
  }
  void free() {
    static_cast<void>(word.finish());
    require(!in_wheel, "a timer was freed in its wheel");
    task = 2;  // the block belongs to another timer now
    ++freed;
  }
};

// Steps that closing may leave out, to show that the search finds that.
enum class Closing { kAsIs, kWithoutAwaitingNotes, kWithoutReadingTheLastNotes };

template <class Twist, Closing kClosing>
struct Shard {
  using B = Block<Twist>;
  using Word = typename B::Word;

  carillon::detail::Door<B, Model<Twist>> door;
  B visit;
  ModelAtomic<bool, Twist> handed_over{false};
  Plain<int> expected_notes;
  Plain<bool> gone;  // the service has been destroyed
  B* blocks[2] = {};

  // --- any thread
  void submit(B& block) {
    block.task = 1;
    block.generation = block.word.arm(false);
    switch (door.enter_or_post(block)) {
      case Admission::kShut:
        static_cast<void>(block.word.finish());
        ++block.refused;
        return;
      case Admission::kPosted:
        block.accepted = true;
        return;
      case Admission::kEntered:
        break;
    }
    block.accepted = true;
    block.word.enter_by_oneself();
    place(block);
    leave();
  }
  void cancel(B& block) {
    switch (block.word.cancel(block.generation)) {
      case Word::Cancel::kWonInWheel:
        ++block.cancelled;
        require(!gone, "a cancelled timer's shard is gone");
        if (door.enter_or_post(block) == Admission::kPosted) {
          block.destroy_task();
          if (block.word.let_go_of_task()) block.free();
          return;
        }
        note_has_come(block);
        block.in_wheel = false;
        leave();
        block.destroy_task();
        return block.free();
      case Word::Cancel::kWonElsewhere:
        ++block.cancelled;
        block.destroy_task();
        if (block.word.let_go_of_task()) block.free();
        return;
      default:
        return;
    }
  }
  void move_to(B& block, std::int64_t time) {
    if (block.word.begin_move(block.generation) != Word::Move::kMoving) return;
    const bool earlier = time < block.deadline.load(std::memory_order_relaxed);
    block.deadline.store(time, std::memory_order_release);
    if (!block.word.end_move(earlier)) return;
    require(!gone, "a moved timer's shard is gone");
    switch (door.enter_or_post(block)) {
      case Admission::kShut:
        return require(false, "the shard was shut before a note had come");
      case Admission::kPosted:
        return;
      case Admission::kEntered:
        break;
    }
    read_note(block);
    leave();
  }

  // --- inside
  void leave() {
    while (B* oldest = door.leave()) {
      if (!read_notes(oldest)) continue;
      handed_over.store(true, std::memory_order_release);
      return;
    }
  }
  bool read_notes(B* oldest) {
    bool visited = false;
    while (oldest != nullptr) {
      B& block = *oldest;
      oldest = block.next;
      if (&block == &visit) {
        visited = true;
      } else {
        read_note(block);
      }
    }
    return visited;
  }
  void read_note(B& block) {
    note_has_come(block);
    if (block.word.take_note() == Phase::kCancelled) {
      block.in_wheel = false;
      if (block.word.let_go_as_holder()) block.free();
    } else {
      place(block);
    }
  }
  void place(B& block) {
    static_cast<void>(block.deadline.load(std::memory_order_acquire));
    block.in_wheel = true;
  }
  void expect_note(B& block) {
    block.note_expected = true;
    expected_notes = expected_notes + 1;
  }
  void note_has_come(B& block) {
    if (!block.note_expected) return;
    block.note_expected = false;
    expected_notes = expected_notes - 1;
  }

  // --- the timer thread
  void enter() {
    if (door.enter_or_post(visit) == Admission::kEntered) return;
    while (!handed_over.load(std::memory_order_acquire)) Model<Twist>::yield();
    handed_over.store(false, std::memory_order_relaxed);
  }
  void collect() {
    enter();
    B* due[2] = {};
    for (int i = 0; i < 2; ++i) {
      B* block = blocks[i];
      if (block == nullptr || !block->in_wheel) continue;
      switch (block->word.claim(
          [&] { return block->deadline.load(std::memory_order_acquire) <= kNow; })) {
        case Word::Claim::kDue:
          block->in_wheel = false;
          due[i] = block;
          break;
        case Word::Claim::kLater:
        case Word::Claim::kMoving:
          break;  // it is placed again: its flag stays
        case Word::Claim::kPosted:
          block->in_wheel = false;
          expect_note(*block);
          break;
      }
    }
    leave();
    for (B* block : due) {
      if (block != nullptr) run(*block);
    }
  }
  void run(B& block) {
    if (!block.word.start()) {
      if (block.word.let_go_as_holder()) block.free();
      return;
    }
    require(block.deadline.load(std::memory_order_relaxed) <= kNow,
            "it fired at a time that it was moved from");
    ++block.fired;
    block.destroy_task();
    static_cast<void>(block.word.finish());
    block.task = 2;
    ++block.freed;
  }
  void close() {
    enter();
    for (;;) {
      for (;;) {
        static_cast<void>(read_notes(door.take_notes()));
        for (B* block : blocks) {
          if (block != nullptr && block->in_wheel) take_back(*block);
        }
        if (kClosing == Closing::kWithoutAwaitingNotes || expected_notes == 0) break;
        // A thread that yields waits for a new store to the atomic that it read last. That must be
        // the atomic of the door.
        if (B* oldest = door.take_notes()) {
          static_cast<void>(read_notes(oldest));
        } else {
          Model<Twist>::yield();
        }
      }
      B* oldest = door.shut();
      if (oldest == nullptr) break;
      if (kClosing != Closing::kWithoutReadingTheLastNotes) static_cast<void>(read_notes(oldest));
    }
    gone = true;
  }
  void take_back(B& block) {
    block.in_wheel = false;
    switch (block.word.take_back()) {
      case Word::TakeBack::kTaken:
        ++block.returned;
        block.destroy_task();
        return block.free();
      case Word::TakeBack::kPosted:
        return expect_note(block);
      case Word::TakeBack::kLost:
        return;
    }
  }
};

template <class Twist, Closing kClosing>
struct World {
  static constexpr int kThreads = 3;
  Shard<Twist, kClosing> shard;
  Block<Twist> old;    // in the wheel from the start
  Block<Twist> fresh;  // scheduled by a thread, or not at all

  World() {
    shard.submit(old);
    shard.blocks[0] = &old;
    shard.blocks[1] = &fresh;
  }
  void at_end() {
    check(old);
    if (fresh.accepted || fresh.refused > 0) check(fresh);
  }
  void check(Block<Twist>& block) {
    require(block.fired + block.cancelled + block.returned + block.refused == 1,
            "a timer has not exactly one end");
    require(block.freed == 1 - block.refused, "a timer was not freed once");
  }
};

// A timer is cancelled and moved to earlier, while the timer thread collects what is due, and then
// closes.
template <class Twist = Faithful, Closing kClosing = Closing::kAsIs>
struct CancelMoveCollectClose : World<Twist, kClosing> {
  void run(int thread) {
    if (thread == 0) this->shard.cancel(this->old);
    if (thread == 1) this->shard.move_to(this->old, 5);
    if (thread == 2) {
      this->shard.collect();
      this->shard.close();
    }
  }
};

TEST(InterleavingShard, CancelVersusMoveToEarlierVersusCollectAndClose) {
  expect_no_fault<CancelMoveCollectClose<>>();
}

// A timer that is due is cancelled and moved to later.
template <class Twist = Faithful>
struct DueCancelMoveLater : World<Twist, Closing::kAsIs> {
  DueCancelMoveLater() { this->old.deadline.store(5, std::memory_order_relaxed); }
  void run(int thread) {
    if (thread == 0) this->shard.cancel(this->old);
    if (thread == 1) this->shard.move_to(this->old, kFar);
    if (thread == 2) {
      this->shard.collect();
      this->shard.close();
    }
  }
};

TEST(InterleavingShard, CancelOfADueTimerVersusMoveToLaterVersusCollectAndClose) {
  expect_no_fault<DueCancelMoveLater<>>();
}

// Two threads move a timer to earlier. A timer must never have two notes.
template <class Twist = Faithful>
struct TwoMovesToEarlier : World<Twist, Closing::kAsIs> {
  void run(int thread) {
    if (thread == 0) this->shard.move_to(this->old, 50);
    if (thread == 1) this->shard.move_to(this->old, 5);
    if (thread == 2) {
      this->shard.collect();
      this->shard.close();
    }
  }
};

TEST(InterleavingShard, TwoMovesToEarlierVersusCollectAndClose) {
  expect_no_fault<TwoMovesToEarlier<>>();
}

// One thread schedules a timer, the second cancels another, and the third closes.
template <class Twist = Faithful, Closing kClosing = Closing::kAsIs>
struct SubmitVersusStop : World<Twist, kClosing> {
  void run(int thread) {
    if (thread == 0) this->shard.submit(this->fresh);
    if (thread == 1) this->shard.cancel(this->old);
    if (thread == 2) this->shard.close();
  }
};

// One thread schedules a timer and cancels it, while another closes.
template <class Twist = Faithful>
struct SubmitAndCancelVersusStop : World<Twist, Closing::kAsIs> {
  static constexpr int kThreads = 2;
  void run(int thread) {
    if (thread == 1) return this->shard.close();
    this->shard.submit(this->fresh);
    if (this->fresh.accepted) this->shard.cancel(this->fresh);
  }
};

TEST(InterleavingShard, SubmitAndCancelVersusStop_RefusedCancelledOrReturned) {
  expect_no_fault<SubmitVersusStop<>>();
  expect_no_fault<SubmitAndCancelVersusStop<>>();
}

// --- the search finds what is broken on purpose

TEST(InterleavingShard, Broken_ClosingThatDoesNotAwaitNotesIsFound) {
  EXPECT_NE((explore<CancelMoveCollectClose<Faithful, Closing::kWithoutAwaitingNotes>>().fault),
            "");
}

TEST(InterleavingShard, Broken_ClosingThatDropsTheLastNotesIsFound) {
  EXPECT_NE((explore<SubmitVersusStop<Faithful, Closing::kWithoutReadingTheLastNotes>>().fault),
            "");
}

TEST(InterleavingShard, Broken_AtomicsAreFound) {
  EXPECT_NE(explore<CancelMoveCollectClose<WithSplitSwaps>>().fault, "");
  EXPECT_NE(explore<CancelMoveCollectClose<WithoutRelease>>().fault, "");
  EXPECT_NE(explore<CancelMoveCollectClose<WithoutAcquire>>().fault, "");
  EXPECT_NE(explore<SubmitVersusStop<WithoutRelease>>().fault, "");
}

}  // namespace
}  // namespace carillon::interleaving
