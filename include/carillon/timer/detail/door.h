// Door: entry to a shard for one thread at a time, where whoever finds it taken leaves a note
// instead of waiting.
//
// A mailbox and a try-lock in one word. The word is
//
//   open        nobody is inside
//   taken       somebody is inside, and no note was left
//   a pointer   somebody is inside; the newest note, which points to the older ones
//   shut        nobody will ever be inside again
//
// Entering is one compare-and-swap, leaving another; leaving a note is one too. Nobody ever waits:
// the thread inside may be preempted for as long as the scheduler likes, and the others go on.
//
// Invariants
//  1. A note is only ever left while somebody is inside, and who is inside cannot leave while there
//     is a note: leave() fails then, and hands over the notes. So each note is read, exactly once,
//     without anybody being woken for it.
//  2. Notes are handed over oldest first, and what one thread does at a door, entering or leaving
//     notes, keeps its order.
//  3. Everything before leave() or a note happens before everything after the next entry, or the
//     reading of that note.
//
// The atomics are a parameter (detail/atomics.h), so that a test can run every interleaving.
#pragma once

#include <atomic>
#include <cstdint>

#include "carillon/timer/detail/atomics.h"

namespace carillon::detail {

enum class Admission {
  kEntered,  // inside: do the work, then leave() until it returns null
  kPosted,   // the note was left with whoever is inside
  kShut,     // neither, now and for ever
};

// A Note has a member `Note* next`, which belongs to the door from posting until the note is handed
// over.
template <class Note, class Atomics = MachineAtomics>
class Door {
 public:
  Admission enter_or_post(Note& note) noexcept {
    std::uintptr_t seen = kOpen;
    for (;;) {
      if (seen == kOpen) {
        // Acquire: sees what was done inside before. A failure decides nothing but what to try
        // next.
        if (word_.compare_exchange_weak(seen, kTaken, std::memory_order_acquire,
                                        std::memory_order_relaxed))
          return Admission::kEntered;
      } else if (seen == kShut) {
        return Admission::kShut;
      } else {
        note.next = seen == kTaken ? nullptr : as_note(seen);
        // Release: the reader of the note sees all that was written to it.
        if (word_.compare_exchange_weak(seen, as_word(note), std::memory_order_release,
                                        std::memory_order_relaxed))
          return Admission::kPosted;
      }
    }
  }

  // Null: outside now. Otherwise still inside, and these are the notes that were left, oldest
  // first. REQUIRES: inside.
  Note* leave() noexcept { return go_out(kOpen); }

  // As leave(), but once outside nobody enters again. REQUIRES: inside.
  Note* shut() noexcept { return go_out(kShut); }

  // The notes left so far, oldest first, or null; still inside either way. REQUIRES: inside.
  Note* take_notes() noexcept {
    if (word_.load(std::memory_order_relaxed) == kTaken) return nullptr;
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
