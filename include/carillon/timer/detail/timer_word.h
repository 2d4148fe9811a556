// TimerWord: the one atomic word of a timer {generation, moves, flags, phase}, and every transition
// it can make.
//
//   kFree    --arm--> kArmed
//   kArmed   --begin_move--> kMoving --end_move--> kArmed
//   kArmed   --claim--> kQueued --start--> kRunning --finish--> kFree, of the next generation
//   kRunning --rearm--> kArmed                                  (periodic)
//   kRunning --end_periods--> kRunning, as a timer that is not periodic
//   kArmed, kQueued --cancel-----> kCancelled --finish--> kFree, of the next generation
//   kArmed, kQueued --take_back--> kReturned  --finish--> kFree, of the next generation
//
// Whoever makes a transition out of kArmed or kQueued has won the timer: exactly one of firing,
// cancelling and returning it does.
//
// Flags
//   kPosted     a note that carries this timer to its shard is on its way, or about to be left. Until it is read, the
//               timer belongs to it: a wheel that comes upon the timer leaves it alone. No timer has two notes.
//   kTaskGone   of a cancelled timer: its task has been taken out.
//   kHolderGone  of a cancelled timer: the note or queue that held it has let go of it. Whoever sets the second of
//               these two frees the timer.
//   kPeriodic   cancelling it while it runs is possible, and sets kEnding: it will not run again.
//   kWaited     somebody waits for the end of the present run.
//
// `moves` counts changes of the deadline. Who claims a timer reads word, deadline, and then swaps
// the word: a change in between makes the swap fail, so a timer that was moved to later never fires
// at its old time.
//
// Generations make handles safe for ever: memory of timers is never unmapped, each use gets the
// next generation, and no transition is possible with a generation of the past. A word that has
// used up its 2^32 - 1 generations is retired.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

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
  // The phase of that generation; kFree if it is over.
  Phase phase(Generation generation) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    return generation_of(word) == generation ? phase_of(word) : Phase::kFree;
  }

  // --- scheduling. REQUIRES: the caller has taken the timer from the free ones, so that nobody
  // else makes transitions.
  Generation arm(bool periodic) noexcept {
    const Generation generation = this->generation();
    word_.store(of(generation, Phase::kArmed) | kPosted | (periodic ? kPeriodic : 0),
                std::memory_order_relaxed);
    return generation;
  }
  // Undoes kPosted when there was no need to post. REQUIRES: nobody else knows of this generation
  // yet.
  void enter_by_oneself() noexcept {
    word_.store(word_.load(std::memory_order_relaxed) & ~kPosted, std::memory_order_relaxed);
  }

  // --- cancelling
  enum class Cancel {
    kLost,        // it has fired, was cancelled, was returned, or is from the past
    kWonInWheel,  // take the task, then take the timer out of its wheel, or leave a note that asks for it
    kWonElsewhere,  // take the task, then let_go_of_task(): a note or a queue holds the timer
    kWonRunning,    // periodic, and running now; it ends after this run
  };
  Cancel cancel(Generation generation) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      if (generation_of(word) != generation) return Cancel::kLost;
      switch (phase_of(word)) {
        case Phase::kArmed:
          if ((word & kPosted) == 0) {
            if (swap(word, with_phase(word, Phase::kCancelled) | kPosted | kTaskGone))
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
        case Phase::kMoving:  // for a few instructions
          Atomics::yield();
          word = word_.load(std::memory_order_acquire);
          break;
        default:
          return Cancel::kLost;
      }
    }
  }
  // True: the other side has let go before, and the caller finishes and frees the timer.
  bool let_go_of_task() noexcept {
    return (word_.fetch_or(kTaskGone, std::memory_order_acq_rel) & kHolderGone) != 0;
  }
  bool let_go_as_holder() noexcept {
    return (word_.fetch_or(kHolderGone, std::memory_order_acq_rel) & kTaskGone) != 0;
  }

  // --- moving the deadline
  enum class Move {
    kLost,    // it is not pending
    kMoving,  // the caller alone may write the deadline, until end_move()
    kAnother,  // somebody else is at it: that is as if the caller's move had come just before the other's
  };
  Move begin_move(Generation generation) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      if (generation_of(word) != generation) return Move::kLost;
      if (phase_of(word) == Phase::kMoving) return Move::kAnother;
      if (phase_of(word) != Phase::kArmed) return Move::kLost;
      if (swap(word, with_phase(word, Phase::kMoving))) return Move::kMoving;
    }
  }
  // True: the caller must bring the timer to its shard. That is never so when it was moved to
  // later: its wheel comes upon it early enough, and places it anew.
  bool end_move(bool earlier) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const bool bring = earlier && (word & kPosted) == 0;
      if (swap(word, with_phase(next_move(word), Phase::kArmed) | (bring ? kPosted : 0)))
        return bring;
    }
  }

  // --- inside the shard's door
  // For a note that has been read. kCancelled: take it out of the wheel and let_go_as_holder().
  // Otherwise (kArmed, kMoving) place it by the deadline that stands there: who moves it to earlier
  // from here on finds kPosted gone, and brings it again.
  Phase take_note() noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (phase_of(word) != Phase::kCancelled && !swap(word, word & ~kPosted)) {
    }
    return phase_of(word);
  }
  // For a timer in hand that cannot be placed now. True: it counts as a note that is still to be
  // read. False: it was cancelled, and a note about that will come.
  bool keep_as_note() noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (phase_of(word) == Phase::kArmed || phase_of(word) == Phase::kMoving) {
      if (swap(word, word | kPosted)) return true;
    }
    return false;
  }

  enum class Claim {
    kDue,     // won: it is queued now
    kLater,   // it was moved: place it anew
    kMoving,  // it is being moved: look at it again a little later
    kPosted,  // its note is on its way: it was moved to earlier, or cancelled
  };
  // For a timer whose turn has come in the wheel; is_due() reads the deadline.
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
  // When the service stops. kTaken: the timer is the caller's, who finishes it. kPosted: its note
  // is on its way.
  TakeBack take_back() noexcept { return take_back(kPosted); }
  // The same for who has the note in hand, because the door was shut.
  TakeBack take_back_with_note() noexcept { return take_back(0); }

  // --- running
  // False: it was cancelled while it was queued; let_go_as_holder().
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
  // with a note to be left.
  Rearm rearm() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      if ((word & kEnding) != 0) return Rearm::kEnded;
      const std::uint64_t armed = (with_phase(next_move(word), Phase::kArmed) & ~kWaited) | kPosted;
      if (swap(word, armed)) return (word & kWaited) != 0 ? Rearm::kArmedWaited : Rearm::kArmed;
    }
  }

  // Of a periodic timer that has no next time: from here on cancelling it is no longer possible.
  // True: somebody has.
  bool end_periods() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (!swap(word, word & ~kPeriodic)) {
    }
    return (word & kEnding) != 0;
  }

  enum class End { kReuse, kRetire };
  // The end of the generation. From here on the timer is the caller's to free, and no handle
  // reaches it. REQUIRES: the caller has won it, and nobody else holds it.
  End finish() noexcept {
    const Generation next = generation() + 1;  // 0 after the last: no handle has that
    const std::uint64_t old = word_.exchange(of(next, Phase::kFree), std::memory_order_acq_rel);
    if ((old & kWaited) != 0) word_.notify_all();
    return next == 0 ? End::kRetire : End::kReuse;
  }

  // The same, when the timer was not running: nobody can be waiting, and a store does.
  End finish_unrun() noexcept {
    const Generation next = generation() + 1;
    word_.store(of(next, Phase::kFree), std::memory_order_release);
    return next == 0 ? End::kRetire : End::kReuse;
  }

  // Returns when that generation is not running (any more).
  void wait_for_end_of_run(Generation generation) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (generation_of(word) == generation && phase_of(word) == Phase::kRunning) {
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
  static constexpr std::uint64_t kMove = 1U << 9;  // the lowest bit of `moves`
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

  // Acquire and release: a transition sees all that was done under the transitions before it, and
  // shows what was done before it.
  bool swap(std::uint64_t& expected, std::uint64_t desired) noexcept {
    return word_.compare_exchange_weak(expected, desired, std::memory_order_acq_rel,
                                       std::memory_order_acquire);
  }

  TakeBack take_back(std::uint64_t leave_if) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      if (phase_of(word) == Phase::kMoving) {
        Atomics::yield();
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
