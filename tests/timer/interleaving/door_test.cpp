// Every interleaving at a Door: each note is read once, by a thread that is alone inside and sees
// what was written to the note.
#include <gtest/gtest.h>

#include "carillon/timer/detail/door.h"
#include "timer/interleaving/finding.h"

namespace carillon::interleaving {
namespace {

using carillon::detail::Admission;

struct Note {
  Plain<Note*> next;
  Plain<int> message;
  int from = 0;
};

// Stands for a timer shard: its door, and how many messages of each thread were read or refused.
template <class Twist>
struct Shard {
  carillon::detail::Door<Note, Model<Twist>> door;
  Plain<int> inside;    // number of threads inside
  Plain<int> last[3];   // of each thread, the latest message that was read
  int read[3] = {};     // of each thread, the number of messages that were read
  int refused[3] = {};  // of each thread, the number of messages that were refused

  void read_one(Note& note) {
    const int message = note.message;
    require(message == last[note.from] + 1, "a message was lost, read twice, or overtaken");
    last[note.from] = message;
    ++read[note.from];
  }
  void read_all(Note* oldest) {
    while (oldest != nullptr) {
      Note& note = *oldest;
      oldest = note.next;
      read_one(note);
    }
  }

  void come(Note& note, int from, int message) {
    note.from = from;
    note.message = message;
    switch (door.enter_or_post(note)) {
      case Admission::kShut:
        ++refused[from];
        break;
      case Admission::kPosted:
        break;
      case Admission::kEntered:
        require(inside == 0, "two are inside");
        inside = 1;
        read_one(note);
        inside = 0;
        while (Note* oldest = door.leave()) read_all(oldest);
        break;
    }
  }
};

// Each of kComers threads comes kTimes times.
template <class Twist, unsigned kComers, unsigned kTimes>
struct EachComes {
  static constexpr int kThreads = static_cast<int>(kComers);
  Shard<Twist> shard;
  Note notes[kComers][kTimes];

  void run(int thread) {
    int message = 0;
    for (Note& note : notes[thread]) shard.come(note, thread, ++message);
  }
  void at_end() {
    for (int thread = 0; thread < kThreads; ++thread)
      require(shard.read[thread] == static_cast<int>(kTimes), "a note was lost");
    Note another;
    require(shard.door.enter_or_post(another) == Admission::kEntered,
            "the door is closed, and nobody is inside");
  }
};

TEST(InterleavingDoor, ThreeThreadsLeaveOrReadOneNoteEach) {
  expect_no_fault<EachComes<Faithful, 3, 1>>();
}

TEST(InterleavingDoor, TwoThreadsComeTwiceAndTheNotesOfEachKeepTheirOrder) {
  expect_no_fault<EachComes<Faithful, 2, 2>>();
}

TEST(InterleavingDoor, TwoThreadsComeThreeTimes) {
  expect_no_fault<EachComes<Faithful, 2, 3>>();
}

// One thread is inside from the start, reads notes, and shuts the door, while two others come.
template <class Twist>
struct OneShuts {
  static constexpr int kThreads = 3;
  Shard<Twist> shard;
  Note notes[2][2];
  Note first;

  OneShuts() {
    require(shard.door.enter_or_post(first) == Admission::kEntered, "a new door is open");
  }
  void run(int thread) {
    if (thread < 2) {
      shard.come(notes[thread][0], thread, 1);
      if (thread == 0) shard.come(notes[thread][1], thread, 2);
      return;
    }
    shard.read_all(shard.door.take_notes());
    while (Note* oldest = shard.door.shut()) shard.read_all(oldest);
  }
  void at_end() {
    require(shard.read[0] + shard.refused[0] == 2, "a note was lost");
    require(shard.read[1] + shard.refused[1] == 1, "a note was lost");
  }
};

TEST(InterleavingDoor, ANoteThatComesDuringShutIsReadOrRefusedNeverLost) {
  expect_no_fault<OneShuts<Faithful>>();
}

// --- the search finds what is broken on purpose

TEST(InterleavingDoor, Broken_LeavingOrPostingThatIsNotOneStepIsFound) {
  EXPECT_NE((explore<EachComes<WithSplitSwaps, 3, 1>>().fault), "");
  EXPECT_NE(explore<OneShuts<WithSplitSwaps>>().fault, "");
}

TEST(InterleavingDoor, Broken_NotesThatAreNotReleasedOrAcquiredAreFound) {
  expect_fault<EachComes<WithoutRelease, 2, 1>>("data race");
  expect_fault<EachComes<WithoutAcquire, 2, 1>>("data race");
}

}  // namespace
}  // namespace carillon::interleaving
