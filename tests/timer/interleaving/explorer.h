// Explorer: runs a small program of a few threads in every order of its atomic operations, and with
// every value that the memory model lets a load return; finds failed checks, data races, and
// threads that wait for ever.
//
//   struct Handover {                                            // constructed anew for each schedule
//     static constexpr int kThreads = 2;
//     ModelAtomic<int> ready{0};
//     Plain<int> data{0};
//     void run(int thread) {
//       if (thread == 0) { data = 42; ready.store(1, std::memory_order_release); }
//       else if (ready.load(std::memory_order_acquire) == 1) require(data == 42, "half a message");
//     }
//     void at_end() {}                                           // after all threads, with everything visible
//   };
//   const Report report = explore<Handover>();                   // report.fault is empty
//
// The memory model is C++20's as far as views express it (Kang et al., "A Promising Semantics for
// Relaxed-Memory Concurrency", POPL 2017, without promises). Stores to one location are ordered as
// they are executed. A load returns any of them that the thread need not know to be overwritten:
// not older than what it has read or written itself, or acquired, or, if it is seq_cst, than the
// last seq_cst access. So a store may go unnoticed for as long as nothing orders it: what store
// buffers do, and more. Not modelled: loads that are put off until after later stores, and
// compare_exchange_weak failing for no reason.
//
// The search goes depth first and remembers states: what each thread has read so far determines
// where it is, so two schedules after which all threads have read the same, and the same can still
// be read, go on alike; one of them is followed. A thread that yields goes on when there is
// something new where it has looked last, and sees it.
//
// A program must be deterministic, keep what its threads share in ModelAtomic and Plain (sums that
// only at_end() reads may be plain variables), and own nothing that needs a destructor on its
// threads' stacks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

namespace carillon::interleaving {

struct Report {
  std::uint64_t schedules = 0;  // begun; those that came to a state seen before were left there
  std::uint64_t states = 0;     // different ones
  std::string fault;            // the first one found, and how it came to it; empty: none
};

// Called by programs: ends the schedule, and the search, with this fault.
void require(bool holds, const char* what);

namespace detail {

constexpr int kMostThreads = 4;
constexpr int kMostPlaces = 24;  // atomics; and as many plain variables

struct Entry {
  std::size_t size;
  int threads;
  void (*construct)(void* at);
  void (*run)(void* program, int thread);
  void (*at_end)(void* program);
  void (*destroy)(void* program);
};
Report explore(const Entry& entry);

// Each returns what the operation does; values are held as 64 bits.
int new_atomic(std::uint64_t value);
std::uint64_t load(int place, std::memory_order order);
void store(int place, std::uint64_t value, std::memory_order order);
enum class Change { kSet, kOr, kAdd };
std::uint64_t modify(int place, Change change, std::uint64_t operand, std::memory_order order);
bool compare_exchange(int place, std::uint64_t& expected, std::uint64_t desired,
                      std::memory_order success, std::memory_order failure);
void wait(int place, std::uint64_t old, std::memory_order order);
void notify_all(int place);
void yield();

int new_plain(std::uint64_t value);
void plain_read(int place);
void plain_write(int place, std::uint64_t value);

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
