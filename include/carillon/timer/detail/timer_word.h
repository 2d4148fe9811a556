// TimerWord: a timer's one atomic word {generation, moves, flags, phase}, and all its transitions.
//
//   kFree    --arm--> kArmed
//   kArmed   --begin_move--> kMoving --end_move--> kArmed
//   kArmed   --claim--> kQueued --start--> kRunning --finish--> kFree, of the next generation
//   kRunning --rearm--> kArmed                                  (periodic)
//   kRunning --end_periods--> kRunning, as a timer that is not periodic
//   kArmed, kQueued --cancel-----> kCancelled --finish--> kFree, of the next generation
//   kArmed, kQueued --take_back--> kReturned  --finish--> kFree, of the next generation
//
// A thread that makes a transition out of kArmed or kQueued has *won* the timer, and decides its
// end: so exactly one of firing, cancelling and returning it happens.
//
// Flags
//   kPosted      A note about this timer (door.h) has been left at its shard's door, or is about to
//                be. Until it is read, it decides about the timer: a wheel that meets the timer
//                leaves it alone. A timer never has two notes.
//   kTaskGone    Set on a cancelled timer when the cancelling thread has destroyed the task.
//   kHolderGone  Set on a cancelled timer when its holder (a note or a queue) has let go of it. The
//                thread that sets the second of these two flags frees the timer.
//   kPeriodic    The timer can be cancelled while it runs. That sets kEnding.
//   kEnding      The timer does not run again after this run.
//   kWaited      A thread waits for the end of the present run, or of the task's destructor.
//   kOnWall      The deadline is on the wall clock. It does not change.
//
// `moves` counts changes of the deadline. A thread that claims a timer reads the word, then the
// deadline, and then swaps the word. A move in between makes the swap fail, so a timer that was
// moved to later never fires at its old time.
//
// Generations make handles safe for ever: the memory of timers is never unmapped, each use of a
// timer gets the next generation, and no transition is possible with an earlier one. A word that
// has used up its 2^32 - 1 generations is retired.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "carillon/require.h"
#include "carillon/timer/detail/atomics.h"

namespace carillon::detail {

enum class Phase : std::uint8_t {
  kFree,
  kArmed,
  kMoving,
  kQueued,
  kRunning,
  kCancelled,
  kReturned
};

template <class Atomics = MachineAtomics>
class BasicTimerWord {
 public:
  using Generation = std::uint32_t;

  explicit BasicTimerWord(Generation generation = 1) noexcept
      : word_(of(generation, Phase::kFree)) {}

  Generation generation() const noexcept {
    return generation_of(word_.load(std::memory_order_relaxed));
  }
  // Returns true if it was finished, or never armed.
  bool is_free() const noexcept {
    return phase_of(word_.load(std::memory_order_relaxed)) == Phase::kFree;
  }
  // Returns the phase of that generation; kFree if it is over.
  Phase phase(Generation generation) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    return generation_of(word) == generation ? phase_of(word) : Phase::kFree;
  }

  // The same, with the clock of the deadline.
  struct Look {
    Phase phase;
    bool on_wall;
  };
  Look look(Generation generation) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    if (generation_of(word) != generation) return {Phase::kFree, false};
    return {phase_of(word), (word & kOnWall) != 0};
  }

  // --- scheduling
  //
  // REQUIRES: the caller has taken the timer from the free ones, so that no other thread makes
  // transitions.
  Generation arm(bool periodic, bool on_wall = false) noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    const Generation generation = generation_of(word);
    CARILLON_REQUIRE_DEBUG(phase_of(word) == Phase::kFree, phase_of(word), generation);
    word_.store(of(generation, Phase::kArmed) | kPosted | (periodic ? kPeriodic : 0) |
                    (on_wall ? kOnWall : 0),
                std::memory_order_relaxed);
    return generation;
  }
  // Clears kPosted, because the thread that schedules has entered the door and leaves no note.
  // REQUIRES: no other thread knows of this generation yet.
  void enter_by_oneself() noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    CARILLON_REQUIRE_DEBUG(phase_of(word) == Phase::kArmed && (word & kPosted) != 0, word);
    word_.store(word & ~kPosted, std::memory_order_relaxed);
  }

  // --- cancelling
  enum class Cancel {
    // The timer has fired, was cancelled, or was returned; or its generation is over.
    kLost,
    // Take the timer out of its wheel, destroy the task, and finish. If the door is taken: leave a
    // note, and go on as with kWonElsewhere.
    kWonInWheel,
    // Destroy the task, then call let_go_of_task(): a note or a queue holds the timer.
    kWonElsewhere,
    // The timer is periodic and running now; it ends after this run.
    kWonRunning,
  };
  Cancel cancel(Generation generation) noexcept {
    typename Atomics::Patience patience;
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      if (generation_of(word) != generation) return Cancel::kLost;
      switch (phase_of(word)) {
        case Phase::kArmed:
          if ((word & kPosted) == 0) {
            if (swap(word, with_phase(word, Phase::kCancelled) | kPosted))
              return Cancel::kWonInWheel;
          } else if (swap(word, with_phase(word, Phase::kCancelled))) {
            return Cancel::kWonElsewhere;
          }
          break;
        case Phase::kQueued:
          if (swap(word, with_phase(word, Phase::kCancelled))) return Cancel::kWonElsewhere;
          break;
        case Phase::kRunning:
          if ((word & kPeriodic) == 0 || (word & kEnding) != 0) return Cancel::kLost;
          if (swap(word, word | kEnding)) return Cancel::kWonRunning;
          break;
        case Phase::kMoving:  // lasts for a few instructions
          patience.wait();
          word = word_.load(std::memory_order_acquire);
          break;
        default:
          return Cancel::kLost;
      }
    }
  }
  // Both return true if the other side has let go already; the caller then finishes and frees the
  // timer.
  bool let_go_of_task() noexcept {
    const std::uint64_t old = word_.fetch_or(kTaskGone, std::memory_order_acq_rel);
    if ((old & kWaited) != 0) word_.notify_all();
    return (old & kHolderGone) != 0;
  }
  bool let_go_as_holder() noexcept {
    return (word_.fetch_or(kHolderGone, std::memory_order_acq_rel) & kTaskGone) != 0;
  }

  // --- moving the deadline
  enum class Move {
    // The timer is not pending, or it is on the other clock.
    kLost,
    // Until end_move(), only the caller may write the deadline.
    kMoving,
    // Another thread is moving the timer. The result is the same as if the caller's move had come
    // just before that one.
    kAnother,
  };
  enum class Clock { kAny, kSteady, kWall };
  Move begin_move(Generation generation, Clock clock = Clock::kAny) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      if (generation_of(word) != generation) return Move::kLost;
      const Clock own = (word & kOnWall) != 0 ? Clock::kWall : Clock::kSteady;
      if (clock != Clock::kAny && clock != own) return Move::kLost;
      if (phase_of(word) == Phase::kMoving) return Move::kAnother;
      if (phase_of(word) != Phase::kArmed) return Move::kLost;
      if (swap(word, with_phase(word, Phase::kMoving))) return Move::kMoving;
    }
  }
  // Returns true if the caller must submit the timer to its shard again. A timer that was moved to
  // later need not be: its wheel meets it at the old time, and places it anew.
  bool end_move(bool earlier) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const bool submit = earlier && (word & kPosted) == 0;
      if (swap(word, with_phase(next_move(word), Phase::kArmed) | (submit ? kPosted : 0)))
        return submit;
    }
  }

  // --- inside the shard's door

  // For a note that is being read. If it returns kCancelled: take the timer out of the wheel, and
  // call let_go_as_holder(). Otherwise (kArmed, kMoving): place it by its present deadline. A
  // thread that moves it to earlier after this finds kPosted cleared, and submits it again.
  Phase take_note() noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (phase_of(word) != Phase::kCancelled && !swap(word, word & ~kPosted)) {
    }
    return phase_of(word);
  }
  // For a timer that was taken from a wheel or a note, and cannot be placed now. Returns true if it
  // counts as a note that is still to be read; returns false if it was cancelled, and a note about
  // that will come.
  bool keep_as_note() noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (phase_of(word) == Phase::kArmed || phase_of(word) == Phase::kMoving) {
      if (swap(word, word | kPosted)) return true;
    }
    return false;
  }

  enum class Claim {
    kDue,     // the caller has won the timer; it is queued now
    kLater,   // it was moved to later: place it anew
    kMoving,  // another thread is moving it: try again at the next tick
    kPosted,  // it was moved to earlier or cancelled, and its note is on its way
  };
  // For a timer whose tick has come in the wheel. is_due() reads the deadline.
  template <class IsDue>
  Claim claim(IsDue&& is_due) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      if ((word & kPosted) != 0) return Claim::kPosted;
      if (phase_of(word) == Phase::kMoving) return Claim::kMoving;
      if (!is_due()) return Claim::kLater;
      if (swap(word, with_phase(word, Phase::kQueued))) return Claim::kDue;
    }
  }

  enum class TakeBack { kTaken, kPosted, kLost };
  // When the service stops. kTaken: the caller has won the timer, and finishes it. kPosted: a note
  // about it is on its way. kLost: another thread has won it.
  TakeBack take_back() noexcept { return take_back(kPosted); }
  // The same for a caller that could not leave the timer's note, because the door was shut.
  TakeBack take_back_with_note() noexcept { return take_back(0); }

  // --- running
  // Returns false if the timer was cancelled while it was queued; then call let_go_as_holder().
  bool start() noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (phase_of(word) == Phase::kQueued) {
      if (swap(word, with_phase(word, Phase::kRunning))) return true;
    }
    return false;
  }
  bool ending() const noexcept { return (word_.load(std::memory_order_relaxed) & kEnding) != 0; }

  enum class Rearm { kEnded, kArmed, kArmedWaited };
  // After a run of a periodic timer. kEnded: it was cancelled while it ran. Otherwise it is armed,
  // and the caller submits it to its shard again; with kArmedWaited it also calls notify().
  Rearm rearm() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      if ((word & kEnding) != 0) return Rearm::kEnded;
      const std::uint64_t armed = (with_phase(next_move(word), Phase::kArmed) & ~kWaited) | kPosted;
      if (swap(word, armed)) return (word & kWaited) != 0 ? Rearm::kArmedWaited : Rearm::kArmed;
    }
  }

  // For a periodic timer that has no next time: from here on it can no longer be cancelled. Returns
  // true if it was cancelled before.
  bool end_periods() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (!swap(word, word & ~kPeriodic)) {
    }
    return (word & kEnding) != 0;
  }

  enum class End { kReuse, kRetire };
  // Ends the generation. From here on no handle reaches the timer, and the caller may free it.
  // REQUIRES: the caller has won the timer, and nothing else holds it.
  End finish() noexcept {
    const Generation next = generation() + 1;  // 0 after the last one; no handle has 0
    const std::uint64_t old = word_.exchange(of(next, Phase::kFree), std::memory_order_acq_rel);
    CARILLON_REQUIRE(phase_of(old) != Phase::kFree && phase_of(old) != Phase::kMoving, old);
    if ((old & kWaited) != 0) word_.notify_all();
    return next == 0 ? End::kRetire : End::kReuse;
  }

  // Waits while that generation is running, or another thread has cancelled it and has not
  // destroyed its task yet.
  void wait_for_end_of_task(Generation generation) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    const auto is_in_use = [&] {
      return phase_of(word) == Phase::kRunning ||
             (phase_of(word) == Phase::kCancelled && (word & kTaskGone) == 0);
    };
    while (generation_of(word) == generation && is_in_use()) {
      if ((word & kWaited) != 0 || swap(word, word | kWaited)) {
        word_.wait(word | kWaited, std::memory_order_acquire);
        word = word_.load(std::memory_order_acquire);
      }
    }
  }
  void notify() noexcept { word_.notify_all(); }

 private:
  static constexpr std::uint64_t kPhase = 7;
  static constexpr std::uint64_t kPosted = 1U << 3;
  static constexpr std::uint64_t kTaskGone = 1U << 4;
  static constexpr std::uint64_t kHolderGone = 1U << 5;
  static constexpr std::uint64_t kPeriodic = 1U << 6;
  static constexpr std::uint64_t kEnding = 1U << 7;
  static constexpr std::uint64_t kWaited = 1U << 8;
  static constexpr std::uint64_t kOnWall = 1U << 9;
  static constexpr std::uint64_t kMove = 1U << 10;  // the lowest bit of `moves`
  static constexpr std::uint64_t kMoves = 0xffff'ffff - (kMove - 1);

  static constexpr std::uint64_t of(Generation generation, Phase phase) noexcept {
    return (std::uint64_t{generation} << 32) | static_cast<std::uint64_t>(phase);
  }
  static constexpr Generation generation_of(std::uint64_t word) noexcept {
    return static_cast<Generation>(word >> 32);
  }
  static constexpr Phase phase_of(std::uint64_t word) noexcept {
    return static_cast<Phase>(word & kPhase);
  }
  static constexpr std::uint64_t with_phase(std::uint64_t word, Phase phase) noexcept {
    return (word & ~kPhase) | static_cast<std::uint64_t>(phase);
  }
  static constexpr std::uint64_t next_move(std::uint64_t word) noexcept {
    return (word & ~kMoves) | ((word + kMove) & kMoves);
  }

  // Acquire and release: a thread that makes a transition sees everything that other threads did
  // before the earlier transitions.
  bool swap(std::uint64_t& expected, std::uint64_t desired) noexcept {
    return word_.compare_exchange_weak(expected, desired, std::memory_order_acq_rel,
                                       std::memory_order_acquire);
  }

  TakeBack take_back(std::uint64_t leave_if) noexcept {
    typename Atomics::Patience patience;
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      if (phase_of(word) == Phase::kMoving) {
        patience.wait();
        word = word_.load(std::memory_order_acquire);
        continue;
      }
      if ((word & leave_if) != 0) return TakeBack::kPosted;
      if (phase_of(word) != Phase::kArmed && phase_of(word) != Phase::kQueued)
        return TakeBack::kLost;
      if (swap(word, with_phase(word, Phase::kReturned))) return TakeBack::kTaken;
    }
  }

  typename Atomics::template Atomic<std::uint64_t> word_;
};

using TimerWord = BasicTimerWord<>;

}  // namespace carillon::detail
