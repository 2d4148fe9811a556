// The threads of the simulated process, of which only one runs at a time, in an order that a seed
// gives. So a simulation with a thread that syncs, and with RocksDB's own, is repeatable.
//
//   begin_simulation(seed);          // this thread is the main thread of the simulation
//   GroupCommit commit(...);         // starts a thread: it does not run yet
//   ...
//   run_others();                    // each of the others runs as far as it can without waiting
//
// threads.cpp replaces the functions of the C library that start threads and that wait: for a
// mutex, a condition, a time, or the end of another thread. A thread that waits lets the others
// run; the others run only then, and when the main thread calls run_others(). A thread that is not
// the main one can also be stopped in the middle of a sync or a write of the log: see may_switch().
// So appends are simulated while a sync is under way.
//
// When all threads wait for a time, the virtual time (clock.h) jumps to the first of these moments.
// When all wait and none for a time, the program ends with a message: that is a deadlock.
//
// Not simulated: two threads at work at the same instant, and so races (the thread sanitizer finds
// these in the tests of the layers).
#pragma once

#include <cstdint>

namespace carillon::simulator {

// The calling thread, and all threads that are started by it from now on, belong to the simulation.
// A second call only sets the seed.
void begin_simulation(std::uint64_t seed);

// Lets every other thread run, in a random order, until all of them wait.
void run_others();

// For how long (ns, virtual) the main thread has slept so far, or waited for others.
std::uint64_t slept_ns();

// Returns true if the calling thread belongs to the simulation.
bool in_simulation();
// The next number that the seed gives.
std::uint32_t random_number();

// Called within a write or a sync of the disk: now and then stops the calling thread for a while,
// if it is not the main one.
void may_switch();

}  // namespace carillon::simulator
