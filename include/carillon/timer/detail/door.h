// Door: lets one thread at a time into a shard. A thread that finds the door taken does not wait:
// it leaves a *note* and goes on. The thread inside reads the notes, and does what they ask for,
// before it leaves.
//
// It is a try-lock and a mailbox in one word. The word is
//
//   open        nobody is inside
//   taken       a thread is inside, and there is no note
//   a pointer   a thread is inside; this is the newest note, which points to the older ones
//   shut        no thread will ever be inside again
//
// Entering, leaving, and leaving a note are one compare-and-swap each. No call here ever waits: the
// thread inside may be preempted for as long as the scheduler likes, and the others go on.
//
// Invariants
//  1. A note is left only while a thread is inside, and that thread cannot leave while there is a
//     note: leave() fails then, and hands over the notes. So each note is read exactly once, and no
//     thread needs to be woken for it.
//  2. Notes are handed over oldest first. What one thread does at a door, entering or leaving
//     notes, happens in that thread's order.
//  3. Everything before leave() happens before everything after the next entry; everything before a
//     note is left happens before everything after it is read.
//
// The atomics are a template parameter (detail/atomics.h), so that a test can run every
// interleaving.
#pragma once

#include <atomic>
#include <cstdint>

#include "carillon/require.h"
#include "carillon/timer/detail/atomics.h"

namespace carillon::detail {

enum class Admission {
  kEntered,  // the caller is inside: it does its work, then calls leave() until that returns null
  kPosted,   // the note was left for the thread inside
  kShut,     // neither: the door is shut for ever
};

// A Note has a member `Note* next`, which belongs to the door from the time that the note is left
// until it is handed over.
template <class Note, class Atomics = MachineAtomics>
class Door {
 public:
  Admission enter_or_post(Note& note) noexcept {
    std::uintptr_t seen = kOpen;
    for (;;) {
      if (seen == kOpen) {
        // Acquire: sees what earlier threads did inside. Relaxed on failure: that only tells what
        // to try next.
        if (word_.compare_exchange_weak(seen, kTaken, std::memory_order_acquire,
                                        std::memory_order_relaxed))
          return Admission::kEntered;
      } else if (seen == kShut) {
        return Admission::kShut;
      } else {
        note.next = seen == kTaken ? nullptr : as_note(seen);
        // Release: the reader of the note sees everything that was written to it.
        if (word_.compare_exchange_weak(seen, as_word(note), std::memory_order_release,
                                        std::memory_order_relaxed))
          return Admission::kPosted;
      }
    }
  }

  // Returns null if the caller is outside now. Otherwise the caller is still inside, and the result
  // is the notes that were left, oldest first. REQUIRES: the caller is inside.
  Note* leave() noexcept { return go_out(kOpen); }

  // As leave(), but when it returns null, no thread can enter again. REQUIRES: the caller is
  // inside.
  Note* shut() noexcept { return go_out(kShut); }

  // Returns the notes that were left so far, oldest first; null if no note was left. The caller is
  // still inside. REQUIRES: the caller is inside.
  Note* take_notes() noexcept {
    const std::uintptr_t seen = word_.load(std::memory_order_relaxed);
    if (seen == kTaken) return nullptr;
    CARILLON_REQUIRE(seen != kOpen && seen != kShut, seen);
    return oldest_first(as_note(word_.exchange(kTaken, std::memory_order_acquire)));
  }

 private:
  static constexpr std::uintptr_t kOpen = 0;
  static constexpr std::uintptr_t kTaken = 1;  // notes are aligned: no note has an odd address
  static constexpr std::uintptr_t kShut = 3;

  static Note* as_note(std::uintptr_t word) noexcept { return reinterpret_cast<Note*>(word); }
  static std::uintptr_t as_word(Note& note) noexcept {
    return reinterpret_cast<std::uintptr_t>(&note);
  }

  Note* go_out(std::uintptr_t as) noexcept {
    std::uintptr_t seen = kTaken;
    if (word_.compare_exchange_strong(seen, as, std::memory_order_release,
                                      std::memory_order_relaxed))
      return nullptr;
    return take_notes();
  }

  static Note* oldest_first(Note* newest) noexcept {
    Note* oldest = nullptr;
    while (newest != nullptr) {
      Note* older = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = older;
    }
    return oldest;
  }

  typename Atomics::template Atomic<std::uintptr_t> word_{kOpen};
};

}  // namespace carillon::detail
