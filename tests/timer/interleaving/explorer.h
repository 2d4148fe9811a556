// Explorer: runs a small program of a few threads in every order of its atomic operations, and with
// every value that the memory model lets a load return. It finds failed checks, data races, and
// threads that wait for ever.
//
//   struct Handover {
//     static constexpr int kThreads = 2;
//     ModelAtomic<int> ready{0};
//     Plain<int> data{0};
//     void run(int thread) {
//       if (thread == 0) {
//         data = 42;
//         ready.store(1, std::memory_order_release);
//       } else if (ready.load(std::memory_order_acquire) == 1) {
//         require(data == 42, "half a message");
//       }
//     }
//     void at_end() {}  // called when all threads have ended; sees everything
//   };
//   const Report report = explore<Handover>();  // report.fault is empty
//
// One order of the operations, with the values that loads return, is a schedule. The program is
// constructed anew for each schedule.
//
// The memory model is C++20's, as far as views can express it (Kang et al., "A Promising Semantics
// for Relaxed-Memory Concurrency", POPL 2017, without promises). The stores to one location are in
// the order in which they are executed. A load may return any store that is not older than
//  - the latest store to this location that its thread has read or made, or has learned of by an
//    acquire, and
//  - if the load is seq_cst, the latest store that a seq_cst access has made or read.
// So a store may stay unseen as long as nothing orders it. This covers the effects of store
// buffers, and more. Not modelled: loads that are delayed until after later stores, and
// compare_exchange_weak() failing for no reason.
//
// The search is depth-first and remembers the states that it has seen. The values that a thread has
// read determine how far it has come. So two schedules reach the same state if all threads have
// read the same values and can still read the same values; only one of the two is followed further.
// A thread that yields goes on when the location that it read last has a newer store, and then sees
// the latest store of every location.
//
// A program must be deterministic. Its threads may share data in ModelAtomic and Plain only; counts
// that only at_end() reads may be ordinary variables. The stacks of its threads must not hold
// anything that needs a destructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

namespace carillon::interleaving {

struct Report {
  std::uint64_t schedules = 0;  // begun; a schedule is left when it reaches a state seen before
  std::uint64_t states = 0;     // different states seen
  std::string fault;            // the first fault, and the operations that led to it; empty: none
};

// Called by programs. Unless `holds`, ends the schedule and the search with the fault `what`.
void require(bool holds, const char* what);

namespace detail {

constexpr int kMostThreads = 4;
constexpr int kMostLocations = 24;  // for atomics, and as many for plain variables

struct Entry {
  std::size_t size;
  int threads;
  void (*construct)(void* at);
  void (*run)(void* program, int thread);
  void (*at_end)(void* program);
  void (*destroy)(void* program);
};
Report explore(const Entry& entry);

// The operations of ModelAtomic and Plain. A location is named by a number, which new_atomic() and
// new_plain() return. Values are held as 64 bits.
int new_atomic(std::uint64_t value);
std::uint64_t load(int location, std::memory_order order);
void store(int location, std::uint64_t value, std::memory_order order);
enum class Change { kSet, kOr, kAdd };
std::uint64_t modify(int location, Change change, std::uint64_t operand, std::memory_order order);
bool compare_exchange(int location, std::uint64_t& expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure);
void wait(int location, std::uint64_t old, std::memory_order order);
void notify_all(int location);
void yield();

int new_plain(std::uint64_t value);
void plain_read(int location);
void plain_write(int location, std::uint64_t value);

}  // namespace detail

template <class Program>
Report explore() {
  return detail::explore({
      .size = sizeof(Program),
      .threads = Program::kThreads,
      .construct = [](void* at) { new (at) Program; },
      .run = [](void* program, int thread) { static_cast<Program*>(program)->run(thread); },
      .at_end = [](void* program) { static_cast<Program*>(program)->at_end(); },
      .destroy = [](void* program) { static_cast<Program*>(program)->~Program(); },
  });
}

}  // namespace carillon::interleaving
